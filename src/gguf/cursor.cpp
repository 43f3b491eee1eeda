// The cursor's errors: what was to be read, how many bytes it needs and how many there are.
#include "gguf/cursor.h"

namespace cairn::gguf {

Result<std::span<const std::byte>> Cursor::take(FileInt count, std::string_view what) {
  if (const auto taken = take(count)) return *taken;
  return fail(ErrorCode::invalid_data, "{}: declares {} bytes, {} bytes remain (at byte {})", what,
              count.value(), remaining(), position_);
}

Result<uint32_t> Cursor::u32(std::string_view what) {
  CAIRN_TRY(const auto bytes, take(FileInt(sizeof(uint32_t)), what));
  return load<uint32_t>(bytes.data());
}

Result<FileInt> Cursor::u64(std::string_view what) {
  CAIRN_TRY(const auto bytes, take(FileInt(sizeof(uint64_t)), what));
  return FileInt(load<uint64_t>(bytes.data()));
}

}  // namespace cairn::gguf
