// The table of all fields of all requests: what they are called, what they may be, and what they
// are where nothing is said. From it come the checks of requests, their error messages and the
// OpenAPI document. Thread-safe: constant data, and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "serve/refusal.h"

namespace cairn::serve {

// Which requests have a field; several add up.
enum Endpoint : uint32_t {
  kChat = 1,
  kCompletion = 2,
  kEmbedding = 4,
  kTokenize = 8,
  kDetokenize = 16,
  kApplyTemplate = 32,
  kAnswers = kChat | kCompletion,
};

enum class FieldKind : uint8_t {
  boolean,
  integer,
  number,
  text,
  texts,  // A string, or a list of strings.
  object,
  list,
  any,  // What it may be is said by whoever reads it.
};

struct Field {
  std::string_view name;
  FieldKind kind;
  uint32_t endpoints;
  double min, max;  // Of numbers; of texts their bytes, of lists their items.
  std::string_view default_text;
  std::string_view doc;
  bool is_required = false;
};

// All of them, those of sampling (sample/params.h) at the end.
std::span<const Field> all_fields();

// The members of a request's body, each as its line of the table says; members that no line names
// are left alone, and null is as good as nothing.
class Body {
 public:
  static Checked<Body> read(std::string_view text, Endpoint endpoint);

  // Null where it is not there. REQUIRES, of all: the table has the name.
  const json::Value* find(std::string_view name) const { return value_.find_set(name); }
  bool is_true(std::string_view name) const { return value_.is_true_at(name); }
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string_view> text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;

 private:
  explicit Body(json::Value value) : value_(std::move(value)) {}

  json::Value value_;
};

}  // namespace cairn::serve
