// Item by item.
#include "serve/openai/responses_items.h"

#include <fmt/format.h>

#include <string>
#include <unordered_set>
#include <utility>

namespace cairn::serve::openai {

namespace {

json::Value parts_of(std::string_view text, bool is_told) {
  json::Value part = {{"type", is_told ? "output_text" : "input_text"}, {"text", text}};
  if (is_told) part["annotations"] = json::Value::array();
  json::Value parts = json::Value::array();
  parts.push_back(std::move(part));
  return parts;
}

std::string_view prefix_of(std::string_view type) {
  if (type == "message") return "msg";
  if (type == "reasoning") return "rs";
  return type == "function_call" ? "fc" : "fco";
}

// An id that was sent is kept where none before it is the same, so that pages of items end.
InputItem item_of(const json::Value& sent, std::string_view response_id, size_t index,
                  std::unordered_set<std::string>& ids) {
  const std::string type(sent.text_at("type").value_or("message"));
  std::string id(sent.text_at("id").value_or(""));
  if (id.empty() || !ids.insert(id).second)
    id = fmt::format("{}_{}_input_{}", prefix_of(type), response_id, index);
  json::Value item = sent;
  item["id"] = id;
  item["type"] = type;
  if (!sent.text_at("status")) item["status"] = "completed";
  const auto text = sent.text_at("content");
  if (type == "message" && text) {
    item["content"] = parts_of(*text, sent.text_at("role") == "assistant");
  }
  if (type == "reasoning" && sent.find_set("summary") == nullptr) {
    item["summary"] = json::Value::array();
  }
  return {.id = std::move(id), .text = json::to_text(item)};
}

}  // namespace

std::vector<InputItem> input_items(const json::Value& input, std::string_view response_id) {
  std::vector<InputItem> items;
  std::unordered_set<std::string> ids;
  if (const auto text = input.as_text()) {
    items.push_back(item_of({{"role", "user"}, {"content", *text}}, response_id, 0, ids));
  }
  for (size_t index = 0; index < input.items().size(); ++index) {
    items.push_back(item_of(input.items()[index], response_id, index, ids));
  }
  return items;
}

}  // namespace cairn::serve::openai
