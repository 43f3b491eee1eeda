// Ollama's POST /api/chat, /api/generate, /api/embed, /api/embeddings and /api/show, and GET
// /api/tags, /api/ps and /api/version; LM Studio's GET /api/v0/models.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/model_text.h"
#include "serve/infill.h"
#include "serve/ollama/answer_writer.h"
#include "serve/ollama/chat_request.h"
#include "serve/ollama/keep_alive.h"
#include "serve/ollama/model_json.h"
#include "serve/routes/answering.h"
#include "serve/routes/embedding.h"
#include "serve/text_input.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

// The model stays in memory as long as the request says.
Checked<Ok> keep(const RouteContext& context, const Body& body) {
  CAIRN_TRY(const auto time, ollama::read_keep_alive(body));
  if (time) context.models->keep_for(context.model, *time);
  return Ok{};
}

// Without a question a client wants to have the model loaded, or unloaded; one that always stays is
// loaded in any case.
Made loaded_reply(const RouteContext& context, const Body& body) {
  CAIRN_TRY(const auto time, ollama::read_keep_alive(body));
  return ollama_loaded_reply(context.model.name, body, time && time->count() == 0,
                             context.load_time);
}

Made begin_lines(const RouteContext& context, http::Request& request,
                 const AnswerSettings& settings, session::AnswerOrder order,
                 ollama::AnswerStyle style) {
  const Engine& engine = context.model.engine();
  style.is_stream = settings.is_stream;
  style.tells_probabilities = settings.tells_probabilities;
  style.top_count = settings.top_count;
  style.model = ollama::model_name(context.model.name);
  style.load_time = context.load_time;
  std::vector<session::AnswerOrder> orders;
  add_orders(settings, std::move(order), orders);
  auto writer = std::make_unique<ollama::AnswerLines>(std::move(style), engine.tokenizer(),
                                                      &engine.chat_format());
  return begin_answers(context, request, std::move(orders), std::move(writer));
}

Made chat(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kOllamaChat));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const AnswerSettings settings, ollama::read_settings(body, context.model));
  CAIRN_TRY(const ChatRequest asked,
            ollama::read_chat_request(body, context.model.engine().chat_format()));
  CAIRN_TRY(keep(context, body));
  if (asked.messages.empty()) return loaded_reply(context, body);
  CAIRN_TRY(session::AnswerOrder order, make_chat_order(context, asked, settings));
  return begin_lines(context, request, settings, std::move(order),
                     {.message_count = asked.messages.size()});
}

// The text as it is, or what stands in a gap.
Checked<std::vector<Token>> encode_plain(const Engine& engine, const Body& body) {
  const std::string_view prompt = body.text("prompt").value_or("");
  const tokenize::Tokenizer& tokenizer = *engine.tokenizer();
  const auto suffix = body.text("suffix");
  if (!suffix || suffix->empty()) {
    return tokenizer.encode(prompt, {.add_special = true, .parse_special = true});
  }
  const Infill gap{.before = tokenizer.encode(prompt, {.goes_on = true}), .after = *suffix};
  CAIRN_TRY(InfillPrompt infill, encode_infill(tokenizer, gap, INT64_MAX));
  return std::move(infill.tokens);
}

// The tokens of an earlier reply go before the prompt's, which begins no new text then.
Checked<Ok> go_on(const RouteContext& context, const Body& body, session::AnswerOrder& order) {
  const json::Value* const list = body.find("context");
  if (list == nullptr || list->items().empty()) return Ok{};
  CAIRN_TRY(std::vector<Token> tokens, read_tokens(*list, "context"));
  const std::optional<Token> bos = context.model.engine().tokenizer()->special_ids().bos;
  const bool begins = !order.prompt.empty() && order.prompt.front() == bos;
  tokens.insert(tokens.end(), order.prompt.begin() + (begins ? 1 : 0), order.prompt.end());
  CAIRN_TRY(check_prompt(context, tokens, "context"));
  order.prompt = std::move(tokens);
  order.message_starts.clear();
  return Ok{};
}

Made generate(const RouteContext& context, http::Request& request) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(const Body body, Body::read(request.body, kOllamaGenerate));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const AnswerSettings settings, ollama::read_settings(body, context.model));
  CAIRN_TRY(keep(context, body));
  const bool has_suffix = !body.text("suffix").value_or("").empty();
  if (!ollama::has_question(body)) return loaded_reply(context, body);
  if (!body.text("template").value_or("").empty()) {
    return refuse_field("template", "expected none: only the model's own is used");
  }
  if (body.is_true("raw") || has_suffix) {
    CAIRN_TRY(session::AnswerOrder order, make_text_order(context, settings));
    CAIRN_TRY(order.prompt, encode_plain(engine, body));
    CAIRN_TRY(check_prompt(context, order.prompt, "prompt"));
    return begin_lines(context, request, settings, std::move(order), {.is_chat = false});
  }
  CAIRN_TRY(const ChatRequest asked, ollama::read_generate_request(body));
  CAIRN_TRY(session::AnswerOrder order, make_chat_order(context, asked, settings));
  CAIRN_TRY(go_on(context, body, order));
  ollama::AnswerStyle style{.is_chat = false, .message_count = asked.messages.size()};
  style.context = order.prompt;
  return begin_lines(context, request, settings, std::move(order), std::move(style));
}

