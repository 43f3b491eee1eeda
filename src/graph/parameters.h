// The parameters of a model: each with its name in the file, its destination and its shape. One
// list serves the loader, the shape check, the memory estimate and random models.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/constant.h"
#include "device/weight.h"

namespace cairn {

// A vector parameter in f32: a norm's gain, a bias, a table of factors.
struct Vector {
  std::span<const float> values;

  bool exists() const { return !values.empty(); }
  operator Constant() const { return values; }
};

// A size in a shape that is read from the file. `size` is the one of the published models, used
// where there is no file.
constexpr int64_t usual(int64_t size) {
  return -size;
}

// The visitor of the list. Names are GGUF's; shapes are in GGUF's order (inputs first).
class ParameterVisitor {
 public:
  virtual ~ParameterVisitor() = default;
  enum class Need : uint8_t { required, optional };

  virtual Status matrix(std::string_view name, Weight& weight, std::span<const int64_t> shape,
                        Need need) = 0;
  virtual Status vector(std::string_view name, Vector& vector, std::span<const int64_t> shape,
                        Need need) = 0;
};

// Names parameters below a common prefix ("blk.3.") and keeps the first error, so that a list of
// parameters reads as a list.
class Parameters {
 public:
  explicit Parameters(ParameterVisitor* visitor) : visitor_(visitor) {}

  // The parameters of one layer: the same list with the prefix "blk.<layer>.".
  Parameters layer(int32_t index) const;
  // Adds what went wrong in a list below to this one.
  void join(Parameters below);

  void matrix(std::string_view name, Weight& weight, std::initializer_list<int64_t> shape);
  void optional_matrix(std::string_view name, Weight& weight, std::initializer_list<int64_t> shape);
  void vector(std::string_view name, Vector& vector, std::initializer_list<int64_t> shape);
  void optional_vector(std::string_view name, Vector& vector, std::initializer_list<int64_t> shape);

  Status finish() &&;

 private:
  using Need = ParameterVisitor::Need;
  void keep(Status status);

  ParameterVisitor* visitor_;
  std::string prefix_;
  std::vector<Error> error_;  // At most one: the first.
};

}  // namespace cairn
