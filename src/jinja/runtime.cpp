// Budgets, and the size of a range.
#include "jinja/runtime.h"

#include "jinja/values/objects.h"

namespace cairn::jinja {

Error Runtime::over_steps() {
  return fail(kOverBudget, "the template's work: expected at most {} steps, found more", kStepsMax);
}

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

Result<Value> Runtime::generator(std::vector<Value> items) {
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
