// Ollama's POST /api/chat, /api/generate, /api/embed, /api/embeddings and /api/show, and GET
// /api/tags, /api/ps and /api/version; LM Studio's GET /api/v0/models.
#include <chrono>
#include <utility>

#include "serve/infill.h"
#include "serve/ollama/answer_writer.h"
#include "serve/ollama/chat_request.h"
#include "serve/ollama/model_json.h"
#include "serve/routes/answering.h"
#include "serve/routes/embedding.h"
#include "serve/text_input.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

// 0, "0", "0s": the model may be forgotten.
bool wants_unload(const Body& body) {
  const json::Value* const keep = body.find("keep_alive");
  if (keep == nullptr) return false;
  if (const auto text = keep->as_text()) {
    return text->starts_with('0') && text->find_first_of("123456789") == std::string_view::npos;
  }
  return keep->as_real() == 0.0;
}

// Without a question a client wants to have the model loaded, or unloaded: it always is loaded.
std::unique_ptr<http::Reply> loaded_reply(const RouteContext& context, const Body& body,
                                          bool is_chat) {
  json::Value json = {{"model", ollama::model_name(context.model)},
                      {"created_at", ollama::time_text(std::chrono::system_clock::now())}};
  if (is_chat) {
    json["message"] = {{"role", "assistant"}, {"content", ""}};
  } else {
    json["response"] = "";
  }
  json["done"] = true;
  json["done_reason"] = wants_unload(body) ? "unload" : "load";
  http::ReplyHead head;
  const bool is_stream = body.is_true("stream", true);
  if (is_stream) head.content_type = "application/x-ndjson";
  return std::make_unique<http::WholeReply>(std::move(head),
                                            json::to_text(json) + (is_stream ? "\n" : ""));
}

Made begin_lines(const RouteContext& context, http::Request& request,
                 const AnswerSettings& settings, session::AnswerOrder order,
                 ollama::AnswerStyle style) {
  const Engine& engine = context.model.engine();
  style.is_stream = settings.is_stream;
  style.tells_probabilities = settings.tells_probabilities;
  style.top_count = settings.top_count;
  style.model = ollama::model_name(context.model);
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
  if (asked.messages.empty()) return loaded_reply(context, body, true);
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
  const bool has_suffix = !body.text("suffix").value_or("").empty();
  if (body.text("prompt").value_or("").empty() && !has_suffix) {
    return loaded_reply(context, body, false);
  }
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
  CAIRN_TRY(order.texts, read_vector_texts(context, body, order.field, order.truncates));
  const std::optional<int64_t> dimensions = body.integer("dimensions");
  order.write = [name = ollama::model_name(context.model), dimensions, begin_time, is_older](
                    std::vector<Embedding>& vectors, int64_t token_count, std::string& out) {
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
    const std::chrono::nanoseconds taken = Clock::now() - begin_time;
    fmt::format_to(std::back_inserter(out),
                   R"(],"total_duration":{},"load_duration":0,"prompt_eval_count":{}}})",
                   taken.count(), token_count);
  };
  return begin_vectors(context, request, std::move(order));
}

}  // namespace

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

std::unique_ptr<http::Reply> post_ollama_show(const ServerContext& context, http::Request& request) {
  const Checked<Body> body = Body::read(request.body, kOllamaShow);
  if (!body) return refusal_reply(body.error(), ErrorForm::ollama);
  return json_reply(json::to_text(ollama::show_json(*context.only_model)));
}

std::unique_ptr<http::Reply> get_ollama_tags(const ServerContext& context, http::Request&) {
  json::Value list = json::Value::array();
  list.push_back(ollama::model_json(*context.only_model));
  return json_reply(json::to_text({{"models", std::move(list)}}));
}

std::unique_ptr<http::Reply> get_ollama_ps(const ServerContext& context, http::Request&) {
  json::Value model = ollama::model_json(*context.only_model);
  // It stays.
  model["expires_at"] = "2200-01-01T00:00:00Z";
  model["size_vram"] = 0;
  model["context_length"] = context.only_model->engine().options().context_tokens;
  json::Value list = json::Value::array();
  list.push_back(std::move(model));
  return json_reply(json::to_text({{"models", std::move(list)}}));
}

std::unique_ptr<http::Reply> get_studio_models(const ServerContext& context, http::Request&) {
  const int32_t context_tokens = context.only_model->engine().options().context_tokens;
  const json::Value known = ollama::model_json(*context.only_model);
  json::Value capabilities = json::Value::array();
  const json::Value shown = ollama::show_json(*context.only_model);
  for (const json::Value& one : shown.find("capabilities")->items()) {
    if (one.as_text() == "tools") capabilities.push_back("tool_use");
  }
  json::Value model = {{"id", context.only_model->name},
                       {"object", "model"},
                       {"type", context.only_model->makes_text() ? "llm" : "embeddings"},
                       {"publisher", "cairn"},
                       {"arch", context.only_model->engine().architecture()},
                       {"compatibility_type", "gguf"},
                       {"quantization", *known.find("details")->find("quantization_level")},
                       {"state", "loaded"},
                       {"max_context_length", context_tokens},
                       {"loaded_context_length", context_tokens},
                       {"capabilities", std::move(capabilities)}};
  json::Value list = json::Value::array();
  list.push_back(std::move(model));
  return json_reply(json::to_text({{"object", "list"}, {"data", std::move(list)}}));
}

std::unique_ptr<http::Reply> get_ollama_version(const ServerContext&, http::Request&) {
  return json_reply(R"({"version":")" CAIRN_VERSION R"("})");
}

}  // namespace cairn::serve
