// Fills a model's parameters from a GGUF file: finds each by name and checks its shape. Vectors,
// and the scales that some quantizers store beside matrices, are converted to f32; matrices stay in
// the mapped file.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "gguf/gguf.h"
#include "graph/parameters.h"

namespace cairn {

class ParameterLoader : public ParameterVisitor {
 public:
  explicit ParameterLoader(const gguf::File* file) : file_(file) {}

  Status matrix(std::string_view name, Weight& weight, std::span<const int64_t> shape,
                Need need) override;
  Status vector(std::string_view name, Vector& vector, std::span<const int64_t> shape,
                Need need) override;

  // What was found, in the order of the model's list.
  std::vector<Weight*> take_matrices() && { return std::move(matrices_); }
  // Owns the vectors; they must live as long as the model.
  std::vector<std::vector<float>> take_vectors() && { return std::move(vectors_); }
  int64_t parameter_count() const { return parameter_count_; }
  // The tensors that the model does not use, in the file's order.
  std::vector<std::string_view> unread() const;

 private:
  Result<const gguf::Tensor*> find(std::string_view name, std::span<const int64_t> shape,
                                   Need need);
  std::span<const float> scales_beside(const Weight& weight);
  std::span<const float> read_vector(const gguf::Tensor& tensor);

  const gguf::File* file_;
  std::vector<Weight*> matrices_;
  std::vector<std::vector<float>> vectors_;
  std::unordered_set<std::string_view> read_;
  int64_t parameter_count_ = 0;
};

}  // namespace cairn
