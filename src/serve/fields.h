// The table of all fields of all requests: what they are called, what they may be, and what they
// are where nothing is said. From it come the checks of requests, their error messages and the
// OpenAPI document. Thread-safe: constant data, and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  kNative = 64,  // llama.cpp's /completion.
  kInfill = 128,
  kAdapters = 256,
  kOllamaChat = 512,
  kOllamaGenerate = 1024,
  kOllamaOptions = 2048,  // The part "options" of these two.
  kOllamaEmbed = 4096,
  kOllamaShow = 8192,
  kMessages = 1 << 14,
  kCountTokens = 1 << 15,
  kResponses = 1 << 16,
  kRerank = 1 << 17,
  kSession = 1 << 18,          // POST /v1/sessions.
  kSessionAnswer = 1 << 19,    // Its answers.
  kSessionMessages = 1 << 20,  // What is added without an answer.
  kSessionName = 1 << 21,      // A snapshot's or branch's name.
  kSessionRewind = 1 << 22,
  kSessionFork = 1 << 23,
  kReceipt = 1 << 24,
  kVectors = 1 << 25,  // llama.cpp's /embedding.
  kChats = kChat | kSessionAnswer,
  kAnswers = kChats | kCompletion,
  kLlama = kNative | kInfill,
  kOllama = kOllamaChat | kOllamaGenerate,
  kAnthropic = kMessages | kCountTokens,
  // All that have the fields of sampling.
  kSampled = kAnswers | kLlama | kOllamaOptions | kMessages | kResponses,
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

// The members of a request's body that the table lists for its endpoint, each as its line says;
// others are left alone, and null is as good as nothing.
class Body {
 public:
  // No text is an empty object, where a session is asked for what needs no field.
  static Checked<Body> read(std::string_view text, Endpoint endpoint);
  // The object under this name, by the lines of an endpoint of its own; empty where there is none.
  // Must not outlive this body. REQUIRES: the table says that it is an object.
  Checked<Body> part(std::string_view name, Endpoint endpoint) const;
  Body(Body&&) = default;

  Endpoint endpoint() const { return endpoint_; }
  // Null where it is not there.
  const json::Value* find(std::string_view name) const;
  bool is_true(std::string_view name, bool otherwise = false) const;
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string_view> text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;

 private:
  explicit Body(Endpoint endpoint) : endpoint_(endpoint) {}
  // `place`: before the names in messages.
  Checked<Ok> take(const json::Value& object, std::string_view place);

  Endpoint endpoint_;
  json::Value value_;  // Of a whole body.
  // Point into it, or into the body that this is a part of.
  std::vector<std::pair<std::string_view, const json::Value*>> found_;
};

}  // namespace cairn::serve
