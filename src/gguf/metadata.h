// A model's hyper-parameters: the fields whose keys start with the architecture's name.
// meta.count("embedding_length") reads "llama.embedding_length" and checks its range (the table of
// gguf/hyperparameters.h). Every error names the full key, what was expected and what was found.
// A view: the File it comes from must live on (it may be moved). Thread-safe: constant data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gguf/fields.h"

namespace cairn::gguf {

class Metadata {
 public:
  // Errors: no or a malformed general.architecture; hyper-parameters that contradict each other
  // (heads and key-value heads, experts and used experts, groups).
  static Result<Metadata> of(const Fields& fields);

  const std::string& architecture() const { return architecture_; }
  const Fields& fields() const { return *fields_; }  // All of the file's, by full key.
  std::string key(std::string_view name) const;
  bool has(std::string_view name) const;

  // The same, but that count(name) is this.
  Metadata with_count(std::string_view name, int32_t value) const;

  // An integer, at least 0 and in the range of its name.
  Result<int32_t> count(std::string_view name) const;
  Result<int32_t> count_or(std::string_view name, int32_t fallback) const;
  // A finite number, in the range of its name.
  Result<float> real(std::string_view name) const;
  Result<float> real_or(std::string_view name, float fallback) const;
  Result<bool> flag(std::string_view name) const;
  Result<bool> flag_or(std::string_view name, bool fallback) const;
  Result<std::string_view> text(std::string_view name) const;
  Result<std::string_view> text_or(std::string_view name, std::string_view fallback) const;

  // One value for each layer, from an array of exactly layer_count elements or from a scalar that
  // counts for all. Integers or booleans (0 and 1).
  Result<std::vector<int32_t>> per_layer(std::string_view name, int32_t layer_count) const;
  Result<std::vector<int32_t>> per_layer_or(std::string_view name, int32_t layer_count,
                                            int32_t fallback) const;
  // The same for f32; infinities are allowed here (they switch things off), NaN is not.
  Result<std::vector<float>> per_layer_reals(std::string_view name, int32_t layer_count) const;
  // An array of counts of any length, such as rope.dimension_sections.
  Result<std::vector<int32_t>> counts(std::string_view name) const;

 private:
  Metadata(std::string architecture, const Fields& fields);
  Status check_relations() const;

  std::string architecture_;
  const Fields* fields_;
  std::vector<std::pair<std::string, int32_t>> replaced_;
};

}  // namespace cairn::gguf