// `is_older`: one text under another name, and its vector alone.
Made embed(const RouteContext& context, http::Request& request, bool is_older) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin_time = Clock::now();
  CAIRN_TRY(const Body body, Body::read(request.body, kOllamaEmbed));
  VectorOrder order{.truncates = body.is_true("truncate", true),
                    .field = is_older ? "prompt" : "input",
                    .form = ErrorForm::ollama};
  if (body.find(order.field) == nullptr) {
    return refuse_field(order.field, "expected a text, found none");
  }
  CAIRN_TRY(keep(context, body));
  CAIRN_TRY(order.texts, read_vector_texts(context, body, order.field, order.truncates));
  const std::optional<int64_t> dimensions = body.integer("dimensions");
  order.write = [name = ollama::model_name(context.model.name), dimensions, begin_time, is_older,
                 load_time = context.load_time](std::vector<Embedding>& vectors,
                                                int64_t token_count, std::string& out) {
    if (is_older) {
      out += R"({"embedding":)";
      append_vector(vectors.front().values, dimensions, false, out);
      out += '}';
      return;
    }
    out += R"({"model":)" + json::to_text(json::Value(name)) + R"(,"embeddings":[)";
    for (size_t index = 0; index < vectors.size(); ++index) {
      if (index > 0) out += ',';
      append_vector(vectors[index].values, dimensions, false, out);
    }
    const std::chrono::nanoseconds taken = Clock::now() - begin_time + load_time;
    out += fmt::format(R"(],"total_duration":{},"load_duration":{},"prompt_eval_count":{}}})",
                       taken.count(), load_time.count(), token_count);
  };
  return begin_vectors(context, request, std::move(order));
}

// What takes a file to find out. Of a model in memory the engine has it open.
struct OpenModel {
  std::optional<gguf::File> own_file;
  std::unique_ptr<ModelText> own_text;
  const gguf::File* file = nullptr;
  const ModelText* text = nullptr;
};

Checked<OpenModel> open_model(const ServerContext& context, const ModelRegistry::Listed& listed) {
  OpenModel open;
  if (listed.model != nullptr) {
    open.file = &listed.model->engine().file();
    open.text = &listed.model->engine().text();
    return open;
  }
  const auto& digests = listed.source->digests;
  const auto is_expected = [](const std::string& digest) { return !digest.empty(); };
  if (std::any_of(digests.begin(), digests.end(), is_expected)) {
    return Refusal{.status = 404,
                   .type = "not_found_error",
                   .code = "model_not_loaded",
                   .message = fmt::format("model: expected one that is loaded, found {}, whose "
                                          "digest is looked at when it is loaded",
                                          listed.source->name),
                   .field = "model"};
  }
  const auto refusal = [&](const Error& error) { return load_refusal(*listed.source, error); };
  Result<gguf::File> file = context.models->open(*listed.source);
  if (!file) return refusal(file.error());
  open.own_file.emplace(std::move(file).value());
  Result<std::unique_ptr<ModelText>> text = ModelText::load(*open.own_file);
  if (!text) return refusal(text.error());
  open.own_text = std::move(text).value();
  open.text = open.own_text.get();
  return open;
}

const gguf::File& file_of(const OpenModel& open) {
  return open.file != nullptr ? *open.file : *open.own_file;
}

Made show(const ServerContext& context, http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kOllamaShow));
  const std::string_view name = body.text("model").value_or(body.text("name").value_or(""));
  CAIRN_TRY(ModelRegistry::Entry* const entry, context.models->find(name));
  const ModelRegistry::Listed listed = context.models->look(entry);
  CAIRN_TRY(const OpenModel open, open_model(context, listed));
  sample::SamplingParams sampling;
  if (listed.model != nullptr) {
    sampling = listed.model->sampling;
  } else {
    CAIRN_TRY(sampling, context.models->sampling_of(*listed.source, file_of(open)));
  }
  return json_reply(
      json::to_text(ollama::show_json(*listed.source, file_of(open), *open.text, sampling)));
}

// When the model goes, if nobody asks for it until then.
std::string expiry_text(std::chrono::milliseconds stays) {
  if (stays.count() < 0) return "2200-01-01T00:00:00Z";
  return ollama::time_text(std::chrono::system_clock::now() + stays);
}

