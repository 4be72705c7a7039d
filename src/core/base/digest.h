#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace lockstep {

/// BLAKE2b-256 of a stream of bytes (libsodium): dataset fingerprints, configuration digests, state
/// hashes.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void update(std::span<const std::byte> bytes);
  /// Ends the stream; 64 hexadecimal digits.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The digest of one run of bytes.
std::string digest_hex(std::span<const std::byte> bytes);

}  // namespace lockstep
