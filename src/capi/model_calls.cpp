// The functions of cairn.h about the library and models.
#include <cairn.h>
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "capi/border.h"
#include "capi/convert.h"
#include "capi/layout.h"
#include "capi/objects.h"
#include "capi/sampling.h"
#include "chat/chat_input.h"
#include "engine/engine.h"
#include "json/value.h"
#include "runtimes/selection.h"
#include "tokenize/detokenizer.h"
#include "tokenize/tokenizer.h"

namespace cairn::capi {

namespace {

// Of the library nothing is printed.
void be_silent() {
  static const bool is_silent = [] {
    log::listen({}, log::Level::off);
    return true;
  }();
  (void)is_silent;
}

log::Level level_of(int32_t level) {
  if (level <= 0) return log::Level::debug;
  if (level == 1) return log::Level::info;
  return level == 2 ? log::Level::warning : log::Level::error;
}

void set_listener(cairn_log_fn fn, void* user, int32_t min_level) {
  be_silent();
  if (fn == nullptr) return log::listen({}, log::Level::off);
  log::listen(
      [fn, user](log::Level level, std::string_view text) {
        const InCallback here;
        fn(user, int32_t(level), text.data(), text.size());
      },
      level_of(min_level));
}

json::Value id_of(std::optional<Token> token) {
  return token ? json::Value(index_of(*token)) : json::Value();
}

std::string info_of(const gguf::File& file, const ModelText& text) {
  const auto field = [&](std::string_view key) {
    const gguf::Value* const value = file.fields().find(key);
    const std::optional<std::string_view> found =
        value == nullptr ? std::nullopt : gguf::string_in(*value);
    return found ? json::Value(*found) : json::Value();
  };
  const tokenize::Tokenizer* const tokenizer = text.tokenizer();
  const tokenize::SpecialTokens special =
      tokenizer == nullptr ? tokenize::SpecialTokens{} : tokenizer->special_ids();
  return json::to_text({{"architecture", field("general.architecture")},
                        {"name", field("general.name")},
                        {"file_bytes", file.file_bytes()},
                        {"vocabulary_count", tokenizer == nullptr ? 0 : tokenizer->token_count()},
                        {"has_chat_template", text.chat_template() != nullptr},
                        {"bos", id_of(special.bos)},
                        {"eos", id_of(special.eos)},
                        {"identity", hex_of(file.identity())}});
}

json::Value backend_of(const runtimes::Listed& backend) {
  using runtimes::Exactness;
  const runtimes::Claims claims =
      backend.type != nullptr ? backend.type->claims
                              : runtimes::Claims{runtimes::kRewinds | runtimes::kSnapshots,
                                                 Exactness::bitwise, name(Numerics::exact_1)};
  json::Value capabilities = json::Value::array();
  if ((claims.capabilities & runtimes::kRewinds) != 0) capabilities.push_back("rewind");
  if ((claims.capabilities & runtimes::kSnapshots) != 0) capabilities.push_back("snapshot");
  constexpr std::string_view kExactness[] = {"none", "replay", "bitwise"};
  json::Value found = json::Value::object();
  found["name"] = backend.name;
  found["available"] = backend.why_not.empty();
  found["rank"] = backend.rank;
  found["capabilities"] = std::move(capabilities);
  found["exactness"] = kExactness[size_t(claims.exactness)];
  found["numerics"] = claims.numerics;
  found["why_not"] = backend.why_not;
  return found;
}

std::string backends_json() {
  json::Value all = json::Value::array();
  for (const runtimes::Listed& each : runtimes::list(runtimes::runtime_types())) {
    all.push_back(backend_of(each));
  }
  return json::to_text(all);
}

Result<std::shared_ptr<ModelObject>> open_model(const char* path) {
  if (path == nullptr) return fail(ErrorCode::invalid_argument, "path: expected one, found NULL");
  be_silent();
  CAIRN_TRY(gguf::File file, gguf::File::open(path));
  CAIRN_TRY(std::unique_ptr<ModelText> text, ModelText::load(file));
  std::string info = info_of(file, *text);
  const uint64_t digest = file.digest();
  return std::make_shared<ModelObject>(ModelObject{.path = path,
                                                   .file = std::move(file),
                                                   .digest = digest,
                                                   .text = std::move(text),
                                                   .info = std::move(info)});
}

// The model's vocabulary. Errors: invalid_argument: no such handle; unsupported.
Result<const tokenize::Tokenizer*> vocabulary_of(const ModelObject* model) {
  if (model == nullptr) {
    return fail(ErrorCode::invalid_argument, "model: expected an open one, found none");
  }
  if (const tokenize::Tokenizer* const found = model->text->tokenizer()) return found;
  return fail(ErrorCode::unsupported, "{}: expected a vocabulary, found none", model->path);
}

Status check_flags(uint32_t flags) {
  if ((flags & ~uint32_t(CAIRN_TEXT_BOS | CAIRN_TEXT_SPECIAL)) == 0) return Ok{};
  return fail(ErrorCode::invalid_argument, "flags: expected CAIRN_TEXT_…, found {}", flags);
}

Status check_count(const size_t* count) {
  if (count != nullptr) return Ok{};
  return fail(ErrorCode::invalid_argument, "count: expected a place for it, found NULL");
}

Result<std::vector<Token>> tokenize_text(const ModelObject* model, const char* text, size_t bytes,
                                         uint32_t flags) {
  CAIRN_TRY(const tokenize::Tokenizer* tokenizer, vocabulary_of(model));
  CAIRN_TRY(check_flags(flags));
  CAIRN_TRY(const std::span<const char> given, list_of(text, bytes, "text"));
  return tokenizer->encode(std::string_view(given.data(), given.size()),
                           {.add_special = (flags & CAIRN_TEXT_BOS) != 0,
                            .parse_special = (flags & CAIRN_TEXT_SPECIAL) != 0});
}

Result<std::string> detokenize(const ModelObject* model, const cairn_token* tokens, size_t count,
                               uint32_t flags) {
  CAIRN_TRY(const tokenize::Tokenizer* tokenizer, vocabulary_of(model));
  CAIRN_TRY(check_flags(flags));
  CAIRN_TRY(const std::span<const cairn_token> ids, list_of(tokens, count, "tokens"));
  for (const cairn_token id : ids) {
    if (tokenizer->holds(Token(id))) continue;
    return fail(ErrorCode::invalid_argument, "tokens: expected ids below {}, found {}",
                tokenizer->token_count(), id);
  }
  return tokenize::decode(*tokenizer, tokens_of(ids),
                          {.is_whole_text = (flags & CAIRN_TEXT_BOS) != 0,
                           .show_control = (flags & CAIRN_TEXT_SPECIAL) != 0});
}

Result<std::vector<Token>> render(const ModelObject* model, const char* request, size_t bytes) {
  CAIRN_TRY(const tokenize::Tokenizer* tokenizer, vocabulary_of(model));
  CAIRN_TRY(const std::span<const char> given, list_of(request, bytes, "request_json"));
  const chat::ChatTemplate* const chat_template = model->text->chat_template();
  if (chat_template == nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected a chat template, found none", model->path);
  }
  const tokenize::SpecialTokens& special = tokenizer->special_ids();
  const auto piece = [&](std::optional<Token> token) {
    return token ? tokenizer->piece(*token) : std::string_view();
  };
  CAIRN_TRY(
      const chat::ChatInput input,
      chat::parse_chat_input({given.data(), given.size()}, piece(special.bos), piece(special.eos)));
  CAIRN_TRY(const chat::RenderedPrompt rendered, chat_template->render(input));
  std::vector<tokenize::TextPiece> pieces;
  for (const jinja::OriginSpan& span : rendered.spans) {
    pieces.push_back(
        {std::string_view(rendered.text).substr(span.begin, span.end - span.begin), span.trusted});
  }
  std::vector<Token> tokens = tokenizer->encode(pieces, {.parse_special = true});
  // Most templates write the first token themselves; where they leave it to the model, it is here.
  const bool has_bos = !tokens.empty() && special.bos && tokens.front() == *special.bos;
  if (tokenizer->adds_bos() && special.bos && !has_bos) tokens.insert(tokens.begin(), *special.bos);
  return tokens;
}

Answer hand_out_tokens(const Result<std::vector<Token>>& made, cairn_token* out, size_t capacity,
                       size_t* count) {
  if (!made) return made.error();
  Result<std::vector<Token>> tokens = made;
  return hand_out_list(ids_of(*tokens), out, out == nullptr ? 0 : capacity, count);
}

}  // namespace

}  // namespace cairn::capi

