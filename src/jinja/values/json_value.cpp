// Events of a JSON reader that does not recurse, put together on an explicit stack.
#include "jinja/values/json_value.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace cairn::jinja {
namespace {

using jinja::Entry;
using jinja::Value;

std::pair<size_t, size_t> place_of(std::string_view json, size_t offset) {
  const std::string_view before = json.substr(0, std::min(offset, json.size()));
  const size_t line = size_t(std::count(before.begin(), before.end(), '\n'));
  const size_t start = before.rfind('\n');
  return {line + 1,
          before.size() - (start == before.npos ? 0 : start + 1) + (start == before.npos)};
}

class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit Builder(std::string_view json) : json_(json) {}

  bool null() { return add(Value::none()); }
  bool boolean(bool value) { return add(Value::boolean(value).set_users(true)); }
  bool number_integer(number_integer_t value) { return add(Value::integer(value).set_users(true)); }
  bool number_unsigned(number_unsigned_t value) {
    if (value <= uint64_t(INT64_MAX)) return number_integer(int64_t(value));
    return refuse(ErrorCode::invalid_data, "an integer: expected at most 64 bits, found {}", value);
  }
  bool number_float(number_float_t value, const string_t& text) {
    // The reader turns integers that are too large into reals.
    if (text.find_first_of(".eE") == text.npos) {
      return refuse(ErrorCode::invalid_data, "an integer: expected at most 64 bits, found {}",
                    text.substr(0, 40));
    }
    if (!std::isfinite(value)) {
      return refuse(ErrorCode::invalid_data, "a number: expected a finite one, found {}",
                    text.substr(0, 40));
    }
    return add(Value::real(value).set_users(true));
  }
  bool string(string_t& text) { return add(jinja::plain_string(text, false)); }
  bool binary(binary_t&) { return false; }

  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool key(string_t& name) {
    Level& level = levels_.back();
    if (level.entries.size() >= kJsonMembersMax) {
      return refuse(ErrorCode::no_room, "an object: expected at most {} members, found more",
                    kJsonMembersMax);
    }
    if (!level.keys.insert(name).second) {
      return refuse(ErrorCode::invalid_data, "an object: expected key '{}' once, found it twice",
                    name.substr(0, 60));
    }
    level.entries.emplace_back(jinja::plain_string(name, false), Value());
    return true;
  }
  bool end_object() { return close(jinja::plain_dict(std::move(levels_.back().entries))); }
  bool end_array() { return close(jinja::plain_list(std::move(levels_.back().items))); }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
    const auto [line, column] = place_of(json_, position == 0 ? 0 : position - 1);
    // The reader's words after its own place and number: "syntax error while parsing …".
    std::string_view words = error.what();
    const size_t colon = words.find(": ");
    if (colon != words.npos) words.remove_prefix(colon + 2);
    error_ = fail(ErrorCode::invalid_data, "JSON line {}, column {}: {}", line, column,
                  words.substr(0, 300));
    return false;
  }

  Result<Value> result() && {
    if (error_) return *std::move(error_);
    return std::move(result_);
  }

 private:
  struct Level {
    bool is_object;
    std::vector<Value> items;
    std::vector<Entry> entries;
    std::set<std::string> keys;
  };

  template <class... Args>
  bool refuse(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    error_ = fail(code, "JSON: {}", fmt::format(format, std::forward<Args>(args)...));
    return false;
  }

  bool open(bool is_object) {
    if (levels_.size() >= size_t(kJsonDepthMax)) {
      return refuse(ErrorCode::no_room, "expected nesting of at most {}, found more",
                    kJsonDepthMax);
    }
    levels_.push_back({is_object, {}, {}, {}});
    return true;
  }

  bool close(Result<Value> value) {
    levels_.pop_back();
    if (!value) {
      error_ = std::move(value).error();
      return false;
    }
    return add(std::move(value).value());
  }

  bool add(Value value) {
    if (levels_.empty()) {
      result_ = std::move(value);
    } else if (levels_.back().is_object) {
      levels_.back().entries.back().second = std::move(value);
    } else {
      levels_.back().items.push_back(std::move(value));
    }
    return true;
  }

  std::string_view json_;
  std::vector<Level> levels_;
  Value result_ = Value::none();
  std::optional<Error> error_;
};

}  // namespace

Result<jinja::Value> parse_json(std::string_view json) {
  if (json.size() > kJsonBytesMax) {
    return fail(ErrorCode::no_room, "JSON: expected at most {} bytes, found {}", kJsonBytesMax,
                json.size());
  }
  Builder builder(json);
  nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  return std::move(builder).result();
}

}  // namespace cairn::jinja
