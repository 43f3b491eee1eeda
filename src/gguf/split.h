// Names of the files of a split model: STEM-00001-of-00003.gguf, numbered from 1. The other files'
// names come from the first one's and from nothing a file says (docs/formats.md, "Parts").
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::gguf {

struct SplitName {
  std::string stem;  // With the folder.
  uint32_t part;     // From 1.
  uint32_t part_count;
};

// Nothing if the path does not end so, or has a part number of 0 or above the count.
std::optional<SplitName> parse_split_name(std::string_view path);

std::string split_path(std::string_view stem, uint32_t part, uint32_t part_count);

}  // namespace cairn::gguf
