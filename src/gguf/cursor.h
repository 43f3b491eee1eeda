// The one way to read a file's bytes in order: nothing is read before it is known to be there.
// Knows numbers and lengths, not what they mean. Little-endian; no alignment is assumed.
// Thread rule: a Cursor belongs to one thread; the bytes may be shared.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "gguf/file_int.h"

namespace cairn::gguf {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

// The number that lies at `bytes`. REQUIRES: sizeof(T) bytes are there.
template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  // The next `count` bytes; nothing, and no step forward, where fewer remain.
  std::optional<std::span<const std::byte>> take(FileInt count) {
    if (count.value() > remaining()) return std::nullopt;
    const auto taken = bytes_.subspan(size_t(position_), size_t(count.value()));
    position_ += count.value();
    return taken;
  }

  // The same with an error that names `what`: "what: expected 8 bytes, found 3 before the end".
  Result<std::span<const std::byte>> take(FileInt count, std::string_view what);
  Result<uint32_t> u32(std::string_view what);
  Result<FileInt> u64(std::string_view what);

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;  // Never beyond the end.
};

}  // namespace cairn::gguf
