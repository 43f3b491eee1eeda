// Hyperparameters of config.json as the metadata of a GGUF file: what a family's function writes
// them with, and the list that most families have. The order of the keys is the usual converter's.
// Knows no tensor and no tokenizer. Thread rule: one thread for each writer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "convert/config.h"
#include "convert/family.h"
#include "convert/key_values.h"

namespace cairn::convert {

// More layers than this are refused where they are counted one by one.
constexpr int64_t kLayerCountMax = 1 << 16;

class ParameterWriter {
 public:
  // Names of config.json that mean the same; the first that has a value counts.
  using Keys = std::initializer_list<std::string_view>;

  // `layers_in_file`: those that the planned tensors are of.
  ParameterWriter(const Config& config, const Family& family, uint32_t file_type,
                  int64_t layers_in_file, KeyValues& out)
      : config_(config),
        architecture_(family.architecture),
        file_type_(file_type),
        layers_in_file_(layers_in_file),
        out_(out) {}

  const Config& config() const { return config_; }
  int64_t layers_in_file() const { return layers_in_file_; }
  KeyValues& out() { return out_; }

  // Under the architecture's name.
  void set(std::string_view name, MetaValue value) {
    out_.set(architecture_ + "." + std::string(name), std::move(value));
  }
  void erase(std::string_view name) { out_.erase(architecture_ + "." + std::string(name)); }
  Status add_count(std::string_view name, Keys keys);
  Status add_count_if_set(std::string_view name, Keys keys);
  // One count, or a list of one for each layer.
  Status add_counts_if_set(std::string_view name, Keys keys);
  Status add_number(std::string_view name, Keys keys);
  Status add_number_if_set(std::string_view name, Keys keys);
  // A multiplier of 0 stands for none.
  Status add_multiplier(std::string_view name, std::string_view key);
  // False where nothing is said.
  void add_flag(std::string_view name, std::string_view key);
  void add_flag_if_set(std::string_view name, std::string_view key);

  // The parts of the common list.
  Status add_layer_count();
  Status add_context();
  Status add_head_counts();
  Status add_rope_scaling();
  Status add_rope_sections();
  Status add_experts();
  void add_file_type() { out_.set("general.file_type", file_type_); }

  enum class HeadDim : uint8_t { added, left_out };
  Status add_common(HeadDim head_dim = HeadDim::added);

  // layer_types as a list: true for layers with a window. Errors: invalid_data.
  Result<std::vector<bool>> sliding_layers() const;

  // A list of layers, true where layer_types has one of the names. Errors: invalid_data.
  Result<std::vector<bool>> layers_of_type(Keys names) const;
  // The count where the list is true, 0 elsewhere.
  void set_where(std::string_view name, const std::vector<bool>& layers, int64_t count);

 private:
  const Config& config_;
  std::string architecture_;
  uint32_t file_type_;
  int64_t layers_in_file_;
  KeyValues& out_;
};

// A rotary parameter that counts something. Errors: invalid_data.
Result<uint32_t> rope_count(const Config& config, std::string_view key);

// What no engine would read: parameters outside the ranges of gguf/hyperparameters.h, and more
// layers than the tensors have. Errors: invalid_data, naming the parameter.
Status check_parameters(const KeyValues& values, std::string_view architecture,
                        int64_t layers_in_file);

// Adds everything under the architecture's name, and general.file_type. Errors: not_found or
// invalid_data (names the key), unsupported (a rotary scaling that GGUF has no words for).
Status add_parameters(const Config& config, const Family& family, uint32_t file_type,
                      int64_t layers_in_file, KeyValues& out);

}  // namespace cairn::convert
