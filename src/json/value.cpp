// Values out of events, on an explicit stack; members found through an index where they are many.
#include "json/value.h"

#include <algorithm>
#include <cmath>

namespace cairn::json {

namespace {

constexpr size_t kIndexedMin = 16;  // Below, looking at each member is as fast.

}  // namespace

class ValueBuilder {
 public:
  // False where the text is over.
  Result<bool> take(Event event, Reader& reader) {
    switch (event) {
      case Event::null:
        add(Value());
        break;
      case Event::boolean:
        add(Value(reader.boolean()));
        break;
      case Event::number:
        return number(reader);
      case Event::string:
        add(Value(std::move(reader.text())));
        break;
      case Event::key:
        members().push_back({std::move(reader.text()), Value()});
        break;
      case Event::begin_object:
        levels_.push_back(Value::object());
        break;
      case Event::begin_array:
        levels_.push_back(Value::array());
        break;
      case Event::end_object:
      case Event::end_array: {
        Value done = std::move(levels_.back());
        levels_.pop_back();
        if (done.is_object()) std::get<Object>(done.content_).make_index();
        add(std::move(done));
        break;
      }
      case Event::end:
        return false;
    }
    return true;
  }

  Value result() && { return std::move(result_); }

 private:
  using Object = Value::Object;

  Result<bool> number(const Reader& reader) {
    const std::string_view spelling = reader.spelling();
    if (const auto integer = integer_of(spelling)) {
      add(Value(*integer));
      return true;
    }
    const double real = real_of(spelling);
    if (!std::isfinite(real)) {
      return reader.refuse(ErrorCode::invalid_data,
                           fmt::format("expected a number within the range of doubles, found {}",
                                       spelling.substr(0, 40)));
    }
    Value value;
    value.content_ = Value::Real{.value = real, .spelling = std::string(spelling)};
    add(std::move(value));
    return true;
  }

  void add(Value value) {
    if (levels_.empty()) {
      result_ = std::move(value);
    } else if (levels_.back().is_object()) {
      members().back().value = std::move(value);
    } else {
      std::get<std::vector<Value>>(levels_.back().content_).push_back(std::move(value));
    }
  }
  // Of the innermost object.
  std::vector<Value::Member>& members() {
    return std::get<Object>(levels_.back().content_).members;
  }

