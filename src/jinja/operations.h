// Python's operators over values: truth, equality, order, membership, arithmetic, look-up, slices.
// Errors have no place yet; the interpreter adds it. One render, one thread.
#pragma once

#include <optional>

#include "jinja/runtime.h"
#include "jinja/syntax/syntax.h"
#include "jinja/values/value.h"

namespace cairn::jinja {

bool truth(const Value& value);
Result<bool> equal(Runtime& runtime, const Value& a, const Value& b);
// Negative, zero or positive. Error: types that have no order between them.
Result<int> compare(Runtime& runtime, const Value& a, const Value& b);
// Like compare(), for letters without case, as Jinja's sort does.
Result<bool> contains(Runtime& runtime, const Value& container, const Value& item);

Result<Value> arithmetic(Runtime& runtime, Operation operation, const Value& a, const Value& b);
Result<bool> comparison(Runtime& runtime, Operation operation, const Value& a, const Value& b);
Result<Value> negated(const Value& value, bool minus);

// object.name; what is not there is undefined, not an error (but: of an undefined object, it is).
Result<Value> attribute_of(Runtime& runtime, const Value& object, const Value& name);
Result<Value> item_of(Runtime& runtime, const Value& object, const Value& key);
// object[start:stop:step]; each bound may be none.
Result<Value> slice_of(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                       const Value& step);

Result<int64_t> length_of(const Value& value);

// Walks any value that can be walked.
class Iterator {
 public:
  static Result<Iterator> over(const Value& value);

  // False at the end.
  Result<bool> next(Runtime& runtime, Value& out);
  size_t remaining() const;

 private:
  Value value_;
  size_t at_ = 0;  // An index; of a string, a byte.
  size_t walked_ = 0;
};

// All that is left to walk.
Result<std::vector<Value>> items_of(Runtime& runtime, const Value& value);

// The error that any use of this undefined value gives.
Error undefined_error(const Value& value);
// "expected a string, found int".
Error wrong_type(std::string_view what, std::string_view expected, const Value& found);

// What Python calls a number in `x * y` positions; error otherwise.
Result<int64_t> integer_argument(std::string_view what, const Value& value);

// Markup's escaping of &, <, >, ' and ". Each byte costs as much as kPropertyWork, at most.
MarkedText escaped(const MarkedText& text);

}  // namespace cairn::jinja
