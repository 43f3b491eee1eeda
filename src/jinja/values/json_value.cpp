// Events of the one JSON reader, put together on an explicit stack.
#include "jinja/values/json_value.h"

#include <cmath>
#include <vector>

namespace cairn::jinja {
namespace {

using json::Event;

class Builder {
 public:
  explicit Builder(std::string_view text) : reader_("JSON", text, kJsonLimits) {}

  Result<Value> run() {
    while (true) {
      CAIRN_TRY(const Event event, reader_.next());
      if (event == Event::end) return std::move(result_);
      CAIRN_TRY(take(event));
    }
  }

 private:
  struct Level {
    bool is_object;
    std::vector<Value> items = {};
    std::vector<Entry> entries = {};
  };

  Status take(Event event) {
    switch (event) {
      case Event::null:
        return add(Value::none());
      case Event::boolean:
        return add(Value::boolean(reader_.boolean()).set_users(true));
      case Event::number:
        return number(reader_.spelling());
      case Event::string:
        return add(plain_string(std::move(reader_.text()), false));
      case Event::key:
        levels_.back().entries.emplace_back(plain_string(std::move(reader_.text()), false),
                                            Value());
        return Ok{};
      case Event::begin_object:
      case Event::begin_array:
        levels_.push_back({.is_object = event == Event::begin_object});
        return Ok{};
      case Event::end_object:
        return close(plain_dict(std::move(levels_.back().entries)));
      case Event::end_array:
        return close(plain_list(std::move(levels_.back().items)));
      case Event::end:
        break;
    }
    return Ok{};
  }

  Status number(std::string_view spelling) {
    if (spelling.find_first_of(".eE") == spelling.npos) {
      const std::optional<int64_t> integer = json::integer_of(spelling);
      if (!integer) return refuse("an integer: expected at most 64 bits, found {}", spelling);
      return add(Value::integer(*integer).set_users(true));
    }
    const double real = json::real_of(spelling);
    if (!std::isfinite(real)) return refuse("a number: expected a finite one, found {}", spelling);
    return add(Value::real(real).set_users(true));
  }

  Error refuse(fmt::format_string<std::string_view> format, std::string_view spelling) const {
    return reader_.refuse(ErrorCode::invalid_data, fmt::format(format, spelling.substr(0, 40)));
  }

  Status close(Result<Value> value) {
    levels_.pop_back();
    if (!value) return std::move(value).error();
    return add(std::move(value).value());
  }

  Status add(Value value) {
    if (levels_.empty()) {
      result_ = std::move(value);
    } else if (levels_.back().is_object) {
      levels_.back().entries.back().second = std::move(value);
    } else {
      levels_.back().items.push_back(std::move(value));
    }
    return Ok{};
  }

  json::Reader reader_;
  std::vector<Level> levels_;
  Value result_ = Value::none();
};

}  // namespace

Result<Value> parse_json(std::string_view json) {
  return Builder(json).run();
}

}  // namespace cairn::jinja
