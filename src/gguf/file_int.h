// Numbers that a file declares. They have a type of their own, so that no raw + or * is ever done
// with them: both operators are checked and return a Result (docs/formats.md, "Counts").
#pragma once

#include <compare>
#include <cstdint>

#include "base/result.h"

namespace cairn::gguf {

class FileInt {
 public:
  constexpr explicit FileInt(uint64_t value) : value_(value) {}

  constexpr uint64_t value() const { return value_; }
  friend constexpr auto operator<=>(FileInt, FileInt) = default;

  friend Result<FileInt> operator+(FileInt a, FileInt b) {
    uint64_t sum = 0;
    if (!__builtin_add_overflow(a.value_, b.value_, &sum)) return FileInt(sum);
    return fail(ErrorCode::invalid_data, "{} + {}: expected at most 64 bits, found more", a.value_,
                b.value_);
  }
  friend Result<FileInt> operator*(FileInt a, FileInt b) {
    uint64_t product = 0;
    if (!__builtin_mul_overflow(a.value_, b.value_, &product)) return FileInt(product);
    return fail(ErrorCode::invalid_data, "{} * {}: expected at most 64 bits, found more", a.value_,
                b.value_);
  }

  // The next multiple of `alignment`. REQUIRES: a power of two.
  Result<FileInt> aligned_to(uint64_t alignment) const {
    CAIRN_TRY(const FileInt raised, *this + FileInt(alignment - 1));
    return FileInt(raised.value_ & ~(alignment - 1));
  }

 private:
  uint64_t value_;
};

}  // namespace cairn::gguf
