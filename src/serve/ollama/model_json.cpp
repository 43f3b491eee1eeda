// Sizes, types and capabilities out of the file.
#include "serve/ollama/model_json.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "chat/conversation.h"
#include "gguf/gguf.h"
#include "serve/ollama/answer_writer.h"

namespace cairn::serve::ollama {

namespace {

std::string count_text(int64_t count) {
  const double value = double(count);
  if (value >= 1e9) return fmt::format("{:.1f}B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f}M", value / 1e6);
  return fmt::format("{:.1f}K", value / 1e3);
}

std::string created_text(const ModelSource& model) {
  return time_text(std::chrono::system_clock::time_point(std::chrono::seconds(model.modified)));
}

json::Value details_json(const ModelSource& model) {
  const ModelCard& card = model.card;
  json::Value families = json::Value::array();
  families.push_back(card.architecture);
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", card.architecture},
          {"families", std::move(families)},
          {"parameter_size", count_text(card.parameter_count)},
          {"quantization_level", card.quantization}};
}

// Arrays, such as the vocabulary, are left out, as Ollama does.
json::Value field_json(const gguf::Value& value) {
  if (const auto number = gguf::integer_in(value)) return *number;
  if (const auto number = gguf::real_in(value)) return *number;
  if (const auto flag = gguf::boolean_in(value)) return *flag;
  if (const auto text = gguf::string_in(value)) return chat::as_utf8(*text);
  return {};
}

// A line for each setting, none empty.
std::string parameters_text(const sample::SamplingParams& sampling) {
  std::string text;
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    text += fmt::format("{}{:<30} {}", text.empty() ? "" : "\n", field.name,
                        sample::show(sampling, field));
  }
  return text;
}

}  // namespace

std::string model_name(const std::string& name) {
  return name.find(':') == std::string::npos ? name + ":latest" : name;
}

json::Value model_json(const ModelSource& model, const std::string& digest) {
  const std::string name = model_name(model.name);
  return {{"name", name},
          {"model", name},
          {"modified_at", created_text(model)},
          {"size", model.card.file_bytes},
          {"digest", digest},
          {"details", details_json(model)}};
}

json::Value capabilities_json(const ModelSource& model, const ModelText& text) {
  json::Value list = json::Value::array();
  if (!model.card.makes_text) {
    list.push_back("embedding");
    return list;
  }
  list.push_back("completion");
  if (text.tokenizer() != nullptr) {
    const tokenize::SpecialTokens& special = text.tokenizer()->special_ids();
    if (special.fim_prefix && special.fim_suffix && special.fim_middle) list.push_back("insert");
  }
  const chat::ChatFormat& format = text.chat_format();
  if (format.call.shape != chat::CallShape::none) list.push_back("tools");
  const bool reasons = !format.reasoning_open.empty() || !format.channels.reasoning_close.empty();
  if (reasons) list.push_back("thinking");
  return list;
}

json::Value show_json(const ModelSource& model, const gguf::File& file, const ModelText& text,
                      const sample::SamplingParams& sampling) {
  json::Value info = json::Value::object();
  for (const gguf::Field& field : file.fields().all()) {
    if (field.key != "tokenizer.chat_template") info[field.key] = field_json(field.value);
  }
  info["general.parameter_count"] = model.card.parameter_count;
  const chat::ChatTemplate* const chat_template = text.chat_template();
  return {{"modelfile", fmt::format("FROM {}", model.name)},
          {"parameters", parameters_text(sampling)},
          {"template", chat_template == nullptr ? "" : chat::as_utf8(chat_template->source())},
          {"details", details_json(model)},
          {"model_info", std::move(info)},
          {"capabilities", capabilities_json(model, text)},
          {"modified_at", created_text(model)}};
}

}  // namespace cairn::serve::ollama
