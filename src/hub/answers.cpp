// JSON is read as a tree (json/value.h), whose limits bound what a stranger's text may cost.
#include "hub/answers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "json/value.h"

namespace cairn::hub {

namespace {

constexpr json::Limits kLimits = {.bytes = kAnswerBytesMax, .depth = 32};
constexpr size_t kCommitDigits = 40;
constexpr size_t kDigestDigits = 64;
constexpr int64_t kFileBytesMax = int64_t(1) << 50;  // More than any disk; sums of them fit.

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
         });
}

Error expected(std::string_view what, std::string_view wanted, const json::Value* found) {
  return fail(ErrorCode::invalid_data, "{}: expected {}, found {}", what, wanted,
              found == nullptr ? "nothing" : printable(found->describe()));
}

Result<uint64_t> size_at(std::string_view what, const json::Value& object) {
  const json::Value* const size = object.find("size");
  const std::optional<int64_t> bytes = size == nullptr ? std::nullopt : size->as_integer();
  if (!bytes || *bytes < 0 || *bytes > kFileBytesMax) {
    return expected(what, "a size from 0 to 2^50", size);
  }
  return uint64_t(*bytes);
}

}  // namespace

std::string sha256_in(std::string_view text) {
  if (!is_hex(text, kDigestDigits)) return {};
  std::string digits(text);
  for (char& c : digits) {
    if (c >= 'A' && c <= 'F') c = char(c - 'A' + 'a');
  }
  return digits;
}

Result<ModelInfo> parse_model_info(std::string_view text) {
  CAIRN_TRY(const json::Value value, json::read_value("model info", text, kLimits));
  if (!value.is_object()) return expected("model info", "an object", &value);
  const std::string_view commit = value.text_at("sha").value_or("");
  return ModelInfo{.commit = is_hex(commit, kCommitDigits) ? std::string(commit) : ""};
}

Status parse_tree_page(std::string_view text, std::vector<ListedFile>& files) {
  CAIRN_TRY(const json::Value value, json::read_value("list of files", text, kLimits));
  if (!value.is_array()) return expected("list of files", "an array", &value);
  for (const json::Value& entry : value.items()) {
    if (entry.text_at("type").value_or("") != "file") continue;
    const std::string_view path = entry.text_at("path").value_or("");
    if (path.empty()) return expected("list of files", "a path in each entry", &entry);
    CAIRN_TRY(const uint64_t bytes, size_at("list of files", entry));
    ListedFile file{.path = std::string(path), .bytes = bytes, .sha256 = {}};
    if (const json::Value* const large = entry.find_set("lfs")) {
      file.sha256 = sha256_in(large->text_at("oid").value_or(""));
      if (file.sha256.empty()) {
        return expected("list of files: lfs", "an oid of 64 hex digits", large);
      }
      CAIRN_TRY(file.bytes, size_at("list of files: lfs", *large));
    }
    files.push_back(std::move(file));
  }
  return Ok{};
}

Result<std::vector<std::string>> parse_search(std::string_view text) {
  CAIRN_TRY(const json::Value value, json::read_value("search", text, kLimits));
  std::vector<std::string> names;
  for (const json::Value& entry : value.items()) {
    if (const auto id = entry.text_at("id")) names.emplace_back(*id);
  }
  return names;
}

std::string next_link(std::string_view header) {
  // <URL>; rel="next", <URL>; rel="prev"
  while (!header.empty()) {
    const size_t open = header.find('<');
    const size_t close = header.find('>', std::min(open, header.size()));
    if (close == header.npos) return {};
    const std::string_view target = header.substr(open + 1, close - open - 1);
    const size_t end = std::min(header.find(',', close), header.size());
    const std::string_view terms = header.substr(close, end - close);
    if (terms.find("rel=\"next\"") != terms.npos || terms.find("rel=next") != terms.npos) {
      return std::string(target);
    }
    header.remove_prefix(end);
  }
  return {};
}

Result<std::vector<ManifestLayer>> parse_manifest(std::string_view text) {
  constexpr std::string_view kAlgorithm = "sha256:";
  CAIRN_TRY(const json::Value value, json::read_value("manifest", text, kLimits));
  const json::Value* const layers = value.find("layers");
  if (layers == nullptr || !layers->is_array()) {
    return expected("manifest", "an array of layers", layers);
  }
  std::vector<ManifestLayer> all;
  for (const json::Value& layer : layers->items()) {
    ManifestLayer one;
    one.media_type = layer.text_at("mediaType").value_or("");
    const std::string_view digest = layer.text_at("digest").value_or("");
    if (digest.starts_with(kAlgorithm)) one.sha256 = sha256_in(digest.substr(kAlgorithm.size()));
    if (one.sha256.empty()) {
      return expected("manifest: digest", "sha256: and 64 hex digits", layer.find("digest"));
    }
    CAIRN_TRY(one.bytes, size_at("manifest: layer", layer));
    all.push_back(std::move(one));
  }
  return all;
}

Result<uint64_t> parse_count(std::string_view what, std::string_view text) {
  constexpr size_t kDigitsMax = 18;  // Below 2^63.
  const bool is_number =
      !text.empty() && text.size() <= kDigitsMax &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) {
    return fail(ErrorCode::invalid_data, "{}: expected a number of bytes, found \"{}\"", what,
                printable(text.substr(0, 40)));
  }
  uint64_t value = 0;
  for (const char c : text) value = value * 10 + uint64_t(c - '0');
  return value;
}

Result<ContentRange> parse_content_range(std::string_view header) {
  constexpr std::string_view kUnit = "bytes ";
  const size_t dash = header.find('-');
  const size_t slash = header.find('/');
  if (!header.starts_with(kUnit) || dash == header.npos || slash == header.npos || slash < dash) {
    return fail(ErrorCode::invalid_data,
                "Content-Range: expected bytes FIRST-LAST/TOTAL, found \"{}\"",
                printable(header.substr(0, 80)));
  }
  ContentRange range;
  CAIRN_TRY(range.first,
            parse_count("Content-Range", header.substr(kUnit.size(), dash - kUnit.size())));
  CAIRN_TRY(range.last, parse_count("Content-Range", header.substr(dash + 1, slash - dash - 1)));
  CAIRN_TRY(range.total, parse_count("Content-Range", header.substr(slash + 1)));
  if (range.first <= range.last && range.last < range.total) return range;
  return fail(ErrorCode::invalid_data,
              "Content-Range: expected a range within {} bytes, found {}-{}", range.total,
              range.first, range.last);
}

}  // namespace cairn::hub
