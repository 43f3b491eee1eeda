// What hubs answer, as types: Hugging Face's model info and pages of files, Ollama's manifests, the
// header that names the next page. Everything comes from strangers: sizes, counts and characters
// are checked, and what is not needed is not read. Knows no network. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/file_choice.h"

namespace cairn::hub {

constexpr size_t kAnswerBytesMax = size_t(8) << 20;  // Of one JSON text.

struct ModelInfo {
  std::string commit;  // 40 hex digits; empty where it is not said.
};
Result<ModelInfo> parse_model_info(std::string_view text);

// Files only, not folders, added to `files`.
Status parse_tree_page(std::string_view text, std::vector<ListedFile>& files);

// Names of models that a search has found.
Result<std::vector<std::string>> parse_search(std::string_view text);

// Of a Link header (RFC 8288) the target with rel="next"; empty where there is none.
std::string next_link(std::string_view header);

struct ManifestLayer {
  std::string media_type;
  std::string sha256;  // 64 hex digits in lower case.
  uint64_t bytes = 0;
};
// Errors: invalid_data, which names the layer and the field.
Result<std::vector<ManifestLayer>> parse_manifest(std::string_view text);

// "bytes 0-99/1234" of a Content-Range header.
struct ContentRange {
  uint64_t first = 0, last = 0, total = 0;
};
Result<ContentRange> parse_content_range(std::string_view header);

// 64 hex digits, in either case; in lower case then. Empty where it is something else.
std::string sha256_in(std::string_view text);

// Digits alone. Errors: invalid_data, naming `what`.
Result<uint64_t> parse_count(std::string_view what, std::string_view text);

}  // namespace cairn::hub
