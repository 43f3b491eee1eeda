// Values: counting, dict look-up and the making of values that belong to no render.
#include "jinja/values/value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "jinja/characters.h"
#include "jinja/values/heap.h"
#include "jinja/values/keys.h"

namespace cairn::jinja {
namespace {

// Below this many entries a walk is faster than an index.
constexpr size_t kIndexFrom = 9;

int key_class(const Value& key) {
  if (key.is_number()) return 0;
  if (key.is(Kind::string)) return 1;
  return key.is(Kind::none) ? 2 : 3;
}

// Exact: rounding the integer would make the order intransitive, and sorting by it undefined.
int compare_integer_with_real(int64_t a, double b) {
  if (b >= 0x1p63) return -1;
  if (b < -0x1p63) return 1;
  const int64_t whole = int64_t(b);
  if (a != whole) return a < whole ? -1 : 1;
  const double rest = b - double(whole);
  return rest > 0 ? -1 : rest < 0;
}

int sign_of(int order) {
  return order < 0 ? -1 : order > 0;
}

// The order of a key and a text, as compare_keys() has it.
int compare_key_with_text(const Value& key, std::string_view text) {
  if (!key.is(Kind::string)) return key_class(key) < 1 ? -1 : 1;
  return sign_of(key.text().compare(text));
}

// More is more than any budget.
size_t bounded(size_t work) {
  constexpr size_t kMost = size_t(1) << 48;
  return std::min(work, kMost);
}

uint32_t deepest(const std::vector<Value>& items) {
  uint32_t depth = 0;
  for (const Value& item : items) {
    if (const Object* object = item.pointer()) depth = std::max(depth, object->nesting());
  }
  return depth;
}

}  // namespace

Object::~Object() {
  if (heap_ != nullptr) heap_->refund(paid_bytes_);
}

Value Value::real(double value) {
  Value made;
  made.kind_ = Kind::real;
  made.real_ = value;
  return made;
}

Value Value::undefined(Missing why, Kind of, Object* name) {
  Value made;
  if (name != nullptr) made = object(Kind::undefined, name);
  made.kind_ = Kind::undefined;
  made.detail_ = uint8_t(why);
  made.missing_of_ = of;
  return made;
}

Value Value::function(uint8_t id) {
  Value made;
  made.kind_ = Kind::function;
  made.detail_ = id;
  return made;
}

Value Value::object(Kind kind, Object* object) {
  Value made;
  made.kind_ = kind;
  made.holds_object_ = true;
  made.object_ = object;
  object->hold();
  return made;
}

void Value::copy(const Value& other) {
  kind_ = other.kind_;
  detail_ = other.detail_;
  users_ = other.users_;
  markup_ = other.markup_;
  holds_object_ = other.holds_object_;
  missing_of_ = other.missing_of_;
  integer_ = 0;
  if (holds_object_) {
    object_ = other.object_;
    object_->hold();
  } else if (kind_ == Kind::real) {
    real_ = other.real_;
  } else {
    integer_ = other.integer_;
  }
}

void Value::steal(Value& other) noexcept {
  kind_ = other.kind_;
  detail_ = other.detail_;
  users_ = other.users_;
  markup_ = other.markup_;
  holds_object_ = other.holds_object_;
  missing_of_ = other.missing_of_;
  if (holds_object_) {
    object_ = other.object_;
    other.holds_object_ = false;
    other.kind_ = Kind::absent;
    other.integer_ = 0;
  } else if (kind_ == Kind::real) {
    real_ = other.real_;
  } else {
    integer_ = other.integer_;
  }
}

std::string_view Value::text() const {
  return as<StringObject>().text.bytes();
}
const MarkedText& Value::marked() const {
  return as<StringObject>().text;
}
const std::vector<Value>& Value::items() const {
  return as<ListObject>().items;
}

StringObject::StringObject(MarkedText value)
    : text(std::move(value)), character_count(count_characters(text.bytes())) {}

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) {
    return a.as_integer() < b.as_integer() ? -1 : a.as_integer() > b.as_integer();
  }
  const double x = a.as_real();
  const double y = b.as_real();
  if (std::isnan(x) || std::isnan(y)) return int(std::isnan(x)) - int(std::isnan(y));
  if (a.is_whole()) return compare_integer_with_real(a.as_integer(), y);
  if (b.is_whole()) return -compare_integer_with_real(b.as_integer(), x);
  return x < y ? -1 : x > y;
}

size_t key_work(const Value& value) {
  if (value.is(Kind::tuple)) return value.as<ListObject>().key_work;
  if (value.is(Kind::string)) return kKeyWorkMin + value.text().size();
  return value.is(Kind::none) || value.is_number() ? kKeyWorkMin : kNoKey;
}

size_t key_work_of_tuple(const std::vector<Value>& items) {
  size_t sum = kKeyWorkMin;
  for (const Value& item : items) {
    const size_t work = key_work(item);
    if (work == kNoKey) return kNoKey;
    sum = bounded(sum + work);
  }
  return sum;
}

// Each key takes part in as many comparisons as merging has levels.
size_t sorting_work(const std::vector<Entry>& entries) {
  const size_t levels = size_t(std::bit_width(entries.size()));
  size_t sum = 0;
  for (const Entry& entry : entries) sum = bounded(sum + key_work(entry.first) * levels);
  return sum;
}

