// The hyperparameters of a model directory (config.json) as its library would read them: what
// stands under text_config lies on top, what is left out has the default of the model type, and the
// many spellings of rotary parameters are one. Knows nothing of GGUF.
// Thread-safe: constant once loaded.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "convert/json.h"

namespace cairn::convert {

class Config {
 public:
  // Errors: not_found, invalid_data, unsupported (weights that are quantized already).
  static Result<Config> load(const std::string& folder);
  static Result<Config> from_json(Json root);

  std::string_view class_name() const { return class_name_; }  // "LlamaForCausalLM".
  std::string_view model_type() const { return model_type_; }
  const std::string& folder() const { return folder_; }  // Empty: read from no file.

  // The first of the keys that has a value; null if none has.
  const Json* find(std::initializer_list<std::string_view> keys) const;
  const Json* find(std::string_view key) const { return root_.find_set(key); }

  // A value that has to be there. Errors: not_found, invalid_data (not a count, not a number).
  Result<int64_t> count(std::initializer_list<std::string_view> keys) const;
  Result<int64_t> count(std::string_view key) const { return count({key}); }
  Result<int64_t> positive(std::string_view key) const;  // A count that is not 0.
  Result<double> number(std::string_view key) const;
  // One that may be missing.
  Result<std::optional<int64_t>> count_if_set(std::initializer_list<std::string_view> keys) const;

  // Rotary parameters of layers that see everything, and the base of those with a window.
  const Json& rope() const { return rope_; }
  bool states_rope_base() const { return states_rope_base_; }  // Or it is the usual 10000.
  std::optional<double> sliding_rope_base() const { return sliding_rope_base_; }

 private:
  Config() = default;
  bool has_library() const;
  void add_defaults();
  void read_rope();

  Json root_, rope_;
  bool states_rope_base_ = true;
  std::optional<double> sliding_rope_base_;
  std::string class_name_, model_type_, folder_;
};

}  // namespace cairn::convert