// Of one that cannot be opened nothing is known.
json::Value studio_json(const ServerContext& context, const ModelRegistry::Listed& listed) {
  const ModelCard& card = listed.source->card;
  json::Value capabilities = json::Value::array();
  if (Checked<OpenModel> open = open_model(context, listed)) {
    const json::Value shown = ollama::capabilities_json(*listed.source, *open->text);
    for (const json::Value& one : shown.items()) {
      if (one.as_text() == "tools") capabilities.push_back("tool_use");
    }
  }
  const bool is_loaded = listed.model != nullptr;
  json::Value model = {{"id", listed.source->name},
                       {"object", "model"},
                       {"type", card.makes_text ? "llm" : "embeddings"},
                       {"publisher", "cairn"},
                       {"arch", card.architecture},
                       {"compatibility_type", "gguf"},
                       {"quantization", card.quantization},
                       {"state", is_loaded ? "loaded" : "not-loaded"},
                       {"max_context_length", card.context_tokens},
                       {"capabilities", std::move(capabilities)}};
  if (is_loaded) {
    model["loaded_context_length"] = listed.model->engine().options().context_tokens;
  }
  return model;
}

}  // namespace

std::unique_ptr<http::Reply> ollama_loaded_reply(const std::string& model, const Body& body,
                                                 bool is_unloaded,
                                                 std::chrono::nanoseconds load_time) {
  json::Value json = {{"model", ollama::model_name(model)},
                      {"created_at", ollama::time_text(std::chrono::system_clock::now())}};
  if (body.endpoint() == kOllamaChat) {
    json["message"] = {{"role", "assistant"}, {"content", ""}};
  } else {
    json["response"] = "";
  }
  json["done"] = true;
  json["done_reason"] = is_unloaded ? "unload" : "load";
  if (load_time.count() > 0) {
    json["total_duration"] = json["load_duration"] = load_time.count();
  }
  http::ReplyHead head;
  const bool is_stream = body.is_true("stream", true);
  if (is_stream) head.content_type = "application/x-ndjson";
  return std::make_unique<http::WholeReply>(std::move(head),
                                            json::to_text(json) + (is_stream ? "\n" : ""));
}

std::unique_ptr<http::Reply> post_ollama_chat(const RouteContext& context, http::Request& request) {
  return reply_of(chat(context, request), ErrorForm::ollama);
}

std::unique_ptr<http::Reply> post_ollama_generate(const RouteContext& context,
                                                  http::Request& request) {
  return reply_of(generate(context, request), ErrorForm::ollama);
}

std::unique_ptr<http::Reply> post_ollama_embed(const RouteContext& context,
                                               http::Request& request) {
  return reply_of(embed(context, request, false), ErrorForm::ollama);
}

std::unique_ptr<http::Reply> post_ollama_embeddings(const RouteContext& context,
                                                    http::Request& request) {
  return reply_of(embed(context, request, true), ErrorForm::ollama);
}

std::unique_ptr<http::Reply> post_ollama_show(const ServerContext& context,
                                              http::Request& request) {
  return reply_of(show(context, request), ErrorForm::ollama);
}

std::unique_ptr<http::Reply> get_ollama_tags(const ServerContext& context, http::Request&) {
  json::Value list = json::Value::array();
  for (const ModelRegistry::Listed& listed : context.models->list()) {
    list.push_back(ollama::model_json(*listed.source, context.models->digest_of(listed)));
  }
  return json_reply(json::to_text({{"models", std::move(list)}}));
}

std::unique_ptr<http::Reply> get_ollama_ps(const ServerContext& context, http::Request&) {
  json::Value list = json::Value::array();
  for (const ModelRegistry::Listed& listed : context.models->list()) {
    if (listed.model == nullptr) continue;
    json::Value model = ollama::model_json(*listed.source, context.models->digest_of(listed));
    if (listed.counted_bytes > 0) model["size"] = listed.counted_bytes;
    model["expires_at"] = expiry_text(listed.stays);
    model["size_vram"] = 0;
    model["context_length"] = listed.model->engine().options().context_tokens;
    list.push_back(std::move(model));
  }
  return json_reply(json::to_text({{"models", std::move(list)}}));
}

std::unique_ptr<http::Reply> get_studio_models(const ServerContext& context, http::Request&) {
  json::Value list = json::Value::array();
  for (const ModelRegistry::Listed& listed : context.models->list()) {
    list.push_back(studio_json(context, listed));
  }
  return json_reply(json::to_text({{"object", "list"}, {"data", std::move(list)}}));
}

std::unique_ptr<http::Reply> get_ollama_version(const ServerContext&, http::Request&) {
  return json_reply(R"({"version":")" CAIRN_VERSION R"("})");
}

}  // namespace cairn::serve
