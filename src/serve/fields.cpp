// Reading a body by the table.
#include "serve/fields.h"

#include <algorithm>
#include <string>
#include <utility>

#include "json/reader.h"

namespace cairn::serve {

namespace {

// Of requests that are whole without a field; those of sessions that have none have no bit.
constexpr uint32_t kEmptyBodies = kSession | kSessionFork;
constexpr json::Limits kBodyLimits{.bytes = size_t(32) << 20};

std::string_view name_of(FieldKind kind) {
  switch (kind) {
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::integer:
      return "a whole number";
    case FieldKind::number:
      return "a number";
    case FieldKind::text:
      return "a string";
    case FieldKind::texts:
      return "a string or a list of strings";
    case FieldKind::object:
      return "an object";
    case FieldKind::list:
      return "a list";
    case FieldKind::any:
      break;
  }
  return "a value";
}

bool is_of(FieldKind kind, const json::Value& value) {
  using Kind = json::Value::Kind;
  switch (kind) {
    case FieldKind::boolean:
      return value.kind() == Kind::boolean;
    case FieldKind::integer:
      return value.is_number() && value.as_integer().has_value();
    case FieldKind::number:
      return value.is_number();
    case FieldKind::text:
      return value.kind() == Kind::string;
    case FieldKind::texts:
      return value.kind() == Kind::string ||
             (value.is_array() &&
              std::all_of(value.items().begin(), value.items().end(),
                          [](const json::Value& item) { return item.as_text().has_value(); }));
    case FieldKind::object:
      return value.is_object();
    case FieldKind::list:
      return value.is_array();
    case FieldKind::any:
      break;
  }
  return true;
}

// How much of it there is: its value, its bytes or its items.
double measure_of(FieldKind kind, const json::Value& value) {
  if (value.is_number()) return value.as_real().value_or(0);
  if (kind == FieldKind::text) return double(value.as_text()->size());
  return double(value.items().size());
}

Checked<Ok> check(const Field& field, std::string_view place, const json::Value& value) {
  const std::string name = fmt::format("{}{}", place, field.name);
  if (!is_of(field.kind, value)) {
    return refuse_field(name, "expected {}, found {}", name_of(field.kind), value.describe());
  }
  const bool is_measured = field.kind != FieldKind::boolean && field.kind != FieldKind::object &&
                           field.kind != FieldKind::any;
  if (!is_measured) return Ok{};
  const double measure = measure_of(field.kind, value);
  const bool is_number = value.is_number();
  if (measure >= field.min && measure <= field.max) return Ok{};
  if (is_number) {
    return refuse_field(name, "expected {} from {} to {}, found {}", name_of(field.kind), field.min,
                        field.max, value.describe());
  }
  return refuse_field(name, "expected {} to {} {}, found {}", field.min, field.max,
                      field.kind == FieldKind::text ? "bytes" : "items", measure);
}

}  // namespace

Checked<Body> Body::read(std::string_view text, Endpoint endpoint) {
  if (text.empty() && (endpoint & ~kEmptyBodies) == 0) text = "{}";
  Result<json::Value> value = json::read_value("body", text, kBodyLimits);
  if (!value) {
    return Refusal{.code = "invalid_json", .message = std::move(value).error().message};
  }
  if (!value->is_object()) {
    return Refusal{
        .code = "invalid_json",
        .message = fmt::format("body: expected an object, found {}", value->type_name())};
  }
  Body body(endpoint);
  body.value_ = std::move(value).value();
  CAIRN_TRY(body.take(body.value_, ""));
  return body;
}

Checked<Body> Body::part(std::string_view name, Endpoint endpoint) const {
  Body body(endpoint);
  if (const json::Value* const object = find(name)) {
    CAIRN_TRY(body.take(*object, fmt::format("{}.", name)));
  }
  return body;
}

Checked<Ok> Body::take(const json::Value& object, std::string_view place) {
  for (const Field& field : all_fields()) {
    if ((field.endpoints & endpoint_) == 0) continue;
    const json::Value* const found = object.find_set(field.name);
    if (found != nullptr) {
      CAIRN_TRY(check(field, place, *found));
      found_.emplace_back(field.name, found);
    } else if (field.is_required) {
      return refuse_field(fmt::format("{}{}", place, field.name), "expected {}, found none",
                          name_of(field.kind));
    }
  }
  return Ok{};
}

const json::Value* Body::find(std::string_view name) const {
  for (const auto& [known, value] : found_) {
    if (known == name) return value;
  }
  return nullptr;
}

bool Body::is_true(std::string_view name, bool otherwise) const {
  const json::Value* const found = find(name);
  return found == nullptr ? otherwise : found->as_boolean() == true;
}

std::optional<int64_t> Body::integer(std::string_view name) const {
  const json::Value* const found = find(name);
  return found == nullptr ? std::nullopt : found->as_integer();
}

std::optional<double> Body::number(std::string_view name) const {
  const json::Value* const found = find(name);
  return found == nullptr ? std::nullopt : found->as_real();
}

std::optional<std::string_view> Body::text(std::string_view name) const {
  const json::Value* const found = find(name);
  return found == nullptr ? std::nullopt : found->as_text();
}

std::vector<std::string> Body::texts(std::string_view name) const {
  std::vector<std::string> texts;
  const json::Value* const found = find(name);
  if (found == nullptr) return texts;
  if (const auto one = found->as_text()) texts.emplace_back(*one);
  for (const json::Value& item : found->items()) texts.emplace_back(*item.as_text());
  return texts;
}

}  // namespace cairn::serve
