// The format is Darts' (Yata, double-array trie); paths may share their ends, so a walk visits a
// unit once and keeps how far it is from there to the farthest end.
#include "tokenize/charsmap.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cairn::tokenize {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the file's numbers are read as they lie");

constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
// No honest entry comes near; they bound the work at a place of a text, and how it may grow.
constexpr uint32_t kPathBytesMax = 256;
constexpr size_t kReplacementBytesMax = 1024;

struct Step {
  uint32_t node;
  uint32_t next_byte = 1;
  uint32_t height = 0;  // Of what was walked so far.
};

}  // namespace

Result<Charsmap> Charsmap::build(std::string_view bytes) {
  Charsmap map;
  if (bytes.empty()) return map;
  uint32_t units_bytes = 0;
  if (bytes.size() < sizeof units_bytes) {
    return fail(ErrorCode::invalid_data, "{}: expected 4 bytes or more, found {}", kKey,
                bytes.size());
  }
  std::memcpy(&units_bytes, bytes.data(), sizeof units_bytes);
  bytes.remove_prefix(sizeof units_bytes);
  if (units_bytes > bytes.size() || units_bytes == 0 || units_bytes % sizeof(uint32_t) != 0) {
    return fail(ErrorCode::invalid_data,
                "{}: expected a table of 4 to {} bytes in steps of 4, found {}", kKey, bytes.size(),
                units_bytes);
  }
  map.units_.resize(units_bytes / sizeof(uint32_t));
  std::memcpy(map.units_.data(), bytes.data(), units_bytes);
  map.replacements_ = bytes.substr(units_bytes);
  CAIRN_TRY(map.check_paths());
  return map;
}

// Depth first, without recursion: the path is a row of steps.
Status Charsmap::check_paths() const {
  constexpr uint16_t kNew = UINT16_MAX, kOpen = UINT16_MAX - 1;
  std::vector<uint16_t> heights(units_.size(), kNew);
  std::vector<Step> path = {{.node = 0}};
  heights[0] = kOpen;
  while (!path.empty()) {
    Step& step = path.back();
    if (step.next_byte == 1) CAIRN_TRY(check_value(step.node));
    const uint32_t children = children_of(step.node);
    while (step.next_byte < 256 && !is_child(children ^ step.next_byte, uint8_t(step.next_byte))) {
      ++step.next_byte;
    }
    if (step.next_byte == 256) {
      const uint32_t height = step.height;
      heights[step.node] = uint16_t(height);
      path.pop_back();
      if (!path.empty()) path.back().height = std::max(path.back().height, height + 1);
      if (height > kPathBytesMax) {
        return fail(ErrorCode::invalid_data, "{}: expected entries of at most {} bytes, found more",
                    kKey, kPathBytesMax);
      }
      continue;
    }
    const uint32_t child = children ^ step.next_byte++;
    if (heights[child] == kOpen) {
      return fail(ErrorCode::invalid_data, "{}: expected entries that end, found a circle at {}",
                  kKey, child);
    }
    if (heights[child] == kNew) {
      heights[child] = kOpen;
      path.push_back({.node = child});
    } else {
      step.height = std::max(step.height, uint32_t(heights[child]) + 1);
    }
  }
  return Ok{};
}

Status Charsmap::check_value(uint32_t node) const {
  if (!has_value(node)) return Ok{};
  const uint32_t at = children_of(node);
  if (at >= units_.size()) {
    return fail(ErrorCode::invalid_data, "{}: expected a value below unit {}, found it at {}", kKey,
                units_.size(), at);
  }
  const uint32_t begin = units_[at] & ~(1u << 31);
  const auto rest =
      std::string_view(replacements_).substr(std::min<size_t>(begin, replacements_.size()));
  const size_t end = rest.substr(0, kReplacementBytesMax + 1).find('\0');
  if (end == rest.npos) {
    return fail(ErrorCode::invalid_data,
                "{}: replacement at {}: expected at most {} bytes and their end, found none", kKey,
                begin, kReplacementBytesMax);
  }
  return Ok{};
}

Charsmap::Match Charsmap::longest(std::string_view text) const {
  Match match;
  if (units_.empty()) return match;
  uint32_t value = 0;
  uint32_t node = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = uint8_t(text[at]);
    const uint32_t child = children_of(node) ^ byte;
    if (byte == 0 || !is_child(child, byte)) break;
    node = child;
    if (!has_value(node)) continue;
    match.length = at + 1;
    value = units_[children_of(node)] & ~(1u << 31);
  }
  if (match.length > 0) match.replacement = replacements_.c_str() + value;
  return match;
}

}  // namespace cairn::tokenize