bool is_key(const Value& value) {
  return key_work(value) != kNoKey;
}

bool is_unhashable(const Value& value) {
  return value.is_sequence() || value.is(Kind::dict) || value.is(Kind::view);
}

int compare_keys(const Value& a, const Value& b) {
  const int class_a = key_class(a);
  const int class_b = key_class(b);
  if (class_a != class_b) return class_a < class_b ? -1 : 1;
  if (class_a == 0) return compare_numbers(a, b);
  if (class_a == 1) return sign_of(a.text().compare(b.text()));
  if (class_a == 2) return 0;
  const std::vector<Value>& left = a.items();
  const std::vector<Value>& right = b.items();
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (const int order = compare_keys(left[i], right[i])) return order;
  }
  return left.size() < right.size() ? -1 : left.size() > right.size();
}

DictObject::DictObject(std::vector<Entry> values) : entries(std::move(values)) {
  std::vector<uint32_t> sorted(entries.size());
  std::iota(sorted.begin(), sorted.end(), 0u);
  // Merging, which compares no key more often than sorting_work() says.
  std::stable_sort(sorted.begin(), sorted.end(), [this](uint32_t a, uint32_t b) {
    return compare_keys(entries[a].first, entries[b].first) < 0;
  });
  std::vector<char> doomed(entries.size(), 0);
  bool has_twins = false;
  for (size_t i = 1, first = 0; i < sorted.size(); ++i) {
    if (compare_keys(entries[sorted[first]].first, entries[sorted[i]].first) != 0) {
      first = i;
      continue;
    }
    entries[sorted[first]].second = std::move(entries[sorted[i]].second);
    doomed[sorted[i]] = 1;
    has_twins = true;
  }
  if (has_twins) {
    std::vector<Entry> kept;
    std::vector<uint32_t> place(entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      place[i] = uint32_t(kept.size());
      if (!doomed[i]) kept.push_back(std::move(entries[i]));
    }
    std::erase_if(sorted, [&](uint32_t entry) { return doomed[entry] != 0; });
    for (uint32_t& entry : sorted) entry = place[entry];
    entries = std::move(kept);
  }
  for (const Entry& entry : entries) {
    key_work_max_ = std::max(key_work_max_, key_work(entry.first));
  }
  if (entries.size() >= kIndexFrom) index_ = std::move(sorted);
}

size_t DictObject::find_work(size_t key_work) const {
  const size_t comparisons =
      index_.empty() ? entries.size() : size_t(std::bit_width(index_.size())) + 1;
  return bounded(comparisons * std::min(key_work, key_work_max_));
}

const Value* DictObject::find(const Value& key) const {
  if (index_.empty()) {
    for (const Entry& entry : entries) {
      if (compare_keys(entry.first, key) == 0) return &entry.second;
    }
    return nullptr;
  }
  const auto at = std::lower_bound(
      index_.begin(), index_.end(), key,
      [this](uint32_t i, const Value& k) { return compare_keys(entries[i].first, k) < 0; });
  if (at == index_.end() || compare_keys(entries[*at].first, key) != 0) return nullptr;
  return &entries[*at].second;
}

const Value* DictObject::find(std::string_view key) const {
  if (index_.empty()) {
    for (const Entry& entry : entries) {
      if (entry.first.is(Kind::string) && entry.first.text() == key) return &entry.second;
    }
    return nullptr;
  }
  const auto at = std::lower_bound(index_.begin(), index_.end(), key,
                                   [this](uint32_t i, std::string_view text) {
                                     return compare_key_with_text(entries[i].first, text) < 0;
                                   });
  if (at == index_.end() || compare_key_with_text(entries[*at].first, key) != 0) return nullptr;
  return &entries[*at].second;
}

Value plain_string(std::string_view text, bool trusted) {
  return Value::object(Kind::string, new StringObject(MarkedText(std::string(text), trusted)));
}

Result<Value> plain_list(std::vector<Value> items) {
  const uint32_t nesting = deepest(items) + 1;
  if (nesting > kNestingMax) {
    return fail(ErrorCode::no_room, "a list: expected nesting of at most {}, found {}", kNestingMax,
                nesting);
  }
  auto* list = new ListObject(std::move(items));
  list->set_nesting(nesting);
  return Value::object(Kind::list, list);
}

Result<Value> plain_dict(std::vector<Entry> entries) {
  uint32_t nesting = 1;
  for (const Entry& entry : entries) {
    if (const Object* object = entry.first.pointer())
      nesting = std::max(nesting, object->nesting() + 1);
    if (const Object* object = entry.second.pointer()) {
      nesting = std::max(nesting, object->nesting() + 1);
    }
  }
  if (nesting > kNestingMax) {
    return fail(ErrorCode::no_room, "a dict: expected nesting of at most {}, found {}", kNestingMax,
                nesting);
  }
  auto* dict = new DictObject(std::move(entries));
  dict->set_nesting(nesting);
  return Value::object(Kind::dict, dict);
}

std::string_view name_of(Kind kind) {
  static constexpr std::string_view kNames[] = {
      "absent", "Undefined", "NoneType", "bool",        "int",       "float", "str",
      "list",   "tuple",     "dict",     "view",        "generator", "range", "Namespace",
      "Macro",  "function",  "method",   "LoopContext", "Cycler",    "Joiner"};
  return kNames[size_t(kind)];
}

}  // namespace cairn::jinja
