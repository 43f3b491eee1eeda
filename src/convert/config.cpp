// Defaults are those of transformers' configuration classes, for the keys that conversion reads;
// each family has its own.
#include "convert/config.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "convert/family.h"

namespace cairn::convert {
namespace {

constexpr int64_t kCountMax = int64_t(1) << 31;

constexpr double kRopeBase = 10000;
// Types that only their authors' code knows: what such a file leaves out has no default.
constexpr std::string_view kWithoutLibrary[] = {"baichuan"};
// Of layers with a window, where a model has two bases.
constexpr double kGemma3SlidingBase = 10000, kOlmo3SlidingBase = 500000;

Json number_of(double value) {
  return double(int64_t(value)) == value ? Json(int64_t(value)) : Json(value);
}

// The members of `from` over those of `to`.
void lay_over(Json& to, const Json& from) {
  for (const auto& [key, value] : from.members()) to.set(key, value);
}

Json copy_of_object(const Json* from) {
  Json copy = Json::object();
  if (from != nullptr) lay_over(copy, *from);
  return copy;
}

std::string_view first_class(const Json& json) {
  const Json* classes = json.find("architectures");
  if (classes == nullptr || classes->items().empty()) return {};
  return classes->items()[0].as_text().value_or("");
}

}  // namespace

Result<Config> Config::load(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::is_regular_file(folder, error)) {
    return fail(ErrorCode::invalid_argument, "{}: expected a folder with config.json, found a file",
                folder);
  }
  const std::string path = (std::filesystem::path(folder) / "config.json").string();
  CAIRN_TRY(Json root, read_json_file(path));
  Result<Config> config = from_json(std::move(root));
  if (config) config->folder_ = folder;
  if (config) return config;
  return fail(config.error().code, "{}: {}", path, config.error().message);
}

Result<Config> Config::from_json(Json root) {
  if (!root.is_object()) {
    return fail(ErrorCode::invalid_data, "expected an object, found {}", root.describe());
  }
  Config config;
  config.class_name_ = first_class(root);
  config.model_type_ = root.text_at("model_type").value_or("");
  if (const Json* text = root.find_set("text_config"); text != nullptr && text->is_object()) {
    const Json copy = *text;
    if (!first_class(copy).empty()) config.class_name_ = first_class(copy);
    config.model_type_ = copy.text_at("model_type").value_or(config.model_type_ + "_text");
    lay_over(root, copy);
  }
  if (config.class_name_.empty()) {
    return fail(ErrorCode::invalid_data, "expected a class under architectures, found none");
  }
  // Blocks of MXFP4 are kept as they are, by the family that has them.
  const Json* quantized = root.find_set("quantization_config");
  if (quantized != nullptr && quantized->text_at("quant_method") != "mxfp4") {
    return fail(ErrorCode::unsupported,
                "expected weights that are not quantized, found quantization_config with {}",
                quantized->text_at("quant_method").value_or("no method"));
  }
  config.root_ = std::move(root);
  config.add_defaults();
  config.read_rope();
  return config;
}

bool Config::has_library() const {
  return std::find(std::begin(kWithoutLibrary), std::end(kWithoutLibrary), model_type_) ==
         std::end(kWithoutLibrary);
}

void Config::add_defaults() {
  for (const FamilyGroup* group : all_family_groups()) {
    for (const ConfigDefault& row : group->defaults) {
      // A null stays: it says that there is none.
      if (row.model_type == model_type_ && root_.find(row.key) == nullptr) {
        root_.set(row.key, row.is_flag ? Json(row.value != 0) : number_of(row.value));
      }
    }
  }
  // Copies: what find() gives lies in the object that set() changes.
  const Json* stated = find("num_attention_heads");
  const Json heads = stated == nullptr ? Json() : *stated;
  if (!heads.is_null() && find("num_key_value_heads") == nullptr && has_library()) {
    root_.set("num_key_value_heads", heads);
  }
  const Json* width = find("hidden_size");
  const bool has_head_dim = model_type_ == "llama" || model_type_ == "mistral";
  if (has_head_dim && find("head_dim") == nullptr && width != nullptr) {
    const auto numbers = width->as_integer(), head_count = heads.as_integer();
    if (numbers && head_count && *head_count > 0) {
      root_.set("head_dim", Json(*numbers / *head_count));
    }
  }
}

void Config::read_rope() {
  const Json* stated = find("rope_scaling");
  if (stated == nullptr || stated->members().empty()) stated = find("rope_parameters");
  const bool has_two = model_type_ == "gemma3_text" || model_type_ == "olmo3";
  const Json* full = stated == nullptr ? nullptr : stated->find_set("full_attention");
  const Json* sliding = stated == nullptr ? nullptr : stated->find_set("sliding_attention");
  const bool is_nested = full != nullptr || sliding != nullptr;
  rope_ = copy_of_object(is_nested ? full : stated);
  const auto adopt = [&](std::string_view key) {
    const Json* value = find(key);
    if (value != nullptr && rope_.find_set(key) == nullptr) rope_.set(key, Json(*value));
  };
  adopt("rope_theta");
  adopt("partial_rotary_factor");
  adopt("original_max_position_embeddings");
  states_rope_base_ = rope_.find_set("rope_theta") != nullptr;
  if (!states_rope_base_ && has_library()) rope_.set("rope_theta", number_of(kRopeBase));
  if (const Json* type = rope_.find_set("type"); type && rope_.find_set("rope_type") == nullptr) {
    rope_.set("rope_type", Json(*type));
  }
  if (!has_two) {
    const Json* base = sliding != nullptr ? sliding->find_set("rope_theta") : nullptr;
    if (base != nullptr && base->as_real()) sliding_rope_base_ = base->as_real();
    return;
  }
  const bool is_gemma = model_type_ == "gemma3_text";
  const Json* base = sliding != nullptr ? sliding->find_set("rope_theta") : nullptr;
  if (base == nullptr && is_gemma) base = find("rope_local_base_freq");
  sliding_rope_base_ = is_gemma ? kGemma3SlidingBase : kOlmo3SlidingBase;
  if (base != nullptr && base->as_real()) sliding_rope_base_ = base->as_real();
}

const Json* Config::find(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (const Json* value = root_.find_set(key)) return value;
  }
  return nullptr;
}

Result<std::optional<int64_t>> Config::count_if_set(
    std::initializer_list<std::string_view> keys) const {
  const Json* value = find(keys);
  if (value == nullptr) return std::optional<int64_t>();
  const auto count = value->as_integer();
  if (count && *count >= 0 && *count < kCountMax) return count;
  const auto* key = std::find_if(keys.begin(), keys.end(),
                                 [&](std::string_view known) { return find(known) == value; });
  return fail(ErrorCode::invalid_data, "{}: expected a count below 2^31, found {}", *key,
              value->describe());
}

Result<int64_t> Config::count(std::initializer_list<std::string_view> keys) const {
  CAIRN_TRY(const std::optional<int64_t> count, count_if_set(keys));
  if (count) return *count;
  return fail(ErrorCode::not_found, "expected {} in config.json, found none", *keys.begin());
}

Result<int64_t> Config::positive(std::string_view key) const {
  CAIRN_TRY(const int64_t count, this->count(key));
  if (count > 0) return count;
  return fail(ErrorCode::invalid_data, "{}: expected at least 1, found 0", key);
}

Result<double> Config::number(std::string_view key) const {
  const Json* value = find(key);
  if (value != nullptr && value->as_real()) return *value->as_real();
  return fail(ErrorCode::invalid_data, "{}: expected a number, found {}", key,
              value == nullptr ? "none" : value->describe());
}

}  // namespace cairn::convert
