// JSON, and what may be wrong in it.
#include "session/program/skip_file.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/sha256.h"
#include "json/value.h"

namespace cairn::session {

namespace {

constexpr size_t kFileBytesMax = size_t(4) << 20;
constexpr int64_t kFormat = 1;

Error wrong(std::string_view path, std::string_view place, std::string_view expected) {
  return fail(ErrorCode::invalid_data, "{}: {}: expected {}", path, place, expected);
}

Result<std::vector<int32_t>> read_layers(std::string_view path, std::string_view place,
                                         const json::Value& object) {
  const json::Value* const list = object.find("layers");
  if (list == nullptr || !list->is_array()) return wrong(path, place, "a list \"layers\"");
  std::vector<int32_t> layers;
  for (const json::Value& item : list->items()) {
    const auto layer = item.as_integer();
    const int64_t least = layers.empty() ? 0 : int64_t(layers.back()) + 1;
    if (!layer || *layer < least || *layer > INT32_MAX) {
      return wrong(path, place, "layers in ascending order, each once");
    }
    layers.push_back(int32_t(*layer));
  }
  return layers;
}

Result<double> read_share(std::string_view path, std::string_view place, const json::Value& object,
                          std::string_view key) {
  const json::Value* const found = object.find(key);
  const auto value = found == nullptr ? std::nullopt : found->as_real();
  if (!value || !(*value >= 0)) return wrong(path, place, fmt::format("a number \"{}\"", key));
  return *value;
}

// The layers of the step that has so many; 0: those that "tuned" means.
Result<std::vector<int32_t>> find_layers(const gguf::File& model, int32_t count) {
  const std::string path = skip_file_path(model.name());
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return fail(ErrorCode::not_found,
                "{}: expected what `cairn tune skip` writes for the model, found no such file",
                path);
  }
  CAIRN_TRY(const std::string text, read_file(path, kFileBytesMax));
  CAIRN_TRY(const SkipFile file, read_skip_file(path, text));
  if (const std::string own = hex_of(model.identity()); own != file.model) {
    return fail(ErrorCode::invalid_data, "{}: expected layers of the model {}, found those of {}",
                path, own, file.model);
  }
  if (count == 0) return file.layers;
  if (size_t(count) <= file.steps.size()) return file.steps[size_t(count) - 1].layers;
  return fail(ErrorCode::invalid_argument, "{}: expected 1 to {} layers to skip, found {}", path,
              file.steps.size(), count);
}

}  // namespace

std::string skip_file_path(std::string_view model_path) {
  constexpr std::string_view kEnding = ".gguf";
  if (model_path.ends_with(kEnding)) model_path.remove_suffix(kEnding.size());
  return std::string(model_path) + ".skip.json";
}

std::string skip_file_text(const SkipFile& file) {
  json::Value steps = json::Value::array();
  for (const SkipStep& step : file.steps) {
    steps.push_back(
        {{"layers", step.layers}, {"kl_divergence", step.divergence}, {"same_top", step.same_top}});
  }
  const json::Value json = {{"skip", kFormat},
                            {"model", file.model},
                            {"tokens", file.token_count},
                            {"layers", file.layers},
                            {"steps", std::move(steps)}};
  return json::to_text(json) + "\n";
}

Result<SkipFile> read_skip_file(std::string_view path, std::string_view text) {
  CAIRN_TRY(const json::Value json, json::read_value(path, text, {}));
  const json::Value* const format = json.find("skip");
  if (format == nullptr || format->as_integer() != kFormat) {
    return wrong(path, "skip", fmt::format("the format's number {}", kFormat));
  }
  SkipFile file;
  const json::Value* const model = json.find("model");
  const auto digest = model == nullptr ? std::nullopt : model->as_text();
  if (!digest) return wrong(path, "model", "a digest");
  file.model = *digest;
  const json::Value* const tokens = json.find("tokens");
  const auto token_count = tokens == nullptr ? std::nullopt : tokens->as_integer();
  if (!token_count || *token_count < 1) return wrong(path, "tokens", "a number of tokens");
  file.token_count = *token_count;
  CAIRN_TRY(file.layers, read_layers(path, "layers", json));
  const json::Value* const steps = json.find("steps");
  if (steps == nullptr || !steps->is_array()) return wrong(path, "steps", "a list");
  for (const json::Value& item : steps->items()) {
    const std::string place = fmt::format("steps[{}]", file.steps.size());
    SkipStep step;
    CAIRN_TRY(step.layers, read_layers(path, place, item));
    if (step.layers.size() != file.steps.size() + 1) {
      return wrong(path, place, fmt::format("{} layers", file.steps.size() + 1));
    }
    CAIRN_TRY(step.divergence, read_share(path, place, item, "kl_divergence"));
    CAIRN_TRY(step.same_top, read_share(path, place, item, "same_top"));
    file.steps.push_back(std::move(step));
  }
  return file;
}

Status set_skipped_layers(std::string_view option, std::string_view text, EngineOptions& options) {
  constexpr std::string_view kTuned = "tuned";
  if (!text.starts_with(kTuned)) {
    CAIRN_TRY(options.program.skipped_layers, models::parse_layer_list(option, text));
    return Ok{};
  }
  std::string_view rest = text.substr(kTuned.size());
  int32_t count = 0;
  if (!rest.empty()) {
    const char* const end = rest.data() + rest.size();
    const auto [last, error] = std::from_chars(rest.data() + 1, end, count);
    if (rest.front() != ':' || error != std::errc() || last != end || count < 1) {
      return fail(ErrorCode::invalid_argument,
                  "{}: expected tuned, or tuned: and a number of layers, found \"{}\"", option,
                  text);
    }
  }
  options.find_skipped_layers = [count](const gguf::File& model) {
    return find_layers(model, count);
  };
  return Ok{};
}

}  // namespace cairn::session
