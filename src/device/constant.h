// Numbers that ops read and no step changes: gains, biases, frequencies. A view that knows its
// size; the numbers lie in the host's memory and outlive the plan, so that a backend whose device
// has a memory of its own can copy them there when it prepares the plan. Plain data.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

namespace cairn {

template <class Number>
class ConstantOf {
 public:
  ConstantOf() = default;  // Does not exist.
  // From a vector, an array or a span. Implicit: it is these numbers.
  template <class Numbers>
  requires std::convertible_to<const Numbers&, std::span<const Number>> ConstantOf(
      const Numbers& numbers) {
    const std::span<const Number> view(numbers);
    data_ = view.empty() ? nullptr : view.data();
    count_ = int64_t(view.size());
  }

  bool exists() const { return count_ > 0; }
  int64_t count() const { return count_; }
  const Number* data() const { return data_; }  // Null where it does not exist.
  const Number& operator[](int64_t index) const { return data_[index]; }
  // Where the numbers from `first` on begin; null where there are none at all.
  const Number* from(int64_t first) const { return data_ == nullptr ? nullptr : data_ + first; }

 private:
  const Number* data_ = nullptr;
  int64_t count_ = 0;
};

using Constant = ConstantOf<float>;

}  // namespace cairn
