// Keywords by what is done about them. Whatever the specification does not know is an annotation.
#include "grammar/schema_view.h"

#include <algorithm>
#include <map>
#include <set>

#include "grammar/groups.h"
#include "grammar/string_formats.h"
#include "unicode/place.h"

namespace cairn::grammar {

namespace {

using Kind = json::Document::Kind;

struct Keyword {
  std::string_view name;
  uint32_t types;  // What it says something about; 0: it is followed wherever it stands.
};

constexpr Keyword kFollowed[] = {
    {"$ref", 0},
    {"allOf", 0},
    {"anyOf", 0},
    {"oneOf", 0},
    {"type", 0},
    {"enum", 0},
    {"const", 0},
    {"not", 0},
    {"properties", kTypeObject},
    {"required", kTypeObject},
    {"additionalProperties", kTypeObject},
    {"patternProperties", kTypeObject},
    {"minProperties", kTypeObject},
    {"maxProperties", kTypeObject},
    {"items", kTypeArray},
    {"prefixItems", kTypeArray},
    {"additionalItems", kTypeArray},
    {"minItems", kTypeArray},
    {"maxItems", kTypeArray},
    {"uniqueItems", kTypeArray},
    {"pattern", kTypeString},
    {"format", kTypeString},
    {"minLength", kTypeString},
    {"maxLength", kTypeString},
    {"minimum", kTypeNumber},
    {"maximum", kTypeNumber},
    {"exclusiveMinimum", kTypeNumber},
    {"exclusiveMaximum", kTypeNumber},
    {"multipleOf", kTypeNumber},
};

constexpr std::string_view kRefused[] = {"if",
                                         "then",
                                         "else",
                                         "contains",
                                         "minContains",
                                         "maxContains",
                                         "dependencies",
                                         "dependentSchemas",
                                         "dependentRequired",
                                         "propertyNames",
                                         "unevaluatedProperties",
                                         "unevaluatedItems",
                                         "$dynamicRef",
                                         "$recursiveRef"};

constexpr std::pair<std::string_view, uint32_t> kTypes[] = {
    {"null", kTypeNull},     {"boolean", kTypeBoolean}, {"integer", kTypeInteger},
    {"number", kTypeNumber}, {"string", kTypeString},   {"array", kTypeArray},
    {"object", kTypeObject}};

const Keyword* find_followed(std::string_view name) {
  const auto found = std::find_if(std::begin(kFollowed), std::end(kFollowed),
                                  [&](const Keyword& keyword) { return keyword.name == name; });
  return found == std::end(kFollowed) ? nullptr : found;
}

// One step of a JSON pointer, with ~0, ~1 and %XX undone.
std::string pointer_step(std::string_view step) {
  std::string text;
  for (size_t at = 0; at < step.size(); ++at) {
    const std::string_view rest = step.substr(at);
    if (rest.starts_with("~0") || rest.starts_with("~1")) {
      text += rest[1] == '0' ? '~' : '/';
      ++at;
    } else if (rest[0] == '%' && read_hex(rest.substr(1), 2) >= 0) {
      text += char(read_hex(rest.substr(1), 2));
      at += 2;
    } else {
      text += rest[0];
    }
  }
  return text;
}

}  // namespace

Error SchemaViews::error(ErrorCode code, size_t offset, std::string_view what) const {
  return unicode::fail_at(code, "schema", document_.source(), offset, "{}", what);
}

Result<uint32_t> SchemaViews::resolve(uint32_t reference) const {
  const json::Document::Value& value = document_.value(reference);
  if (value.kind != Kind::string) return error_at(reference, "expected a reference in quotes");
  const std::string_view text = value.text;
  if (!text.starts_with('#') || (text.size() > 1 && text[1] != '/')) {
    return error(ErrorCode::unsupported, value.offset,
                 "expected a reference within this schema, such as \"#/$defs/name\", found " +
                     unicode::quote(text));
  }
  uint32_t target = document_.root();
  for (size_t at = 1; at < text.size();) {
    const size_t end = std::min(text.find('/', at + 1), text.size());
    const std::string step = pointer_step(text.substr(at + 1, end - at - 1));
    const json::Document::Value& inside = document_.value(target);
    const json::Document::Member* member = document_.find(target, step);
    size_t index = 0;
    for (const char c : step)
      index = std::min<size_t>(index * 10 + size_t(uint8_t(c) - '0'), 1u << 30);
    if (member != nullptr) {
      target = member->value;
    } else if (inside.kind == Kind::array && !step.empty() && index < inside.items.size()) {
      target = inside.items[index];
    } else {
      return error_at(reference, "nothing in this schema is at " + unicode::quote(text));
    }
    at = end;
  }
  return target;
}

Result<uint32_t> SchemaViews::follow(uint32_t schema) const {
  for (size_t steps = 0; steps < 64; ++steps) {
    const json::Document::Member* reference = document_.find(schema, "$ref");
    if (reference == nullptr) return schema;
    for (const json::Document::Member& member : document_.value(schema).members) {
      const bool is_refused =
          std::find(std::begin(kRefused), std::end(kRefused), member.key) != std::end(kRefused);
      if (member.key != "$ref" && (is_refused || find_followed(member.key) != nullptr)) {
        return schema;
      }
    }
    CAIRN_TRY(schema, resolve(reference->value));
  }
  return error_at(schema, "these references lead to each other and nowhere else");
}

Status SchemaViews::check_keywords(uint32_t schema) const {
  const json::Document::Value& value = document_.value(schema);
  if (value.kind != Kind::object && value.kind != Kind::boolean) {
    return error_at(schema, "expected a schema: an object, true or false");
  }
  for (const json::Document::Member& member : value.members) {
    const bool is_refused =
        std::find(std::begin(kRefused), std::end(kRefused), member.key) != std::end(kRefused);
    if (!is_refused) continue;
    return error(ErrorCode::unsupported, member.offset,
                 "the keyword " + unicode::quote(member.key) + " cannot be followed");
  }
  return Ok{};
}

Result<std::optional<SchemaView>> SchemaViews::flatten(const SchemaView& view) const {
  SchemaView flat;
  SchemaView waiting = view;
  while (!waiting.empty()) {
    SchemaPart part = waiting.back();
    waiting.pop_back();
    const bool is_known = std::any_of(flat.begin(), flat.end(), [&](const SchemaPart& known) {
      return known.schema == part.schema;
    });
    if (is_known) continue;
    CAIRN_TRY(check_keywords(part.schema));
    const json::Document::Value& value = document_.value(part.schema);
    if (value.kind == Kind::boolean) {
      if (document_.is_true(part.schema)) continue;
      return std::optional<SchemaView>();
    }
    if (!part.is_flat) {
      if (const auto* reference = document_.find(part.schema, "$ref")) {
        CAIRN_TRY(const uint32_t target, resolve(reference->value));
        waiting.push_back({.schema = target});
      }
      if (const auto* all_of = document_.find(part.schema, "allOf")) {
        if (document_.value(all_of->value).kind != Kind::array) {
          return error_at(all_of->value, "expected a list of schemas");
        }
        for (const uint32_t item : document_.value(all_of->value).items) {
          waiting.push_back({.schema = item});
        }
      }
    }
    part.is_flat = true;
    flat.push_back(part);
  }
  std::sort(flat.begin(), flat.end());
  return std::optional(flat);
}

bool SchemaViews::has_constraint(const SchemaPart& part) const {
  const auto& members = document_.value(part.schema).members;
  return std::any_of(members.begin(), members.end(), [&](const json::Document::Member& member) {
    if (member.key == "anyOf") return !part.any_of_is_done;
    if (member.key == "oneOf") return !part.one_of_is_done;
    if (member.key == "$ref" || member.key == "allOf") return !part.is_flat;
    return find_followed(member.key) != nullptr;
  });
}

const SchemaPart* SchemaViews::find_choice(const SchemaView& view) const {
  for (const SchemaPart& part : view) {
    const bool has_any = document_.find(part.schema, "anyOf") != nullptr && !part.any_of_is_done;
    const bool has_one = document_.find(part.schema, "oneOf") != nullptr && !part.one_of_is_done;
    if (has_any || has_one) return &part;
  }
  return nullptr;
}

Result<std::vector<SchemaView>> SchemaViews::choices(const SchemaView& view,
                                                     const SchemaPart& part) const {
  const json::Document::Member* any_of = document_.find(part.schema, "anyOf");
  const bool is_any = any_of != nullptr && !part.any_of_is_done;
  const uint32_t list = is_any ? any_of->value : document_.find(part.schema, "oneOf")->value;
  if (document_.value(list).kind != Kind::array || document_.value(list).items.empty()) {
    return error_at(list, "expected a list of schemas, not empty");
  }
  SchemaView rest;
  for (SchemaPart other : view) {
    if (other == part) (is_any ? other.any_of_is_done : other.one_of_is_done) = true;
    if (has_constraint(other)) rest.push_back(other);
  }
  std::vector<SchemaView> views;
  for (const uint32_t item : document_.value(list).items) {
    views.push_back(rest);
    views.back().push_back({.schema = item});
    std::sort(views.back().begin(), views.back().end());
  }
  return views;
}

const json::Document::Member* SchemaViews::find(const SchemaView& view,
                                                std::string_view keyword) const {
  for (const SchemaPart& part : view) {
    if (const json::Document::Member* member = document_.find(part.schema, keyword)) return member;
  }
  return nullptr;
}

std::vector<uint32_t> SchemaViews::all(const SchemaView& view, std::string_view keyword) const {
  std::vector<uint32_t> values;
  for (const SchemaPart& part : view) {
    const json::Document::Member* member = document_.find(part.schema, keyword);
    if (member != nullptr) values.push_back(member->value);
  }
  return values;
}

const json::Document::Member* SchemaViews::find_other(
    const SchemaView& view, std::initializer_list<std::string_view> keywords) const {
  for (const SchemaPart& part : view) {
    for (const json::Document::Member& member : document_.value(part.schema).members) {
      const Keyword* followed = find_followed(member.key);
      if (followed == nullptr || followed->types == 0) continue;
      const bool is_unknown_format =
          member.key == "format" && pattern_of_format(document_.value(member.value).text).empty();
      if (is_unknown_format) continue;
      if (std::find(keywords.begin(), keywords.end(), member.key) == keywords.end()) return &member;
    }
  }
  return nullptr;
}

Result<uint32_t> SchemaViews::types(const SchemaView& view) const {
  uint32_t types = kTypeAny, hinted = 0;
  bool is_said = false;
  for (const uint32_t said : all(view, "type")) {
    is_said = true;
    uint32_t some = 0;
    const json::Document::Value& value = document_.value(said);
    const std::vector<uint32_t> names =
        value.kind == Kind::array ? value.items : std::vector<uint32_t>{said};
    for (const uint32_t name : names) {
      const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) {
        return document_.value(name).kind == Kind::string &&
               known.first == document_.value(name).text;
      });
      if (type == std::end(kTypes)) {
        return error_at(name, fmt::format("expected the name of a type, found {}",
                                          document_.spelling(name).substr(0, 40)));
      }
      some |= type->second == kTypeNumber ? kTypeNumber | kTypeInteger : type->second;
    }
    types &= some;
  }
  for (const SchemaPart& part : view) {
    for (const json::Document::Member& member : document_.value(part.schema).members) {
      if (const Keyword* followed = find_followed(member.key)) hinted |= followed->types;
    }
  }
  return is_said || hinted == 0 ? types : hinted;
}

