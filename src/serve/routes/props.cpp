// llama.cpp's GET /props, /slots and /lora-adapters, and POST /lora-adapters.
#include <cmath>
#include <utility>

#include "chat/conversation.h"
#include "serve/llama/settings_json.h"
#include "serve/routes/adapters.h"
#include "serve/routes/answering.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

std::string piece_of(const tokenize::Tokenizer* tokenizer, std::optional<Token> token) {
  return token ? chat::as_utf8(tokenizer->piece(*token)) : std::string();
}

json::Value slot_json(int64_t id, int32_t context_tokens, bool is_processing) {
  return {{"id", id},
          {"n_ctx", context_tokens},
          {"speculative", false},
          {"is_processing", is_processing}};
}

json::Value adapters_json(const RouteContext& context) {
  const std::span<const AdapterUse> loaded = context.model.engine().adapters();
  const std::optional<std::vector<AdapterUse>> changed = context.model.adapters->get();
  json::Value list = json::Value::array();
  for (size_t id = 0; id < loaded.size(); ++id) {
    // Of a file's path nobody is told more than its name.
    list.push_back({{"id", id},
                    {"name", loaded[id].name},
                    {"path", loaded[id].name},
                    {"scale", double(changed ? (*changed)[id].scale : loaded[id].scale)}});
  }
  return list;
}

Made set_adapters(const RouteContext& context, http::Request& request) {
  const size_t first = request.body.find_first_not_of(" \t\r\n");
  const bool is_list = first != std::string::npos && request.body[first] == '[';
  const std::string text = is_list ? "{\"adapters\":" + request.body + "}" : request.body;
  CAIRN_TRY(const Body body, Body::read(text, kAdapters));
  CAIRN_TRY(std::vector<AdapterUse> uses,
            read_adapters(*body.find("adapters"), "adapters", context.model.engine()));
  context.model.adapters->set(std::move(uses));
  return json_reply(R"({"success":true})");
}

}  // namespace

Checked<std::vector<AdapterUse>> read_adapters(const json::Value& list, std::string_view field,
                                               const Engine& engine) {
  std::vector<AdapterUse> uses(engine.adapters().begin(), engine.adapters().end());
  for (AdapterUse& use : uses) use.scale = 0;
  for (const json::Value& item : list.items()) {
    const json::Value *const id = item.find("id"), *const scale = item.find("scale");
    const auto index = id == nullptr ? std::nullopt : id->as_integer();
    const auto value = scale == nullptr ? std::nullopt : scale->as_real();
    if (!index || !value || !std::isfinite(float(*value))) {
      return refuse_field(field, "expected objects with id and scale, found {}", item.describe());
    }
    if (*index < 0 || *index >= int64_t(uses.size())) {
      return refuse_field(field, "expected ids below {}, found {}", uses.size(), *index);
    }
    uses[size_t(*index)].scale = float(*value);
  }
  return uses;
}

std::unique_ptr<http::Reply> get_props(const RouteContext& context, http::Request&) {
  const Engine& engine = context.model.engine();
  const tokenize::Tokenizer* const tokenizer = engine.tokenizer();
  const AnswerSettings settings{.sampling = context.model.sampling};
  json::Value defaults = {{"n_ctx", engine.options().context_tokens},
                          {"params", llama::settings_json(settings)}};
  json::Value json = {{"default_generation_settings", std::move(defaults)},
                      {"total_slots", context.slots->all_max()},
                      {"model_alias", context.model.name},
                      {"model_path", context.model.name},
                      {"modalities", {{"vision", false}, {"audio", false}}},
                      {"endpoint_slots", true},
                      {"endpoint_props", false},
                      {"endpoint_metrics", true},
                      {"is_sleeping", false},
                      {"build_info", "cairn-" CAIRN_VERSION}};
  if (!engine.program().is_default()) json["program"] = engine.program().text();
  const chat::ChatTemplate* const chat_template = engine.chat_template();
  json["chat_template"] = chat_template == nullptr ? "" : chat::as_utf8(chat_template->source());
  if (tokenizer != nullptr) {
    json["bos_token"] = piece_of(tokenizer, tokenizer->special_ids().bos);
    json["eos_token"] = piece_of(tokenizer, tokenizer->special_ids().eos);
  }
  return json_reply(json::to_text(json));
}

// There are no places that answers stay in: one for each that is being made, and one that is free.
std::unique_ptr<http::Reply> get_slots(const RouteContext& context, http::Request& request) {
  const Slots& slots = *context.slots;
  const int32_t busy = request.sees_all ? slots.count() : slots.count(request.client);
  const bool has_room = busy < (request.sees_all ? slots.all_max() : slots.client_max());
  if (!has_room && request.head.query.find("fail_on_no_slot=1") != std::string::npos) {
    return refusal_reply({.status = 503,
                          .type = "unavailable_error",
                          .message = "the server answers as many requests as it may",
                          .headers = {{"retry-after", "1"}}});
  }
  const int32_t context_tokens = context.model.engine().options().context_tokens;
  json::Value list = json::Value::array();
  for (int32_t id = 0; id < busy; ++id) list.push_back(slot_json(id, context_tokens, true));
  if (has_room) list.push_back(slot_json(busy, context_tokens, false));
  return json_reply(json::to_text(list));
}

std::unique_ptr<http::Reply> get_adapters(const RouteContext& context, http::Request&) {
  return json_reply(json::to_text(adapters_json(context)));
}

std::unique_ptr<http::Reply> post_adapters(const RouteContext& context, http::Request& request) {
  return reply_of(set_adapters(context, request));
}

}  // namespace cairn::serve