using cairn::capi::Answer;
using cairn::capi::guarded;
using cairn::capi::guarded_value;
using cairn::capi::ModelObject;

uint32_t cairn_version(void) {
  return CAIRN_HEADER_VERSION;
}

const char* cairn_layout_json(void) {
  return guarded_value<const char*>(nullptr, [] { return cairn::capi::layout_json(); });
}

void cairn_set_log(cairn_log_fn fn, void* user, int32_t min_level) {
  guarded_value(0, [&] {
    cairn::capi::set_listener(fn, user, min_level);
    return 0;
  });
}

const char* cairn_backends_json(void) {
  return guarded_value<const char*>("[]", [] {
    static const std::string text = cairn::capi::backends_json();
    return text.c_str();
  });
}

cairn_status cairn_model_open(const char* path, cairn_model** out, cairn_error* e) {
  return guarded(e, [&]() -> Answer {
    if (out == nullptr) return cairn::capi::invalid("out: expected a place, found NULL");
    *out = nullptr;
    auto model = cairn::capi::open_model(path);
    if (!model) return model.error();
    return cairn::capi::hand_out(*model, out);
  });
}

void cairn_model_close(cairn_model* m) {
  guarded_value(0, [&] {
    cairn::capi::take_object<ModelObject>(m);
    return 0;
  });
}

