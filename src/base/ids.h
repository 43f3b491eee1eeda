// Strong integers: a token cannot be passed where a page is meant. They cost nothing.
#pragma once

#include <cstdint>
#include <type_traits>

namespace cairn {

enum class Token : int32_t {};   // An id of the vocabulary.
enum class PageId : int32_t {};  // An index into a group's pool of pages.

// The plain integer of a strong id.
template <class Id>
constexpr auto index_of(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}

}  // namespace cairn
