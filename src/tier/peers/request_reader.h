// What strangers may ask of a machine that lends records: commands in the words of Redis, as they
// come. Of each kind of command it is known how many words it has and how long these are; what is
// anything else is refused before it is kept. Thread-safe: one object, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/sha256.h"

namespace cairn::tier {

struct Request {
  enum class Kind : uint8_t {
    greet,   // PEER NUMBER: who are you?
    prove,   // AUTH PROOF
    exists,  // EXISTS KEY
    read,    // GETEX KEY PX MILLISECONDS, of which the last two mean nothing here.
  };
  Kind kind = Kind::greet;
  Sha256Digest digest{};  // Of a greeting and a proof.
  std::string key;        // Else.

  bool operator==(const Request&) const = default;
};

class RequestReader {
 public:
  // All commands are shorter: whoever sends more of one is no machine of ours.
  static constexpr size_t kBytesMax = 256;

  // Takes bytes up to the end of a command, or all; how many. Errors: invalid_data; then nothing
  // that follows can be understood.
  Result<size_t> take(std::span<const std::byte> bytes);
  bool has_ended() const { return has_ended_; }
  // And begins another one. REQUIRES: has_ended().
  Request result();

 private:
  Result<bool> read();

  std::string text_;  // Of a command, as far as it has come.
  Request request_;
  bool has_ended_ = false;
};

}  // namespace cairn::tier