const char* cairn_model_info_json(const cairn_model* m) {
  return guarded_value<const char*>(nullptr, [&]() -> const char* {
    const auto model = cairn::capi::object_of<ModelObject>(m);
    return model == nullptr ? nullptr : model->info.c_str();
  });
}

cairn_status cairn_tokenize(const cairn_model* m, const char* text, size_t bytes, uint32_t flags,
                            cairn_token* out, size_t capacity, size_t* count, cairn_error* e) {
  return guarded(e, [&]() -> Answer {
    if (auto checked = cairn::capi::check_count(count); !checked) return checked;
    *count = 0;
    const auto model = cairn::capi::object_of<ModelObject>(m);
    return cairn::capi::hand_out_tokens(cairn::capi::tokenize_text(model.get(), text, bytes, flags),
                                        out, capacity, count);
  });
}

cairn_status cairn_detokenize(const cairn_model* m, const cairn_token* tokens, size_t token_count,
                              uint32_t flags, char* out, size_t capacity, size_t* bytes,
                              cairn_error* e) {
  return guarded(e, [&]() -> Answer {
    if (auto checked = cairn::capi::check_count(bytes); !checked) return checked;
    *bytes = 0;
    const auto model = cairn::capi::object_of<ModelObject>(m);
    auto text = cairn::capi::detokenize(model.get(), tokens, token_count, flags);
    if (!text) return text.error();
    const std::string& made = *text;
    return cairn::capi::hand_out_list(std::span<const char>(made.data(), made.size()), out,
                                      out == nullptr ? 0 : capacity, bytes);
  });
}

cairn_status cairn_chat_render(const cairn_model* m, const char* request_json, size_t bytes,
                               cairn_token* out, size_t capacity, size_t* count, cairn_error* e) {
  return guarded(e, [&]() -> Answer {
    if (auto checked = cairn::capi::check_count(count); !checked) return checked;
    *count = 0;
    const auto model = cairn::capi::object_of<ModelObject>(m);
    return cairn::capi::hand_out_tokens(cairn::capi::render(model.get(), request_json, bytes), out,
                                        capacity, count);
  });
}

void cairn_sampling_init(const cairn_model* m, cairn_sampling* p, uint32_t struct_size) {
  guarded_value(0, [&] {
    const auto model = cairn::capi::object_of<ModelObject>(m);
    if (model == nullptr) return 0;
    auto suggested = cairn::capi::suggested_sampling(*model);
    if (suggested) cairn::capi::initialise(p, struct_size, *suggested);
    return 0;
  });
}
