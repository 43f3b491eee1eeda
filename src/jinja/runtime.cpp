// What is paid for, and the size of a range.
#include "jinja/runtime.h"

#include "jinja/values/objects.h"

namespace cairn::jinja {

Status Runtime::check_string(size_t bytes) const {
  if (bytes > kStringBytesMax) {
    return fail(kOverBudget, "a string of the template: expected at most {} bytes, found {}",
                kStringBytesMax, bytes);
  }
  return heap_.check_room(bytes);
}

Status Runtime::prepare_string(size_t bytes) {
  CAIRN_TRY(check_string(bytes));
  return work(bytes);
}

Status Runtime::prepare_items(size_t count) {
  if (count > kHeapBytesMax / sizeof(Value)) {
    return fail(kOverBudget, "a list of the template: expected at most {} elements, found {}",
                kHeapBytesMax / sizeof(Value), count);
  }
  CAIRN_TRY(work(count * kElementWork));
  return heap_.check_room(count * sizeof(Value));
}

Result<Value> Runtime::string(MarkedText text) {
  // Fresh memory costs more than what is written into it, and so do marks than bytes.
  CAIRN_TRY(work(kObjectWork + text.size() + 4 * text.mark_bytes()));
  return heap_.string(std::move(text));
}

Result<Value> Runtime::list(std::vector<Value> items, Kind kind) {
  CAIRN_TRY(work(kObjectWork));
  return heap_.list(std::move(items), kind);
}

Result<Value> Runtime::dict(std::vector<Entry> entries) {
  CAIRN_TRY(work(kObjectWork + sorting_work(entries)));
  return heap_.dict(std::move(entries));
}

Result<const Value*> Runtime::find(const DictObject& dict, const Value& key) {
  CAIRN_TRY(work(dict.find_work(key_work(key))));
  return dict.find(key);
}

Result<const Value*> Runtime::find(const DictObject& dict, std::string_view key) {
  CAIRN_TRY(work(dict.find_work(key.size() + kKeyWorkMin)));
  return dict.find(key);
}

Status Runtime::enter_filter() {
  if (++filter_depth_ <= kCallDepthMax) return Ok{};
  return fail(kOverBudget, "filters in filters: expected at most {}, found more", kCallDepthMax);
}

Result<Value> Runtime::generator(std::vector<Value> items) {
  CAIRN_TRY(work(kObjectWork));
  const size_t bytes = items.capacity() * sizeof(Value);
  uint32_t nesting = 1;
  for (const Value& item : items) {
    if (const Object* object = item.pointer()) nesting = std::max(nesting, object->nesting() + 1);
  }
  if (nesting > kNestingMax) {
    return fail(kOverBudget, "a generator: expected nesting of at most {}, found {}", kNestingMax,
                nesting);
  }
  auto* generator = new GeneratorObject(std::move(items));
  generator->set_nesting(nesting);
  return heap_.adopt(Kind::generator, generator, bytes);
}

size_t RangeObject::size() const {
  if (step > 0) return start < stop ? size_t((stop - start - 1) / step + 1) : 0;
  return start > stop ? size_t((start - stop - 1) / -step + 1) : 0;
}

}  // namespace cairn::jinja
