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
        levels_.back().members_.push_back({std::move(reader.text()), Value()});
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
        done.make_index();
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
  Result<bool> number(const Reader& reader) {
    const std::string_view spelling = reader.spelling();
    if (const auto integer = integer_of(spelling)) {
      add(Value(*integer));
      return true;
    }
    Value real(real_of(spelling));
    if (!std::isfinite(real.real_)) {
      return reader.refuse(ErrorCode::invalid_data,
                           fmt::format("expected a number within the range of doubles, found {}",
                                       spelling.substr(0, 40)));
    }
    real.text_ = spelling;
    add(std::move(real));
    return true;
  }

  void add(Value value) {
    if (levels_.empty()) {
      result_ = std::move(value);
    } else if (levels_.back().is_object()) {
      levels_.back().members_.back().value = std::move(value);
    } else {
      levels_.back().items_.push_back(std::move(value));
    }
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

Value::Value() = default;
Value::Value(std::string text) : kind_(Kind::string), text_(std::move(text)) {}
Value::Value(std::string_view text) : Value(std::string(text)) {}
Value::Value(const char* text) : Value(std::string(text)) {}

Value::Value(std::initializer_list<Member> members) : kind_(Kind::object), members_(members) {
  make_index();
}

Value Value::array() {
  Value value;
  value.kind_ = Kind::array;
  return value;
}

Value Value::object() {
  Value value;
  value.kind_ = Kind::object;
  return value;
}

Value Value::object(std::vector<Member> members) {
  Value value = object();
  value.members_ = std::move(members);
  value.make_index();
  return value;
}

void Value::set_integer(bool is_negative, uint64_t bits) {
  kind_ = Kind::integer;
  integer_ = int64_t(bits);
  if (is_negative || integer_ >= 0) return;
  kind_ = Kind::real;
  real_ = double(bits);
  text_ = fmt::format("{}", bits);
}

void Value::make_index() {
  if (members_.size() < kIndexedMin) return;
  index_.resize(members_.size());
  for (size_t i = 0; i < index_.size(); ++i) index_[i] = uint32_t(i);
  std::sort(index_.begin(), index_.end(),
            [&](uint32_t a, uint32_t b) { return members_[a].key < members_[b].key; });
}

std::optional<bool> Value::as_boolean() const {
  if (kind_ != Kind::boolean) return std::nullopt;
  return boolean_;
}

std::optional<int64_t> Value::as_integer() const {
  if (kind_ == Kind::integer) return integer_;
  // 2^62: far below where a conversion would overflow.
  if (kind_ == Kind::real && std::floor(real_) == real_ && std::fabs(real_) < 0x1p62) {
    return int64_t(real_);
  }
  return std::nullopt;
}

std::optional<double> Value::as_real() const {
  if (kind_ == Kind::integer) return double(integer_);
  if (kind_ == Kind::real) return real_;
  return std::nullopt;
}

std::optional<std::string_view> Value::as_text() const {
  if (kind_ != Kind::string) return std::nullopt;
  return std::string_view(text_);
}

const Value* Value::find(std::string_view key) const {
  if (index_.empty()) {
    for (const Member& member : members_) {
      if (member.key == key) return &member.value;
    }
    return nullptr;
  }
  const auto at = std::lower_bound(
      index_.begin(), index_.end(), key,
      [&](uint32_t member, std::string_view wanted) { return members_[member].key < wanted; });
  if (at == index_.end() || members_[*at].key != key) return nullptr;
  return &members_[*at].value;
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
  if (kind_ == Kind::null) kind_ = Kind::object;
  CHECK(kind_ == Kind::object);
  if (const Value* known = find(key)) return const_cast<Value&>(*known);
  members_.push_back({std::string(key), Value()});
  if (index_.empty()) {
    make_index();
  } else {
    const auto at = std::lower_bound(
        index_.begin(), index_.end(), key,
        [&](uint32_t member, std::string_view wanted) { return members_[member].key < wanted; });
    index_.insert(at, uint32_t(members_.size() - 1));
  }
  return members_.back().value;
}

void Value::set(std::string_view key, Value value) {
  (*this)[key] = std::move(value);
}

void Value::push_back(Value value) {
  if (kind_ == Kind::null) kind_ = Kind::array;
  CHECK(kind_ == Kind::array);
  items_.push_back(std::move(value));
}

std::string_view Value::type_name() const {
  switch (kind_) {
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
  switch (kind_) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return boolean_ ? "true" : "false";
    case Kind::integer:
      return fmt::format("{}", integer_);
    case Kind::real:
      return fmt::format("{}", real_);
    case Kind::string:
      return fmt::format("\"{}\"", text_.substr(0, 80));
    case Kind::array:
      return fmt::format("an array of {}", items_.size());
    case Kind::object:
      return fmt::format("an object of {}", members_.size());
  }
  return "nothing";
}

}  // namespace cairn::json