// Whatever else stands in it is an annotation.
Result<SchemaViews::Exclusion> SchemaViews::exclusion(const SchemaView& view) const {
  Exclusion excluded;
  for (const uint32_t schema : all(view, "not")) {
    const json::Document::Value& value = document_.value(schema);
    CAIRN_TRY(check_keywords(schema));
    if (value.kind == Kind::boolean && !document_.is_true(schema)) continue;
    const json::Document::Member* said = nullptr;
    size_t said_count = 0;
    for (const json::Document::Member& member : value.members) {
      if (find_followed(member.key) == nullptr) continue;
      said = &member;
      ++said_count;
    }
    if (said_count == 0) {
      excluded.types = kTypeAny;
    } else if (said_count == 1 && said->key == "type") {
      CAIRN_TRY(const uint32_t types, this->types({{.schema = schema}}));
      if ((types & kTypeInteger) != 0 && (types & kTypeNumber) == 0) {
        return error(ErrorCode::unsupported, said->offset,
                     "\"not\" cannot be followed where it excludes integers alone");
      }
      excluded.types |= types;
    } else if (said_count == 1 && said->key == "const") {
      excluded.values.push_back(said->value);
    } else if (said_count == 1 && said->key == "enum") {
      if (document_.value(said->value).kind != Kind::array) {
        return error_at(said->value, "expected a list of values");
      }
      const std::vector<uint32_t>& items = document_.value(said->value).items;
      excluded.values.insert(excluded.values.end(), items.begin(), items.end());
    } else {
      return error(ErrorCode::unsupported, value.offset,
                   "\"not\" can be followed with one of type, const and enum alone");
    }
  }
  return excluded;
}

