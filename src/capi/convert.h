// The library's values as the header has them, and what all functions that are called do alike.
// Thread-safe: pure.
#pragma once

#include <cairn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "capi/border.h"
#include "memory/memory.h"

namespace cairn::capi {

// Errors: invalid_argument: NULL, or more than anything could have.
template <class Item>
Result<std::span<const Item>> list_of(const Item* items, size_t count, std::string_view name) {
  if (items == nullptr && count > 0) {
    return fail(ErrorCode::invalid_argument, "{}: expected {} of them, found NULL", name, count);
  }
  if (count > size_t(INT32_MAX)) {
    return fail(ErrorCode::invalid_argument, "{}: expected at most {}, found {}", name, INT32_MAX,
                count);
  }
  return std::span<const Item>(items, count);
}

// Writes all of them, or their number alone where there is no room.
template <class Item>
Answer hand_out_list(std::span<const Item> items, Item* out, size_t capacity, size_t* count) {
  *count = items.size();
  if (items.size() > capacity) {
    return fail(ErrorCode::no_room, "buffer: expected room for {}, found {}", items.size(),
                capacity);
  }
  if (!items.empty()) std::memcpy(out, items.data(), items.size_bytes());
  return {};
}

// REQUIRES: ids of the vocabulary.
inline std::vector<Token> tokens_of(std::span<const cairn_token> ids) {
  const auto* const tokens = reinterpret_cast<const Token*>(ids.data());
  return {tokens, tokens + ids.size()};
}

inline std::span<const cairn_token> ids_of(std::span<const Token> tokens) {
  return {reinterpret_cast<const cairn_token*>(tokens.data()), tokens.size()};
}

inline int32_t limit_of(std::string_view name) {
  if (name.empty()) return CAIRN_LIMIT_NONE;
  if (name == "window") return CAIRN_LIMIT_WINDOW;
  if (name == "chunked") return CAIRN_LIMIT_CHUNKED;
  if (name == "recurrent") return CAIRN_LIMIT_RECURRENT;
  return name == "hidden" ? CAIRN_LIMIT_HIDDEN : CAIRN_LIMIT_OTHER;
}

inline cairn_plan plan_of(const memory::ResumePlan& plan) {
  return {.struct_size = 0,
          .limited_by = limit_of(plan.limited_by),
          .target = uint32_t(plan.resume + plan.forward_tokens),
          .resume = uint32_t(plan.resume),
          .forward_tokens = uint32_t(plan.forward_tokens),
          .recurrent_steps = uint32_t(plan.recurrence_steps),
          .copy_bytes = plan.copied_bytes,
          .new_bytes = plan.new_bytes,
          .logits_ready = uint8_t(plan.logits_ready && plan.forward_tokens == 0),
          .replayed_by_cairn = 0,
          .reserved = {}};
}

}  // namespace cairn::capi
