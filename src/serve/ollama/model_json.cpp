// Sizes, types and capabilities out of the file.
#include "serve/ollama/model_json.h"

#include <fmt/format.h>

#include <chrono>
#include <map>

#include "base/sha256.h"
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

// The type of most of its bytes.
std::string quantization(const gguf::File& file) {
  std::map<uint32_t, size_t> bytes;
  for (const gguf::Tensor& tensor : file.tensors()) bytes[tensor.type_id] += tensor.bytes.size();
  uint32_t most = 0;
  for (const auto& [type, count] : bytes) {
    if (count > bytes[most]) most = type;
  }
  return gguf::type_name(most);
}

std::string created_text(const ServedModel& model) {
  return time_text(std::chrono::system_clock::time_point(std::chrono::seconds(model.created)));
}

json::Value details_json(const ServedModel& model) {
  const Engine& engine = model.engine();
  json::Value families = json::Value::array();
  families.push_back(engine.architecture());
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", engine.architecture()},
          {"families", std::move(families)},
          {"parameter_size", count_text(engine.parameter_count())},
          {"quantization_level", quantization(engine.file())}};
}

// Arrays, such as the vocabulary, are left out, as Ollama does.
json::Value field_json(const gguf::Value& value) {
  if (const auto number = gguf::integer_in(value)) return *number;
  if (const auto number = gguf::real_in(value)) return *number;
  if (const auto flag = gguf::boolean_in(value)) return *flag;
  if (const auto text = gguf::string_in(value)) return chat::as_utf8(*text);
  return {};
}

json::Value capabilities_json(const ServedModel& model) {
  json::Value list = json::Value::array();
  const Engine& engine = model.engine();
  if (!model.makes_text()) {
    list.push_back("embedding");
    return list;
  }
  list.push_back("completion");
  if (engine.tokenizer() != nullptr) {
    const tokenize::SpecialTokens& special = engine.tokenizer()->special_ids();
    if (special.fim_prefix && special.fim_suffix && special.fim_middle) list.push_back("insert");
  }
  const chat::ChatFormat& format = engine.chat_format();
  if (format.call.shape != chat::CallShape::none) list.push_back("tools");
  const bool reasons = !format.reasoning_open.empty() || !format.channels.reasoning_close.empty();
  if (reasons) list.push_back("thinking");
  return list;
}

// A line for each setting, none empty.
std::string parameters_text(const sample::SamplingParams& sampling) {
  std::string text;
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    fmt::format_to(std::back_inserter(text), "{}{:<30} {}", text.empty() ? "" : "\n", field.name,
                   sample::show(sampling, field));
  }
  return text;
}

}  // namespace

std::string model_name(const ServedModel& model) {
  return model.name.find(':') == std::string::npos ? model.name + ":latest" : model.name;
}

json::Value model_json(const ServedModel& model) {
  const gguf::File& file = model.engine().file();
  return {{"name", model_name(model)},          {"model", model_name(model)},
          {"modified_at", created_text(model)}, {"size", file.file_bytes()},
          {"digest", hex_of(file.identity())},  {"details", details_json(model)}};
}

json::Value show_json(const ServedModel& model) {
  const Engine& engine = model.engine();
  json::Value info = json::Value::object();
  for (const gguf::Field& field : engine.file().fields().all()) {
    if (field.key != "tokenizer.chat_template") info[field.key] = field_json(field.value);
  }
  info["general.parameter_count"] = engine.parameter_count();
  const chat::ChatTemplate* const chat_template = engine.chat_template();
  return {{"modelfile", fmt::format("FROM {}", model.name)},
          {"parameters", parameters_text(model.sampling)},
          {"template", chat_template == nullptr ? "" : chat::as_utf8(chat_template->source())},
          {"details", details_json(model)},
          {"model_info", std::move(info)},
          {"capabilities", capabilities_json(model)},
          {"modified_at", created_text(model)}};
}

}  // namespace cairn::serve::ollama