Result<SchemaViews::Counts> SchemaViews::counts(const SchemaView& view,
                                                std::string_view min_keyword,
                                                std::string_view max_keyword) const {
  Counts counts;
  for (const bool is_min : {true, false}) {
    for (const uint32_t number : all(view, is_min ? min_keyword : max_keyword)) {
      auto decimal = document_.value(number).kind == Kind::number
                         ? read_decimal(document_.spelling(number))
                         : Result<Decimal>(Decimal{.is_negative = true});
      if (!decimal || decimal->is_negative || !decimal->is_integer()) {
        return error_at(number, "expected a number of 0 or more");
      }
      // More than nine digits are as good as none: no text is so long.
      const std::string& digits = decimal->whole;
      const int32_t count = digits.size() > 9 ? INT32_MAX : int32_t(std::stol(digits));
      if (is_min && count == INT32_MAX) {
        return error(ErrorCode::no_room, document_.value(number).offset,
                     "expected a minimum of less than 1000000000");
      }
      counts.min = is_min ? std::max(counts.min, count) : counts.min;
      counts.max = is_min ? counts.max : std::min(counts.max, count);
    }
  }
  return counts;
}

Result<SchemaViews::Texts> SchemaViews::texts(const SchemaView& view) const {
  Texts texts;
  CAIRN_TRY(texts.length, counts(view, "minLength", "maxLength"));
  for (const uint32_t value : all(view, "pattern")) {
    if (document_.value(value).kind != Kind::string) {
      return error_at(value, "expected a pattern in quotes");
    }
    texts.pattern = document_.value(value).text;
    texts.offset = document_.value(value).offset;
    ++texts.pattern_count;
  }
  for (const uint32_t value : all(view, "format")) {
    const std::string_view format = pattern_of_format(document_.value(value).text);
    if (format.empty()) continue;
    texts.pattern = format;
    texts.offset = document_.value(value).offset;
    texts.is_whole = true;
    ++texts.pattern_count;
  }
  return texts;
}

