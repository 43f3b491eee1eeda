// Five digits, "-of-", five digits, ".gguf"; nothing looser.
#include "gguf/split.h"

#include <fmt/format.h>

namespace cairn::gguf {
namespace {

constexpr size_t kDigits = 5;
constexpr std::string_view kOf = "-of-";
constexpr std::string_view kExtension = ".gguf";

// REQUIRES: text.size() == kDigits.
std::optional<uint32_t> digits(std::string_view text) {
  uint32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + uint32_t(c - '0');
  }
  return value;
}

}  // namespace

std::optional<SplitName> parse_split_name(std::string_view path) {
  constexpr size_t kTail = 1 + kDigits + kOf.size() + kDigits + kExtension.size();
  if (path.size() <= kTail || !path.ends_with(kExtension)) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kTail);
  const auto part = digits(tail.substr(1, kDigits));
  const auto part_count = digits(tail.substr(1 + kDigits + kOf.size(), kDigits));
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || !part || !part_count ||
      *part < 1 || *part > *part_count) {
    return std::nullopt;
  }
  return SplitName{std::string(path.substr(0, path.size() - kTail)), *part, *part_count};
}

std::string split_path(std::string_view stem, uint32_t part, uint32_t part_count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, part, part_count);
}

}  // namespace cairn::gguf
