// Events of a JSON reader that does not recurse, put together on an explicit stack.
#include "convert/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"

namespace cairn::convert {
namespace {

constexpr size_t kIndexedMin = 16;  // Below, looking at each member is as fast.

class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json::boolean(value)); }
  bool number_integer(number_integer_t value) { return add(Json::integer(value)); }
  bool number_unsigned(number_unsigned_t value) {
    if (value <= uint64_t(INT64_MAX)) return add(Json::integer(int64_t(value)));
    return add(Json::real(double(value)));
  }
  bool number_float(number_float_t value, const string_t&) {
    if (std::isfinite(value)) return add(Json::real(value));
    return refuse(fail(ErrorCode::invalid_data, "JSON: expected finite numbers, found another"));
  }
  bool string(string_t& value) { return add(Json::text(std::move(value))); }
  bool binary(binary_t&) { return false; }
  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool key(string_t& name) {
    levels_.back().members.push_back({std::move(name), Json()});
    return true;
  }
  bool end_object() {
    Result<Json> object = Json::object(std::move(levels_.back().members));
    levels_.pop_back();
    return object ? add(std::move(object).value()) : refuse(std::move(object).error());
  }
  bool end_array() {
    Json array = Json::array(std::move(levels_.back().items));
    levels_.pop_back();
    return add(std::move(array));
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    return refuse(
        fail(ErrorCode::invalid_data, "expected JSON, found something else at byte {}", position));
  }

  Result<Json> result() && {
    if (error_) return *std::move(error_);
    return std::move(result_);
  }

 private:
  struct Level {
    bool is_object;
    std::vector<Json> items;
    std::vector<Json::Member> members;
  };

  bool refuse(Error error) {
    error_ = std::move(error);
    return false;
  }

  bool open(bool is_object) {
    if (levels_.size() >= size_t(kJsonDepthMax)) {
      return refuse(fail(ErrorCode::no_room, "JSON: expected nesting of at most {}, found more",
                         kJsonDepthMax));
    }
    levels_.push_back({is_object, {}, {}});
    return true;
  }

  bool add(Json value) {
    if (++value_count_ > kJsonValuesMax) {
      return refuse(
          fail(ErrorCode::no_room, "JSON: expected at most {} values, found more", kJsonValuesMax));
    }
    if (levels_.empty()) {
      result_ = std::move(value);
    } else if (levels_.back().is_object) {
      levels_.back().members.back().value = std::move(value);
    } else {
      levels_.back().items.push_back(std::move(value));
    }
    return true;
  }

  std::vector<Level> levels_;
  size_t value_count_ = 0;
  Json result_;
  std::optional<Error> error_;
};

}  // namespace

Json Json::boolean(bool value) {
  Json json;
  json.kind_ = Kind::boolean;
  json.boolean_ = value;
  return json;
}

Json Json::integer(int64_t value) {
  Json json;
  json.kind_ = Kind::integer;
  json.integer_ = value;
  return json;
}

Json Json::real(double value) {
  Json json;
  json.kind_ = Kind::real;
  json.real_ = value;
  return json;
}

Json Json::text(std::string value) {
  Json json;
  json.kind_ = Kind::string;
  json.text_ = std::move(value);
  return json;
}

Json Json::array(std::vector<Json> items) {
  Json json;
  json.kind_ = Kind::array;
  json.items_ = std::move(items);
  return json;
}

Result<Json> Json::object(std::vector<Member> members) {
  Json json;
  json.kind_ = Kind::object;
  json.members_ = std::move(members);
  const std::vector<Member>& all = json.members_;
  std::vector<uint32_t> order(all.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = uint32_t(i);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return all[a].key < all[b].key; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (all[order[i]].key != all[order[i - 1]].key) continue;
    return fail(ErrorCode::invalid_data, "JSON: expected key '{}' once, found it twice",
                all[order[i]].key.substr(0, 80));
  }
  if (all.size() >= kIndexedMin) json.index_ = std::move(order);
  return json;
}

std::optional<bool> Json::as_boolean() const {
  if (kind_ != Kind::boolean) return std::nullopt;
  return boolean_;
}

std::optional<int64_t> Json::as_integer() const {
  if (kind_ == Kind::integer) return integer_;
  // 2^62: far below where a conversion would overflow.
  if (kind_ == Kind::real && std::floor(real_) == real_ && std::fabs(real_) < 0x1p62) {
    return int64_t(real_);
  }
  return std::nullopt;
}

std::optional<double> Json::as_real() const {
  if (kind_ == Kind::integer) return double(integer_);
  if (kind_ == Kind::real) return real_;
  return std::nullopt;
}

std::optional<std::string_view> Json::as_text() const {
  if (kind_ != Kind::string) return std::nullopt;
  return std::string_view(text_);
}

const Json* Json::find(std::string_view key) const {
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

const Json* Json::find_set(std::string_view key) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<std::string_view> Json::text_at(std::string_view key) const {
  const Json* value = find(key);
  return value == nullptr ? std::nullopt : value->as_text();
}

bool Json::is_true_at(std::string_view key) const {
  const Json* value = find(key);
  return value != nullptr && value->as_boolean().value_or(false);
}

void Json::set(std::string_view key, Json value) {
  CHECK(kind_ == Kind::object);
  if (find(key) != nullptr) {
    for (Member& member : members_) {
      if (member.key != key) continue;
      member.value = std::move(value);
      return;
    }
  }
  members_.push_back({std::string(key), std::move(value)});
  if (index_.empty()) return;
  const auto at = std::lower_bound(
      index_.begin(), index_.end(), key,
      [&](uint32_t member, std::string_view wanted) { return members_[member].key < wanted; });
  index_.insert(at, uint32_t(members_.size() - 1));
}

std::string Json::describe() const {
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

Result<Json> parse_json(std::string_view text) {
  if (text.size() > kJsonBytesMax) {
    return fail(ErrorCode::no_room, "JSON: expected at most {} bytes, found {}", kJsonBytesMax,
                text.size());
  }
  Builder builder;
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder).result();
}

Result<Json> read_json_file(const std::string& path) {
  CAIRN_TRY(const std::string text, read_file(path, kJsonBytesMax));
  Result<Json> json = parse_json(text);
  if (json) return json;
  return fail(json.error().code, "{}: {}", path, json.error().message);
}

}  // namespace cairn::convert