// The values of enum and const that all parts name and none excludes.
Result<std::vector<uint32_t>> SchemaViews::values(const SchemaView& view, uint32_t types,
                                                  const Exclusion& excluded) const {
  if (const json::Document::Member* other = find_other(view, {})) {
    return error(
        ErrorCode::unsupported, other->offset,
        "the keyword " + unicode::quote(other->key) + " cannot be followed beside enum or const");
  }
  std::vector<std::vector<uint32_t>> lists;
  for (const uint32_t value : all(view, "const")) lists.push_back({value});
  for (const uint32_t value : all(view, "enum")) {
    if (document_.value(value).kind != Kind::array) {
      return error_at(value, "expected a list of values");
    }
    lists.push_back(document_.value(value).items);
    if (int64_t(lists.back().size()) > limits_.enum_count) {
      return error(ErrorCode::no_room, document_.value(value).offset,
                   fmt::format("expected at most {} values", limits_.enum_count));
    }
  }
  std::map<std::string, size_t> count_of;
  for (const std::vector<uint32_t>& list : lists) {
    std::set<std::string> once;
    for (const uint32_t value : list) once.insert(document_.compact(value));
    for (const std::string& text : once) ++count_of[text];
  }
  for (const uint32_t value : excluded.values) count_of[document_.compact(value)] = SIZE_MAX;
  std::vector<uint32_t> values;
  for (const uint32_t value : lists[0]) {
    const bool is_named = count_of[document_.compact(value)] == lists.size();
    if ((type_of(value) & types) != 0 && is_named) values.push_back(value);
  }
  return values;
}

