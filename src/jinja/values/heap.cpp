// Accounts and funerals.
#include "jinja/values/heap.h"

#include <algorithm>
#include <memory>

#include "jinja/values/keys.h"

namespace cairn::jinja {
namespace {

// Roughly what the allocator and the object's own head cost.
constexpr size_t kObjectBytes = 128;

uint32_t nesting_of(const Value& value) {
  const Object* object = value.pointer();
  return object == nullptr ? 0 : object->nesting();
}

}  // namespace

MutableObject::MutableObject(Heap& heap) : owner_(heap), after_(heap.first_) {
  if (after_ != nullptr) after_->before_ = this;
  heap.first_ = this;
}

MutableObject::~MutableObject() {
  (before_ != nullptr ? before_->after_ : owner_.first_) = after_;
  if (after_ != nullptr) after_->before_ = before_;
}

void MutableObject::dispose() {
  owner_.bury(this);
}

// Takes no memory: objects die where none may be left.
void Heap::bury(MutableObject* object) {
  object->grave_below_ = graves_;
  graves_ = object;
  if (is_burying_) return;
  is_burying_ = true;
  while (graves_ != nullptr) {
    const std::unique_ptr<MutableObject> dead(graves_);
    graves_ = dead->grave_below_;
    dead->clear();
  }
  is_burying_ = false;
}

Heap::~Heap() {
  // All are held while all are emptied, for each may be the last to point to another.
  for (MutableObject* object = first_; object != nullptr; object = object->after_) object->hold();
  for (MutableObject* object = first_; object != nullptr; object = object->after_) object->clear();
  while (first_ != nullptr) {
    CHECK(!first_->is_shared());
    first_->release();
  }
}

Status Heap::check_room(size_t bytes) const {
  if (bytes <= bytes_max_ && live_bytes_ <= bytes_max_ - bytes) return Ok{};
  return fail(ErrorCode::no_room, "the memory of the template: expected at most {} bytes, found {}",
              bytes_max_, live_bytes_ + bytes);
}

Status Heap::take(size_t bytes) {
  CAIRN_TRY(check_room(bytes));
  live_bytes_ += bytes;
  return Ok{};
}

Result<Value> Heap::adopt(Kind kind, Object* object, size_t extra_bytes) {
  Value value = Value::object(kind, object);
  CAIRN_TRY(take(kObjectBytes + extra_bytes));
  object->heap_ = this;
  object->paid_bytes_ = kObjectBytes + extra_bytes;
  return value;
}

Result<Value> Heap::string(MarkedText text) {
  if (text.size() > kStringBytesMax) {
    return fail(ErrorCode::no_room, "a string of the template: expected at most {} bytes, found {}",
                kStringBytesMax, text.size());
  }
  const size_t bytes = text.size() + text.mark_bytes();
  return adopt(Kind::string, new StringObject(std::move(text)), bytes);
}

Result<Value> Heap::list(std::vector<Value> items, Kind kind) {
  uint32_t nesting = 1;
  for (const Value& item : items) nesting = std::max(nesting, nesting_of(item) + 1);
  if (nesting > kNestingMax) {
    return fail(ErrorCode::no_room,
                "a list of the template: expected nesting of at most {}, found {}", kNestingMax,
                nesting);
  }
  const size_t bytes = items.capacity() * sizeof(Value);
  auto* list = new ListObject(std::move(items));
  list->set_nesting(nesting);
  if (kind == Kind::tuple) list->key_work = key_work_of_tuple(list->items);
  return adopt(kind, list, bytes);
}

Result<Value> Heap::dict(std::vector<Entry> entries) {
  const size_t bytes = entries.capacity() * (sizeof(Entry) + sizeof(uint32_t));
  CAIRN_TRY(Value dict, plain_dict(std::move(entries)));
  return adopt(Kind::dict, dict.pointer(), bytes);
}

}  // namespace cairn::jinja
