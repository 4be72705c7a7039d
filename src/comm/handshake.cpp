#include "comm/handshake.h"

#include <sodium.h>

#include <algorithm>

#include "core/base/error.h"

namespace lockstep {
namespace {

constexpr uint32_t kProtocolVersion = 1;
constexpr std::string_view kMagic = "LOCKSTEP";

// Layout of a Hello; numbers are 32 bits, little-endian.
constexpr size_t kVersionAt = 8;
constexpr size_t kPurposeAt = 12;
constexpr size_t kClientAt = 16;
constexpr size_t kServerAt = 20;
constexpr size_t kWorldSizeAt = 24;
constexpr size_t kReservedAt = 28;
constexpr size_t kGroupAt = 32;
constexpr size_t kNonceAt = 48;
static_assert(kNonceAt + 32 == sizeof(HandshakeHello));

void start_sodium() {
  LOCKSTEP_CHECK(sodium_init() >= 0, "libsodium cannot start");
}

void put(HandshakeHello& hello, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) {
    hello[at + i] = static_cast<uint8_t>(value >> (8 * i));
  }
}

uint32_t get(const HandshakeHello& hello, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= uint32_t{hello[at + i]} << (8 * i);
  }
  return value;
}

/// A public name of the group, by which it drops the connections of another one early.
std::array<uint8_t, 16> group_name(const GroupKey& key) {
  constexpr std::string_view label = "group name";
  std::array<uint8_t, 16> name{};
  crypto_generichash(name.data(), name.size(), reinterpret_cast<const uint8_t*>(label.data()),
                     label.size(), key.bytes().data(), key.bytes().size());
  return name;
}

/// Everything of a Hello but the nonce.
HandshakeHello hello_of(const GroupKey& key, const HandshakeTerms& terms) {
  HandshakeHello hello{};
  std::copy(kMagic.begin(), kMagic.end(), hello.begin());
  put(hello, kVersionAt, kProtocolVersion);
  put(hello, kPurposeAt, static_cast<uint32_t>(terms.purpose));
  put(hello, kClientAt, static_cast<uint32_t>(terms.client));
  put(hello, kServerAt, static_cast<uint32_t>(terms.server));
  put(hello, kWorldSizeAt, static_cast<uint32_t>(terms.world_size));
  put(hello, kReservedAt, 0);
  const auto name = group_name(key);
  std::copy(name.begin(), name.end(), hello.begin() + kGroupAt);
  return hello;
}

HandshakeProof prove(const GroupKey& key, std::string_view side, const HandshakeHello& hello,
                     const HandshakeChallenge& challenge) {
  HandshakeProof proof{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.bytes().data(), key.bytes().size(), proof.size());
  crypto_generichash_update(&state, reinterpret_cast<const uint8_t*>(side.data()), side.size());
  crypto_generichash_update(&state, hello.data(), hello.size());
  crypto_generichash_update(&state, challenge.data(), challenge.size());
  crypto_generichash_final(&state, proof.data(), proof.size());
  sodium_memzero(&state, sizeof(state));
  return proof;
}

// Of equal length, so that the hashed text has one reading only.
constexpr std::string_view kClientSide = "client";
constexpr std::string_view kServerSide = "server";
static_assert(kClientSide.size() == kServerSide.size());

bool equal_in_constant_time(const HandshakeProof& a, const HandshakeProof& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

GroupKey GroupKey::random() {
  start_sodium();
  GroupKey key;
  randombytes_buf(key.bytes_.data(), key.bytes_.size());
  return key;
}

GroupKey GroupKey::from_bytes(std::string_view bytes) {
  start_sodium();
  GroupKey key;
  LOCKSTEP_CHECK(bytes.size() == key.bytes_.size(), "a group key of {} bytes", bytes.size());
  std::copy(bytes.begin(), bytes.end(), key.bytes_.begin());
  return key;
}

GroupKey::~GroupKey() {
  sodium_memzero(bytes_.data(), bytes_.size());
}

HandshakeClient::HandshakeClient(const GroupKey& key, const HandshakeTerms& terms)
    : key_(key), hello_(hello_of(key, terms)) {
  randombytes_buf(hello_.data() + kNonceAt, hello_.size() - kNonceAt);
}

HandshakeProof HandshakeClient::answer(const HandshakeChallenge& challenge) {
  challenge_ = challenge;
  return prove(key_, kClientSide, hello_, challenge_);
}

bool HandshakeClient::accepts(const HandshakeProof& proof) const {
  return equal_in_constant_time(proof, prove(key_, kServerSide, hello_, challenge_));
}

HandshakeServer::HandshakeServer(const GroupKey& key, const HandshakeTerms& terms)
    : key_(key), terms_(terms) {
  randombytes_buf(challenge_.data(), challenge_.size());
}

std::optional<int> HandshakeServer::read(const HandshakeHello& hello) {
  hello_ = hello;
  const uint32_t client = get(hello, kClientAt);
  if (client >= static_cast<uint32_t>(terms_.world_size)) {
    return std::nullopt;
  }
  terms_.client = static_cast<int>(client);
  const HandshakeHello expected = hello_of(key_, terms_);
  if (!std::equal(expected.begin(), expected.begin() + kNonceAt, hello.begin())) {
    return std::nullopt;
  }
  return terms_.client;
}

bool HandshakeServer::accepts(const HandshakeProof& proof) const {
  return equal_in_constant_time(proof, prove(key_, kClientSide, hello_, challenge_));
}

HandshakeProof HandshakeServer::welcome() const {
  return prove(key_, kServerSide, hello_, challenge_);
}

}  // namespace lockstep
