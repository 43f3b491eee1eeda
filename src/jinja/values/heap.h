// The memory of one render: the total size of its objects is bounded, and at its end every object
// that can be part of a cycle is emptied, so that reference counting frees the rest. Invariant: a
// Heap outlives all values made through it. One thread.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "jinja/values/value.h"

namespace cairn::jinja {

constexpr size_t kHeapBytesMax = 32u << 20;   // All live objects and buffers of a render.
constexpr size_t kStringBytesMax = 8u << 20;  // Any one string.

// What can point back to itself: namespaces, scopes, loops, joiners. Disposal is deferred to the
// heap's own loop: a chain of a million namespaces must not recurse a million destructors deep.
class MutableObject : public Object {
 public:
  explicit MutableObject(Heap& heap);
  ~MutableObject() override;
  virtual void clear() = 0;  // Lets go of every value.

 protected:
  void dispose() override;

 private:
  friend class Heap;
  Heap& owner_;
  MutableObject* before_ = nullptr;
  MutableObject* after_ = nullptr;
  MutableObject* grave_below_ = nullptr;
};

class Heap {
 public:
  explicit Heap(size_t bytes_max = kHeapBytesMax) : bytes_max_(bytes_max) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Would this many more bytes fit?
  Status check_room(size_t bytes) const;
  // For buffers, which are no objects: taken now, refunded by the caller.
  Status take(size_t bytes);
  void refund(size_t bytes) { live_bytes_ -= bytes; }
  size_t live_bytes() const { return live_bytes_; }

  Result<Value> string(MarkedText text);
  Result<Value> list(std::vector<Value> items, Kind kind = Kind::list);
  // REQUIRES: every key is_key().
  Result<Value> dict(std::vector<Entry> entries);

  // Any other object, with what it owns beside itself.
  Result<Value> adopt(Kind kind, Object* object, size_t extra_bytes = 0);

 private:
  friend class MutableObject;
  void bury(MutableObject* object);

  size_t bytes_max_;
  size_t live_bytes_ = 0;
  MutableObject* first_ = nullptr;   // All living mutable objects.
  MutableObject* graves_ = nullptr;  // Dead ones that wait for their turn: the last one.
  bool is_burying_ = false;
};

}  // namespace cairn::jinja