// `direction`: 1 for a lower bound, of which the largest counts, -1 for an upper one.
Status SchemaViews::add_bound(const SchemaView& view, std::string_view keyword,
                              std::string_view strict_keyword, int direction,
                              std::optional<Decimal>& bound, bool& is_excluded) const {
  for (const SchemaPart& part : view) {
    const json::Document::Member* plain = document_.find(part.schema, keyword);
    const json::Document::Member* strict = document_.find(part.schema, strict_keyword);
    // Before 2019, the strict keyword was a flag of the other.
    const bool is_flag = strict != nullptr && document_.value(strict->value).kind == Kind::boolean;
    for (const json::Document::Member* member : {plain, is_flag ? nullptr : strict}) {
      if (member == nullptr) continue;
      if (document_.value(member->value).kind != Kind::number) {
        return error_at(member->value, "expected a number");
      }
      auto decimal = read_decimal(document_.spelling(member->value));
      if (!decimal) {
        return error(decimal.error().code, document_.value(member->value).offset,
                     decimal.error().message);
      }
      Decimal value = *decimal;
      const bool excludes = member == strict || (is_flag && document_.is_true(strict->value));
      const int order = bound ? direction * compare(value, *bound) : 1;
      if (order > 0) is_excluded = excludes;
      if (order == 0) is_excluded = is_excluded || excludes;
      if (order > 0) bound = std::move(value);
    }
  }
  return Ok{};
}

Result<Bounds> SchemaViews::bounds(const SchemaView& view) const {
  Bounds bounds;
  CAIRN_TRY(add_bound(view, "minimum", "exclusiveMinimum", 1, bounds.min, bounds.excludes_min));
  CAIRN_TRY(add_bound(view, "maximum", "exclusiveMaximum", -1, bounds.max, bounds.excludes_max));
  return bounds;
}

uint32_t SchemaViews::type_of(uint32_t value) const {
  switch (document_.value(value).kind) {
    case Kind::null:
      return kTypeNull;
    case Kind::boolean:
      return kTypeBoolean;
    case Kind::string:
      return kTypeString;
    case Kind::array:
      return kTypeArray;
    case Kind::object:
      return kTypeObject;
    case Kind::number:
      break;
  }
  auto decimal = read_decimal(document_.spelling(value));
  return decimal && decimal->is_integer() ? kTypeInteger : kTypeNumber;
}

}  // namespace cairn::grammar
