// llama.cpp's own POST /completion and /infill.
#include <algorithm>
#include <utility>

#include "serve/infill.h"
#include "serve/llama/native_writer.h"
#include "serve/llama/settings_json.h"
#include "serve/routes/adapters.h"
#include "serve/routes/answering.h"
#include "serve/routes/chat_order.h"
#include "serve/text_input.h"

namespace cairn::serve {

namespace {

using Tokens = std::vector<Token>;
using Made = Checked<std::unique_ptr<http::Reply>>;

constexpr size_t kPromptsMax = 128;

// A string, or an object of one; nothing where there are media beside it.
std::optional<std::string_view> prompt_text(const json::Value& prompt) {
  if (!prompt.is_object()) return prompt.as_text();
  if (prompt.find("multimodal_data") != nullptr) return std::nullopt;
  return prompt.text_at("prompt_string");
}

// A text, or texts and ids in turn.
Checked<Tokens> read_prompt(const json::Value& prompt, const tokenize::Tokenizer& tokenizer) {
  Tokens tokens;
  const auto add = [&](std::string_view text, bool is_first) {
    tokenizer.encode_to(
        text, {.add_special = is_first, .parse_special = true, .goes_on = !is_first}, tokens);
  };
  if (const auto text = prompt_text(prompt)) {
    add(*text, true);
    return tokens;
  }
  bool is_first = true;
  for (const json::Value& item : prompt.items()) {
    const auto id = item.is_number() ? item.as_integer() : std::nullopt;
    if (const auto text = item.as_text()) {
      add(*text, is_first);
    } else if (id && *id >= 0 && *id <= INT32_MAX) {
      tokens.push_back(Token(int32_t(*id)));
    } else {
      return refuse_field("prompt", "expected texts and token ids, found {}", item.describe());
    }
    is_first = false;
  }
  return tokens;
}

// A list of texts alone, or with lists in it, is several prompts.
bool has_several_prompts(const json::Value& prompt) {
  const auto& items = prompt.items();
  const auto is_number = [](const json::Value& item) { return item.is_number(); };
  return !items.empty() && std::none_of(items.begin(), items.end(), is_number);
}

Checked<std::vector<Tokens>> read_prompts(const json::Value& prompt,
                                          const tokenize::Tokenizer& tokenizer) {
  std::vector<Tokens> prompts;
  if (!prompt_text(prompt) && !prompt.is_array()) {
    return refuse_field("prompt", "expected a string or a list, found {}", prompt.describe());
  }
  if (!has_several_prompts(prompt)) {
    CAIRN_TRY(Tokens tokens, read_prompt(prompt, tokenizer));
    prompts.push_back(std::move(tokens));
    return prompts;
  }
  if (prompt.items().size() > kPromptsMax) {
    return refuse_field("prompt", "expected at most {} prompts, found {}", kPromptsMax,
                        prompt.items().size());
  }
  for (const json::Value& item : prompt.items()) {
    if (!prompt_text(item) && !item.is_array()) {
      return refuse_field("prompt", "expected strings or lists, found {}", item.describe());
    }
    CAIRN_TRY(Tokens tokens, read_prompt(item, tokenizer));
    prompts.push_back(std::move(tokens));
  }
  return prompts;
}

Checked<std::vector<InfillFile>> read_files(const Body& body) {
  std::vector<InfillFile> files;
  const json::Value* const extra = body.find("input_extra");
  if (extra == nullptr) return files;
  for (const json::Value& item : extra->items()) {
    const auto text = item.text_at("text"), name = item.text_at("filename");
    if (!text || (!name && item.find("filename") != nullptr)) {
      return refuse_field("input_extra", "expected objects with filename and text, found {}",
                          item.describe());
    }
    files.push_back({.name = std::string(name.value_or("file")), .text = std::string(*text)});
  }
  return files;
}

Checked<std::vector<std::string>> read_wanted(const Body& body) {
  std::vector<std::string> names;
  const json::Value* const wanted = body.find("response_fields");
  if (wanted == nullptr) return names;
  for (const json::Value& item : wanted->items()) {
    const auto name = item.as_text();
    if (!name) {
      return refuse_field("response_fields", "expected strings, found {}", item.describe());
    }
    names.emplace_back(*name);
  }
  return names;
}

// What both have in common, behind the prompts.
Made answer_native(const RouteContext& context, http::Request& request, const Body& body,
                   const AnswerSettings& settings, std::vector<Tokens> prompts,
                   llama::NativeStyle style) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(session::AnswerOrder order, make_text_order(context, settings));
  if (const json::Value* const lora = body.find("lora")) {
    CAIRN_TRY(order.adapters, read_adapters(*lora, "lora", engine));
  }
  style.is_stream = settings.is_stream;
  style.returns_tokens = body.is_true("return_tokens");
  style.tells_probabilities = settings.tells_probabilities;
  style.tells_shares = settings.sampling.post_sampling_probs;
  style.top_count = settings.top_count;
  style.model = context.model.name;
  style.settings = llama::settings_json(settings);
  CAIRN_TRY(style.fields, read_wanted(body));
  std::vector<session::AnswerOrder> orders;
  for (Tokens& prompt : prompts) {
    CAIRN_TRY(check_prompt(context, prompt, "prompt"));
    style.prompts.push_back(text_of({.text = std::nullopt, .tokens = prompt}, *engine.tokenizer()));
    order.prompt = std::move(prompt);
    add_orders(settings, order, orders);
  }
  auto writer = std::make_unique<llama::NativeWriter>(std::move(style), engine.tokenizer());
  return begin_answers(context, request, std::move(orders), std::move(writer));
}

Made complete(const RouteContext& context, http::Request& request) {
  CAIRN_TRY(const Body body, Body::read(request.body, kNative));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const AnswerSettings settings, read_answer_settings(body, context.model));
  const json::Value& prompt = *body.find("prompt");
  CAIRN_TRY(std::vector<Tokens> prompts, read_prompts(prompt, *context.model.engine().tokenizer()));
  return answer_native(context, request, body, settings, std::move(prompts),
                       {.is_list = has_several_prompts(prompt)});
}

Made fill_in(const RouteContext& context, http::Request& request) {
  const Engine& engine = context.model.engine();
  CAIRN_TRY(const Body body, Body::read(request.body, kInfill));
  CAIRN_TRY(check_model(context));
  CAIRN_TRY(const AnswerSettings settings, read_answer_settings(body, context.model));
  CAIRN_TRY(const std::vector<InfillFile> files, read_files(body));
  const tokenize::Tokenizer& tokenizer = *engine.tokenizer();
  const Infill gap{
      .before = tokenizer.encode(body.text("input_prefix").value_or(""), {.goes_on = true}),
      .after = body.text("input_suffix").value_or(""),
      .begun = body.text("prompt").value_or(""),
      .files = files};
  const int64_t room =
      engine.options().context_tokens - std::max<int64_t>(settings.token_count_max, 1);
  CAIRN_TRY(InfillPrompt prompt, encode_infill(tokenizer, gap, room));
  std::vector<Tokens> prompts;
  prompts.push_back(std::move(prompt.tokens));
  return answer_native(context, request, body, settings, std::move(prompts),
                       {.left_out_files = prompt.left_out_files});
}

}  // namespace

std::unique_ptr<http::Reply> post_native(const RouteContext& context, http::Request& request) {
  return reply_of(complete(context, request));
}

std::unique_ptr<http::Reply> post_infill(const RouteContext& context, http::Request& request) {
  return reply_of(fill_in(context, request));
}

}  // namespace cairn::serve
