// Any bytes as JSON. Where its rules are ours, nlohmann's reader takes the same texts; what is read
// as a tree is written as JSON that reads back to the same text.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "json/document.h"
#include "json/value.h"

namespace json = cairn::json;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  json::Limits limits;
  limits.depth = SIZE_MAX;
  limits.may_repeat_keys = true;
  // To nlohmann's reader a zero byte is the end.
  if (text.find('\0') == text.npos) {
    CHECK(json::is_json(text, limits) == nlohmann::json::accept(text));
  }
  auto value = json::read_value("JSON", text, {});
  auto document = json::Document::read("JSON", text, {});
  // A document keeps what is beyond doubles.
  if (value) CHECK(document);
  if (!value) {
    CHECK(value.error().message.size() < 600);
    return 0;
  }
  const std::string written = json::to_text(*value);
  auto again = json::read_value("JSON", written, {});
  CHECK(again);
  CHECK(json::to_text(*again) == written);
  CHECK(nlohmann::json::parse(written) == nlohmann::json::parse(text));
  auto compact = json::Document::read("JSON", document->compact(document->root()), {});
  CHECK(compact);
  return 0;
}
