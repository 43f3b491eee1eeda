// The values of templates: JSON's values and the few objects of Jinja (namespaces, macros, loops,
// …), with Python's semantics. A Value is 16 bytes; everything larger is a reference-counted
// object. Invariants: (1) strings, lists, tuples and dicts never change once made, so a cycle can
// only pass through a MutableObject, and the Heap that made those breaks the cycles when a render
// ends. (2) Containers nest at most kNestingMax deep, so recursion over them is safe.
// Counts are atomic: values of a template and of an input may be shared between threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "jinja/values/marked_text.h"

namespace cairn::jinja {

enum class Kind : uint8_t {
  absent,  // No value at all: an argument that was not given. Templates never see it.
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  dict,
  view,
  generator,
  range,
  namespace_,
  macro,
  function,
  method,
  loop,
  cycler,
  joiner,
};

// Why a value is undefined: it decides the words of the error.
enum class Missing : uint8_t { variable, attribute, element, argument, unsafe, other };

constexpr int kNestingMax = 200;

class Heap;

// What values point to. Born with no reference; the last Value that lets go disposes of it.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object();

  void hold() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose();
  }
  // 1 + the deepest child's; only containers have one.
  uint32_t nesting() const { return nesting_; }
  void set_nesting(uint32_t nesting) { nesting_ = nesting; }
  bool is_shared() const { return references_.load(std::memory_order_relaxed) > 1; }

 protected:
  virtual void dispose() { delete this; }

 private:
  friend class Heap;
  std::atomic<uint32_t> references_{0};
  uint32_t nesting_ = 0;
  // The heap that accounts for it; null: not accounted for (inputs, constants).
  Heap* heap_ = nullptr;
  size_t paid_bytes_ = 0;
};

class Value {
 public:
  Value() : integer_(0) {}
  Value(const Value& other) { copy(other); }
  Value(Value&& other) noexcept { steal(other); }
  Value& operator=(const Value& other) {
    if (this != &other) *this = Value(other);
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    if (this == &other) return *this;
    Value old;
    old.steal(*this);
    steal(other);
    return *this;
  }
  ~Value() {
    if (holds_object_) object_->release();
  }

  static Value none() { return Value(Kind::none, 0); }
  static Value boolean(bool value) { return Value(Kind::boolean, value); }
  static Value integer(int64_t value) { return Value(Kind::integer, value); }
  static Value real(double value);
  static Value undefined(Missing why, Kind of = Kind::absent, Object* name = nullptr);
  static Value function(uint8_t id);
  static Value object(Kind kind, Object* object);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple; }
  bool is_number() const { return kind_ >= Kind::boolean && kind_ <= Kind::real; }
  bool is_whole() const { return kind_ == Kind::boolean || kind_ == Kind::integer; }

  int64_t as_integer() const { return integer_; }  // REQUIRES: is_whole().
  double as_real() const { return kind_ == Kind::real ? real_ : double(integer_); }
  bool as_boolean() const { return integer_ != 0; }
  uint8_t function_id() const { return detail_; }
  Missing why_missing() const { return Missing(detail_); }
  Kind missing_of() const { return Kind(uint8_t(missing_of_)); }

  // REQUIRES: the kind whose object T is.
  template <class T>
  T& as() const {
    return *static_cast<T*>(object_);
  }
  Object* pointer() const { return holds_object_ ? object_ : nullptr; }

  // Scalars: came from the input. Strings know it byte by byte.
  bool is_users() const { return users_; }
  Value& set_users(bool users) { return users_ = users, *this; }
  // Strings that `safe` or `escape` made: joined with plain strings, they escape them.
  bool is_markup() const { return markup_; }
  Value& set_markup(bool markup) { return markup_ = markup, *this; }

  std::string_view text() const;            // REQUIRES: a string.
  const MarkedText& marked() const;         // REQUIRES: a string.
  const std::vector<Value>& items() const;  // REQUIRES: a list or a tuple.

 private:
  Value(Kind kind, int64_t value) : kind_(kind), integer_(value) {}
  void copy(const Value& other);
  void steal(Value& other) noexcept;

  Kind kind_ = Kind::absent;
  uint8_t detail_ = 0;
  bool users_ : 1 = false;
  bool markup_ : 1 = false;
  bool holds_object_ : 1 = false;
  Kind missing_of_ = Kind::absent;
  union {
    int64_t integer_;
    double real_;
    Object* object_;
  };
};

using Entry = std::pair<Value, Value>;

struct StringObject final : Object {
  explicit StringObject(MarkedText value);
  MarkedText text;
  size_t character_count;  // Code points; equal to the bytes where the text is ASCII.
  bool is_ascii() const { return character_count == text.size(); }
};

struct ListObject final : Object {
  explicit ListObject(std::vector<Value> values) : items(std::move(values)) {}
  std::vector<Value> items;
  size_t key_work = SIZE_MAX;  // Of a tuple: as key_work() says it. Lists are no keys.
  bool is_group = false;       // A pair that groupby made: it has `grouper` and `list`.
};

// Keys keep the order in which they came. Found by a sorted index: no hash that untrusted input
// could collide.
struct DictObject final : Object {
  // A key that comes twice keeps its first place and its last value, as in Python.
  explicit DictObject(std::vector<Entry> values);
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  // How many bytes finding a key of this key_work() touches, at most.
  size_t find_work(size_t key_work) const;
  std::vector<Entry> entries;

 private:
  std::vector<uint32_t> index_;  // Entries in the order of their keys; empty where few.
  size_t key_work_max_ = 0;      // Of the keys here.
};

// A total order of numbers, exact between integers and reals; NaN comes last.
int compare_numbers(const Value& a, const Value& b);

// A value without an owner that counts it: for inputs and constants. The containers fail where
// they would nest deeper than kNestingMax.
Value plain_string(std::string_view text, bool trusted);
Result<Value> plain_list(std::vector<Value> items);
Result<Value> plain_dict(std::vector<Entry> entries);

std::string_view name_of(Kind kind);  // As Python names the type: "str", "NoneType", …

}  // namespace cairn::jinja