  std::vector<Value> levels_;
  Value result_;
};

Result<Value> read_value(std::string_view name, std::string_view text, const Limits& limits) {
  Limits own = limits;
  own.may_repeat_keys = false;
  Reader reader(name, text, own);
  ValueBuilder builder;
  while (true) {
    CAIRN_TRY(const Event event, reader.next());
    CAIRN_TRY(const bool goes_on, builder.take(event, reader));
    if (!goes_on) return std::move(builder).result();
  }
}

Value::Object::Object() = default;
Value::Object::Object(const Object& other) = default;
Value::Object::Object(Object&& other) noexcept = default;
Value::Object& Value::Object::operator=(const Object& other) = default;
Value::Object& Value::Object::operator=(Object&& other) noexcept = default;
Value::Object::~Object() = default;

Value::Value() = default;
Value::Value(std::string text) : content_(std::move(text)) {}
Value::Value(std::string_view text) : Value(std::string(text)) {}
Value::Value(const char* text) : Value(std::string(text)) {}

Value::Value(std::initializer_list<Member> members) : Value(object(std::vector<Member>(members))) {}

Value Value::array() {
  return Value(std::vector<Value>());
}

Value Value::object() {
  return object({});
}

Value Value::object(std::vector<Member> members) {
  Value value;
  Object& object = value.content_.emplace<Object>();
  object.members = std::move(members);
  object.make_index();
  return value;
}

void Value::set_integer(bool is_negative, uint64_t bits) {
  if (is_negative || int64_t(bits) >= 0) {
    content_ = int64_t(bits);
  } else {
    content_ = Real{.value = double(bits), .spelling = fmt::format("{}", bits)};
  }
}

void Value::Object::make_index() {
  if (members.size() < kIndexedMin) return;
  index.resize(members.size());
  for (size_t i = 0; i < index.size(); ++i) index[i] = uint32_t(i);
  std::sort(index.begin(), index.end(),
            [&](uint32_t a, uint32_t b) { return members[a].key < members[b].key; });
}

const std::vector<Value>& Value::items() const {
  static const std::vector<Value> none;
  const auto* const items = std::get_if<std::vector<Value>>(&content_);
  return items == nullptr ? none : *items;
}

const std::vector<Value::Member>& Value::members() const {
  static const std::vector<Member> none;
  const Object* const object = std::get_if<Object>(&content_);
  return object == nullptr ? none : object->members;
}

std::optional<bool> Value::as_boolean() const {
  const bool* const boolean = std::get_if<bool>(&content_);
  return boolean == nullptr ? std::nullopt : std::optional(*boolean);
}

std::optional<int64_t> Value::as_integer() const {
  if (const int64_t* const integer = std::get_if<int64_t>(&content_)) return *integer;
  // 2^62: far below where a conversion would overflow.
  const std::optional<double> real = as_real();
  if (real && std::floor(*real) == *real && std::fabs(*real) < 0x1p62) return int64_t(*real);
  return std::nullopt;
}

std::optional<double> Value::as_real() const {
  if (const int64_t* const integer = std::get_if<int64_t>(&content_)) return double(*integer);
  if (const Real* const real = std::get_if<Real>(&content_)) return real->value;
  return std::nullopt;
}

std::optional<std::string_view> Value::as_text() const {
  const std::string* const text = std::get_if<std::string>(&content_);
  return text == nullptr ? std::nullopt : std::optional<std::string_view>(*text);
}

const Value* Value::find(std::string_view key) const {
  const Object* const object = std::get_if<Object>(&content_);
  return object == nullptr ? nullptr : object->find(key);
}

const Value* Value::Object::find(std::string_view key) const {
  if (index.empty()) {
    for (const Member& member : members) {
      if (member.key == key) return &member.value;
    }
    return nullptr;
  }
  const auto at = std::lower_bound(
      index.begin(), index.end(), key,
      [&](uint32_t member, std::string_view wanted) { return members[member].key < wanted; });
  if (at == index.end() || members[*at].key != key) return nullptr;
  return &members[*at].value;
}

const Value* Value::find_set(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<std::string_view> Value::text_at(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? std::nullopt : value->as_text();
}

bool Value::is_true_at(std::string_view key) const {
  const Value* value = find(key);
  return value != nullptr && value->as_boolean().value_or(false);
}

Value& Value::operator[](std::string_view key) {
  if (is_null()) content_ = Object();
  CHECK(is_object());
  auto& [members, index] = std::get<Object>(content_);
  if (const Value* known = find(key)) return const_cast<Value&>(*known);
  members.push_back({std::string(key), Value()});
  if (index.empty()) {
    std::get<Object>(content_).make_index();
  } else {
    const auto at = std::lower_bound(index.begin(), index.end(), key,
                                     [&all = members](uint32_t member, std::string_view wanted) {
                                       return all[member].key < wanted;
                                     });
    index.insert(at, uint32_t(members.size() - 1));
  }
  return members.back().value;
}

void Value::set(std::string_view key, Value value) {
  (*this)[key] = std::move(value);
}

void Value::push_back(Value value) {
  if (is_null()) content_ = std::vector<Value>();
  CHECK(is_array());
  std::get<std::vector<Value>>(content_).push_back(std::move(value));
}

std::string_view Value::type_name() const {
  switch (kind()) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "boolean";
    case Kind::integer:
    case Kind::real:
      return "number";
    case Kind::string:
      return "string";
    case Kind::array:
      return "array";
    case Kind::object:
      return "object";
  }
  return "nothing";
}

std::string Value::describe() const {
  switch (kind()) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return *as_boolean() ? "true" : "false";
    case Kind::integer:
      return fmt::format("{}", *as_integer());
    case Kind::real:
      return fmt::format("{}", *as_real());
    case Kind::string:
      return fmt::format("\"{}\"", as_text()->substr(0, 80));
    case Kind::array:
      return fmt::format("an array of {}", items().size());
    case Kind::object:
      return fmt::format("an object of {}", members().size());
  }
  return "nothing";
}

}  // namespace cairn::json
