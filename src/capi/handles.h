// What callers' handles stand for: numbers in the form of pointers, each with the object that it
// owns. A number is not used again for a very long time, so that a closed one is known as such, and
// no pointer of a caller is ever followed. Thread-safe; after fork() the child has no handles.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace cairn::capi {

enum class Kind : uint8_t { none, model, engine, conversation, snapshot, logits };

namespace handles {

constexpr uint32_t kSlotBits = 16;
constexpr size_t kSlotsMax = size_t(1) << kSlotBits;

// Errors: no_room: there are kSlotsMax.
Result<uint64_t> add(Kind kind, std::shared_ptr<void> object);
// Null: no such handle of this kind.
std::shared_ptr<void> find(Kind kind, uint64_t handle);
// The same; afterwards there is none.
std::shared_ptr<void> take(Kind kind, uint64_t handle);

// Each handle has a mark that may be set anywhere, in signal handlers too; it stays until it is
// cleared.
void set_mark(uint64_t handle);
bool has_mark(uint64_t handle);
// Whether it was set.
bool clear_mark(uint64_t handle);

}  // namespace handles

// While such an object lives, its thread is in a function of the caller's that the library called.
class InCallback {
 public:
  InCallback();
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  static bool is_here();
};

// The object behind a handle as the header has it.
template <class Object, class Handle>
std::shared_ptr<Object> object_of(const Handle* handle) {
  return std::static_pointer_cast<Object>(
      handles::find(Object::kKind, reinterpret_cast<uintptr_t>(handle)));
}

template <class Object, class Handle>
std::shared_ptr<Object> take_object(Handle* handle) {
  return std::static_pointer_cast<Object>(
      handles::take(Object::kKind, reinterpret_cast<uintptr_t>(handle)));
}

template <class Handle, class Object>
Status hand_out(std::shared_ptr<Object> object, Handle** out) {
  CAIRN_TRY(const uint64_t handle, handles::add(Object::kKind, std::move(object)));
  *out = reinterpret_cast<Handle*>(uintptr_t(handle));
  return Ok{};
}

}  // namespace cairn::capi
