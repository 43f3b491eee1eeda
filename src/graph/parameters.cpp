// Prefixes and the first error of a list of parameters.
#include "graph/parameters.h"

#include <utility>

namespace cairn {

Parameters Parameters::layer(int32_t index) const {
  Parameters below(visitor_);
  below.prefix_ = fmt::format("{}blk.{}.", prefix_, index);
  return below;
}

void Parameters::join(Parameters below) {
  if (error_.empty()) error_ = std::move(below.error_);
}

void Parameters::keep(Status status) {
  if (!status && error_.empty()) error_.push_back(std::move(status).error());
}

void Parameters::matrix(std::string_view name, Weight& weight,
                        std::initializer_list<int64_t> shape) {
  keep(visitor_->matrix(prefix_ + std::string(name), weight, {shape.begin(), shape.size()},
                        Need::required));
}

void Parameters::optional_matrix(std::string_view name, Weight& weight,
                                 std::initializer_list<int64_t> shape) {
  keep(visitor_->matrix(prefix_ + std::string(name), weight, {shape.begin(), shape.size()},
                        Need::optional));
}

void Parameters::vector(std::string_view name, Vector& vector,
                        std::initializer_list<int64_t> shape) {
  keep(visitor_->vector(prefix_ + std::string(name), vector, {shape.begin(), shape.size()},
                        Need::required));
}

void Parameters::optional_vector(std::string_view name, Vector& vector,
                                 std::initializer_list<int64_t> shape) {
  keep(visitor_->vector(prefix_ + std::string(name), vector, {shape.begin(), shape.size()},
                        Need::optional));
}

Status Parameters::finish() && {
  if (!error_.empty()) return std::move(error_.front());
  return Ok{};
}

}  // namespace cairn
