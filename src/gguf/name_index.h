// Finds a name among many, by binary search over a sorted order. Not a hash table on purpose: the
// names are untrusted and could all collide; this costs O(log n) whatever they are. Holds 4 bytes a
// name; the names themselves stay where they are. Thread-safe once built: constant data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

namespace cairn::gguf {

constexpr uint32_t kNoIndex = UINT32_MAX;

class NameIndex {
 public:
  NameIndex() = default;

  // name_of(index) is the name of each of the `count` things. REQUIRES: count < kNoIndex.
  template <class NameOf>
  NameIndex(size_t count, NameOf name_of) : order_(count) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      const int order = name_of(a).compare(name_of(b));
      return order != 0 ? order < 0 : a < b;
    });
  }

  // The first thing of that name, or kNoIndex.
  template <class NameOf>
  uint32_t find(std::string_view name, NameOf name_of) const {
    const auto at =
        std::lower_bound(order_.begin(), order_.end(), name,
                         [&](uint32_t a, std::string_view b) { return name_of(a) < b; });
    return at != order_.end() && name_of(*at) == name ? *at : kNoIndex;
  }

  // A thing whose name another one before it has, or kNoIndex.
  template <class NameOf>
  uint32_t repeated(NameOf name_of) const {
    const auto at = std::adjacent_find(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      return name_of(a) == name_of(b);
    });
    return at == order_.end() ? kNoIndex : *(at + 1);
  }

 private:
  std::vector<uint32_t> order_;
};

}  // namespace cairn::gguf
