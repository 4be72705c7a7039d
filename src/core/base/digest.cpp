#include "core/base/digest.h"

#include <sodium.h>

#include <array>

#include "core/base/error.h"

namespace lockstep {

struct Digest::State {
  crypto_generichash_state hash;
};

Digest::Digest() : state_(std::make_unique<State>()) {
  LOCKSTEP_CHECK(sodium_init() >= 0, "libsodium could not be initialised");
  crypto_generichash_init(&state_->hash, nullptr, 0, crypto_generichash_BYTES);
}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::update(std::span<const std::byte> bytes) {
  crypto_generichash_update(&state_->hash, reinterpret_cast<const unsigned char*>(bytes.data()),
                            bytes.size());
}

std::string Digest::hex() {
  std::array<unsigned char, crypto_generichash_BYTES> hash{};
  crypto_generichash_final(&state_->hash, hash.data(), hash.size());
  std::string text(2 * hash.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), hash.data(), hash.size());
  text.pop_back();
  return text;
}

std::string digest_hex(std::span<const std::byte> bytes) {
  Digest digest;
  digest.update(bytes);
  return digest.hex();
}

}  // namespace lockstep
