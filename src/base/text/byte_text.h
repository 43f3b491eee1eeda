// The same bytes as text, and text as bytes. Thread-safe: pure.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace cairn {

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace cairn
