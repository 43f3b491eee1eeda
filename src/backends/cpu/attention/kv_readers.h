// How the attention kernels read keys and values as floats, for every stored form: each reader
// turns some vectors of a page into lanes and says where in the page they lie, so that the same
// place of a later page can be asked for. Instantiated per instruction set by ops_<isa>.cpp.
#pragma once

#include "backends/cpu/elementwise.h"
#include "backends/cpu/lanes/repeat.h"

namespace cairn {
namespace {

constexpr int32_t kScaleDims = 32;  // kKvBlock of backends/host/kv_page.h.

// Keys of N vectors of slots from `slot` on, dim by dim, ascending from 0.
template <class L, class Key, int32_t N>
class KeyReader {
 public:
  [[gnu::always_inline]] KeyReader(const cpu::KvHeadArgs&, const std::byte* page, int32_t slot)
      : keys_(reinterpret_cast<const Key*>(page)), slot_(slot) {}

  // Before the dims from `d` on, a multiple of kScaleDims.
  [[gnu::always_inline]] inline void begin(int32_t) {}

  // Returns the byte in the page.
  [[gnu::always_inline]] inline size_t read(int32_t d, L* key) {
    const size_t element = size_t(d) * cpu::kPageSlots + size_t(slot_);
    repeat<N>([&](auto i) { key[i] = L::load(keys_ + element + i * L::kCount); });
    return element * sizeof(Key);
  }

 private:
  const Key* keys_;
  int32_t slot_;
};

// Keys as codes with scales: the scales change every kScaleDims dims.
template <class L, class Key, int32_t N>
class CodedKeyReader {
  static constexpr int32_t kDimsPerCode = __is_same(Key, Q4Bits) ? 2 : 1;

 public:
  [[gnu::always_inline]] CodedKeyReader(const cpu::KvHeadArgs& head, const std::byte* page,
                                        int32_t slot)
      : keys_(reinterpret_cast<const Key*>(page) + slot), slot_(slot) {
    const int32_t code_rows = (head.key_dim + kDimsPerCode - 1) / kDimsPerCode;
    scales_ = reinterpret_cast<const F16Bits*>(page + size_t(code_rows) * cpu::kPageSlots) + slot;
  }

  [[gnu::always_inline]] inline void begin(int32_t d) {
    const F16Bits* scales = scales_ + d / kScaleDims * cpu::kPageSlots;
    repeat<N>([&](auto i) { scale_[i] = L::load(scales + i * L::kCount); });
  }

  [[gnu::always_inline]] inline size_t read(int32_t d, L* key) {
    const size_t row = size_t(d / kDimsPerCode) * cpu::kPageSlots;
    repeat<N>([&](auto i) { key[i] = codes(keys_ + row + i * L::kCount, d) * scale_[i]; });
    return row + size_t(slot_);
  }

 private:
  [[gnu::always_inline]] static inline L codes(const Q8Bits* p, int32_t) { return L::load(p); }
  [[gnu::always_inline]] static inline L codes(const Q4Bits* p, int32_t d) {
    return d % 2 == 0 ? L::load_lower(p) : L::load_upper(p);
  }

  const Key* keys_;
  const F16Bits* scales_;
  int32_t slot_;
  L scale_[N];
};

template <class L, int32_t N>
class KeyReader<L, Q8Bits, N> : public CodedKeyReader<L, Q8Bits, N> {
 public:
  using CodedKeyReader<L, Q8Bits, N>::CodedKeyReader;
};
template <class L, int32_t N>
class KeyReader<L, Q4Bits, N> : public CodedKeyReader<L, Q4Bits, N> {
 public:
  using CodedKeyReader<L, Q4Bits, N>::CodedKeyReader;
};

// Values of N vectors of dims from `dim` on (a multiple of the vector), slot by slot.
template <class L, class Value, int32_t N>
class ValueReader {
 public:
  static constexpr size_t kBytes = size_t(N) * L::kCount * sizeof(Value);

  [[gnu::always_inline]] ValueReader(const cpu::KvHeadArgs& head, const std::byte* page,
                                     int32_t slot, int32_t dim)
      : values_(reinterpret_cast<const Value*>(page)), row_(head.value_dim) {
    element_ = size_t(slot) * size_t(row_) + size_t(dim);
  }

  // `count`: dims of the last vector. Returns the byte in the page.
  [[gnu::always_inline]] inline size_t read(int32_t count, L* value) const {
    const Value* from = values_ + element_;
    repeat<N>([&](auto i) {
      value[i] =
          N > 1 || count == L::kCount ? L::load(from + i * L::kCount) : L::load_first(from, count);
    });
    return element_ * sizeof(Value);
  }
  [[gnu::always_inline]] inline void next() { element_ += size_t(row_); }

 private:
  const Value* values_;
  int32_t row_;
  size_t element_;
};

// Values as codes with scales. The vectors begin a block, or lie in one.
template <class L, class Value, int32_t N>
class CodedValueReader {
  static constexpr int32_t kDimsPerCode = __is_same(Value, Q4Bits) ? 2 : 1;
  static constexpr int32_t kScales = (N * L::kCount + kScaleDims - 1) / kScaleDims;

 public:
  static constexpr size_t kBytes = size_t(N) * L::kCount / kDimsPerCode;

  [[gnu::always_inline]] CodedValueReader(const cpu::KvHeadArgs& head, const std::byte* page,
                                          int32_t slot, int32_t dim)
      : values_(reinterpret_cast<const Value*>(page)),
        row_bytes_((head.value_dim + kDimsPerCode - 1) / kDimsPerCode),
        row_scales_((head.value_dim + kScaleDims - 1) / kScaleDims) {
    offset_ = size_t(slot) * size_t(row_bytes_) + size_t(dim / kDimsPerCode);
    scales_ = reinterpret_cast<const F16Bits*>(page + size_t(row_bytes_) * cpu::kPageSlots) +
              slot * row_scales_ + dim / kScaleDims;
  }

  [[gnu::always_inline]] inline size_t read(int32_t count, L* value) const {
    L scale[kScales];
    repeat<kScales>([&](auto i) { scale[i] = L::broadcast(scales_ + i); });
    const Value* from = values_ + offset_;
    repeat<N>([&](auto i) {
      const Value* part = from + i * L::kCount / kDimsPerCode;
      const L codes = N > 1 || count == L::kCount ? L::load(part) : L::load_first(part, count);
      value[i] = codes * scale[i * L::kCount / kScaleDims];
    });
    return offset_;
  }
  [[gnu::always_inline]] inline void next() {
    offset_ += size_t(row_bytes_);
    scales_ += row_scales_;
  }

 private:
  const Value* values_;
  const F16Bits* scales_;
  int32_t row_bytes_, row_scales_;
  size_t offset_;
};

template <class L, int32_t N>
class ValueReader<L, Q8Bits, N> : public CodedValueReader<L, Q8Bits, N> {
 public:
  using CodedValueReader<L, Q8Bits, N>::CodedValueReader;
};
template <class L, int32_t N>
class ValueReader<L, Q4Bits, N> : public CodedValueReader<L, Q4Bits, N> {
 public:
  using CodedValueReader<L, Q4Bits, N>::CodedValueReader;
};

}  // namespace
}  // namespace cairn
