// A walk over the schema. Whatever it does not know is refused by its name.
#include "chat/value_grammar.h"

#include <algorithm>

#include "grammar/string_formats.h"

namespace cairn::chat {

namespace {

using grammar::CharacterSet;
using grammar::kUnbounded;
using grammar::Node;
using Json = SchemaJson;

constexpr int kDepthMax = 24;
constexpr int32_t kCountMax = 10'000;

bool has(const Json& schema, const char* key) {
  return schema.is_object() && schema.contains(key);
}

bool is_of_type(const Json& value, std::string_view type) {
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  return type == "array" ? value.is_array() : type == "object" && value.is_object();
}

// The types that are said, or those that the keywords are about.
std::vector<std::string> types_of(const Json& schema) {
  std::vector<std::string> types;
  if (has(schema, "type")) {
    const Json& type = schema["type"];
    if (type.is_string()) types.push_back(type.get<std::string>());
    if (!type.is_array()) return types;
    for (const Json& one : type) {
      if (one.is_string()) types.push_back(one.get<std::string>());
    }
    return types;
  }
  if (has(schema, "properties")) types.emplace_back("object");
  if (has(schema, "items")) types.emplace_back("array");
  return types;
}

// A count among the keywords; false where it is none.
bool read_count(const Json& schema, const char* key, int32_t& count) {
  if (!has(schema, key)) return true;
  const Json& value = schema[key];
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t(kCountMax)) return false;
  count = int32_t(value.get<uint64_t>());
  return true;
}

// Of a format that is more than an annotation.
std::string_view format_pattern(const Json& schema) {
  if (!has(schema, "format") || !schema["format"].is_string()) return "";
  return grammar::pattern_of_format(schema["format"].get_ref<const std::string&>());
}

CharacterSet first_characters(const std::vector<std::string>& texts) {
  CharacterSet set;
  for (const std::string& text : texts) {
    const auto character = grammar::decode_character(text);
    if (character) set.add(character->value);
  }
  return set;
}

bool holds_any(std::string_view text, const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return !part.empty() && text.find(part) != text.npos;
  });
}

// Whether a value that is listed somewhere in the schema holds the character.
bool lists_character(const Json& schema, std::string_view character) {
  if (!schema.is_structured()) return false;
  for (const auto& [key, inside] : schema.items()) {
    const bool is_list = schema.is_object() && (key == "enum" || key == "const");
    if (is_list && inside.dump().find(character) != std::string::npos) return true;
    if (lists_character(inside, character)) return true;
  }
  return false;
}

// Keywords that may stand beside a reference, as they say nothing of the value.
bool is_note(std::string_view key) {
  constexpr std::string_view kNotes[] = {"$ref",     "$comment", "$defs",      "definitions",
                                         "title",    "default",  "deprecated", "description",
                                         "examples", "readOnly", "writeOnly"};
  return std::find(std::begin(kNotes), std::end(kNotes), key) != std::end(kNotes);
}

// Names that no form takes for something else.
bool is_plain_name(std::string_view name) {
  const auto is_plain = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), is_plain);
}

}  // namespace

Result<bool> ValueGrammar::find_listed(const Json& schema, std::vector<Json>& values) {
  std::vector<Json> all;
  if (has(schema, "const")) {
    CAIRN_TRY(refuse_keywords(schema, {"enum"}));
    all.push_back(schema["const"]);
  } else if (has(schema, "enum") && schema["enum"].is_array()) {
    all.assign(schema["enum"].begin(), schema["enum"].end());
  } else {
    return false;
  }
  CAIRN_TRY(
      refuse_keywords(schema, {"anyOf", "oneOf", "pattern", "minLength", "maxLength", "minimum",
                               "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}));
  if (!format_pattern(schema).empty()) return refuse("a format beside listed values");
  const std::vector<std::string> types = types_of(schema);
  for (const Json& value : all) {
    const bool fits = types.empty() ||
                      std::any_of(types.begin(), types.end(),
                                  [&](const std::string& type) { return is_of_type(value, type); });
    if (fits) values.push_back(value);
  }
  return true;
}

Error ValueGrammar::refuse(std::string_view what) const {
  const std::string place = parameter_.empty() ? tool_ : tool_ + "." + parameter_;
  return fail(ErrorCode::unsupported, "tools: {}: {} cannot be kept in this model's form of calls",
              place, what);
}

Status ValueGrammar::refuse_keywords(const Json& schema,
                                     std::initializer_list<const char*> keywords) {
  for (const char* keyword : keywords) {
    if (has(schema, keyword)) return refuse(keyword);
  }
  return Ok{};
}

Status ValueGrammar::enter(const Tool& tool) {
  tool_ = tool.name;
  parameter_.clear();
  root_ = Json::parse(tool.parameters, nullptr, false);
  if (!root_.is_object()) root_ = Json::object();
  if (!has(root_, "type")) root_["type"] = "object";
  if (root_["type"] != "object") {
    return fail(ErrorCode::invalid_argument,
                "tools: {}.parameters.type: expected \"object\", found {}", tool_,
                root_["type"].dump());
  }
  // What takes no parameters gets none.
  if ((!has(root_, "properties") || root_["properties"].empty()) &&
      !has(root_, "additionalProperties") && !has(root_, "$ref") && !has(root_, "anyOf") &&
      !has(root_, "oneOf") && !has(root_, "allOf")) {
    root_["additionalProperties"] = false;
  }
  return Ok{};
}

Result<Node> ValueGrammar::arguments() {
  Result<Node> node = markers_.builder().schema(root_.dump());
  if (node) return node;
  Error error = std::move(node).error();
  error.message = "tools: " + tool_ + ".parameters: " + error.message;
  return error;
}

Result<Node> ValueGrammar::json(const Json& schema) {
  Json whole = schema;
  for (const char* key : {"$defs", "definitions"}) {
    if (whole.is_object() && !has(whole, key) && has(root_, key)) whole[key] = root_[key];
  }
  const std::string source = whole.dump();
  constexpr std::string_view kReference = "\"$ref\":\"";
  for (size_t at = 0; (at = source.find(kReference, at)) != std::string::npos;) {
    at += kReference.size();
    const std::string_view target = std::string_view(source).substr(at);
    if (!target.starts_with("#/$defs/") && !target.starts_with("#/definitions/")) {
      return refuse("a reference to elsewhere than $defs");
    }
  }
  const std::string first = marks_.end.substr(0, 1);
  if (!first.empty() && (first != "<" || lists_character(whole, first))) {
    return refuse("a value whose end stands within it");
  }
  Result<Node> node = markers_.builder().schema(source, first_characters({marks_.end}));
  if (node) return node;
  Error error = std::move(node).error();
  error.message = "tools: " + tool_ + "." + parameter_ + ": " + error.message;
  return error;
}

// One of: values that are listed, a pattern, a length, or any text. Where what is wanted could hold
// the beginning of what ends the value, texts without its first character do.
Result<Node> ValueGrammar::text(const Json& schema, std::vector<std::string> never) {
  CAIRN_TRY(
      refuse_keywords(schema, {"allOf", "anyOf", "oneOf", "not", "if", "$ref", "contentEncoding"}));
  std::erase_if(never, [](const std::string& part) { return part.empty(); });
  std::vector<Json> values;
  CAIRN_TRY(const bool is_listed, find_listed(schema, values));
  if (is_listed) {
    std::vector<Node> ways;
    for (const Json& value : values) {
      if (!value.is_string()) return refuse("a value that is no string");
      const std::string& said = value.get_ref<const std::string&>();
      if (holds_any(said, never)) return refuse("a listed value that holds a mark of the form");
      ways.push_back(markers_.builder().text(said));
    }
    return markers_.builder().choice(ways);
  }
  const bool is_counted = has(schema, "minLength") || has(schema, "maxLength");
  std::string_view pattern = format_pattern(schema);
  const bool has_pattern = has(schema, "pattern");
  if (int(is_counted) + int(has_pattern) + int(!pattern.empty()) > 1) {
    return refuse("more than one of pattern, format and a length");
  }
  if (has_pattern) {
    if (!schema["pattern"].is_string()) return refuse("a pattern that is no string");
    pattern = schema["pattern"].get_ref<const std::string&>();
  }
  const CharacterSet first = first_characters(never);
  if (!pattern.empty()) {
    const std::string whole = has_pattern ? std::string(pattern) : fmt::format("^(?:{})$", pattern);
    return markers_.builder().pattern(whole, first);
  }
  if (!is_counted) return markers_.without(std::move(never));
  int32_t min = 0, max = kUnbounded;
  if (!read_count(schema, "minLength", min) || !read_count(schema, "maxLength", max)) {
    return refuse("a length over 10000");
  }
  if (min > max) return refuse("a minLength above its maxLength");
  return markers_.builder().repeat(markers_.builder().characters(first.inverse()), min, max);
}

Result<const Json*> ValueGrammar::resolved(ValueForm form, const Json& given) {
  const Json* schema = &given;
  for (int step = 0; has(*schema, "$ref"); ++step) {
    for (const auto& [key, said] : schema->items()) {
      if (!is_note(key)) return refuse(fmt::format("{} beside $ref", key));
    }
    const Json& reference = (*schema)["$ref"];
    const std::string target = reference.is_string() ? reference.get<std::string>() : "";
    const size_t name = target.rfind('/') + 1;
    const bool is_old = target.starts_with("#/definitions/");
    const bool is_near = (is_old && name == 14) || (target.starts_with("#/$defs/") && name == 8);
    const char* const key = is_old ? "definitions" : "$defs";
    const bool is_known = is_near && has(root_, key) && root_[key].contains(target.substr(name));
    if (!is_known || step == kDepthMax || form == ValueForm::elements) {
      return refuse(fmt::format("$ref \"{}\"", target));
    }
    schema = &root_[key][target.substr(name)];
  }
  if (!schema->is_object()) return refuse("a schema that says nothing");
  return schema;
}

Result<Node> ValueGrammar::value(ValueForm form, const Json& given, int depth) {
  if (depth > kDepthMax) return refuse("a schema within itself");
  CAIRN_TRY(const Json* schema, resolved(form, given));
  CAIRN_TRY(refuse_keywords(
      *schema, {"allOf", "not", "if", "contains", "patternProperties", "propertyNames",
                "minProperties", "maxProperties", "uniqueItems", "prefixItems", "dependentRequired",
                "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"}));
  std::vector<Json> values;
  CAIRN_TRY(const bool is_listed, find_listed(*schema, values));
  if (is_listed) return listed(form, values);
  std::vector<Node> ways;
  for (const char* key : {"anyOf", "oneOf"}) {
    if (!has(*schema, key)) continue;
    if (!(*schema)[key].is_array() || has(*schema, "type") || form == ValueForm::elements) {
      return refuse(key);
    }
    for (const Json& one : (*schema)[key]) {
      CAIRN_TRY(const Node way, value(form, one, depth + 1));
      ways.push_back(way);
    }
    return markers_.builder().choice(ways);
  }
  const std::vector<std::string> types = types_of(*schema);
  if (types.empty()) return refuse("a schema without a type");
  if (types.size() > 1 && form == ValueForm::elements) return refuse("several types");
  for (const std::string& type : types) {
    CAIRN_TRY(const Node way, of_type(form, type, *schema, depth));
    ways.push_back(way);
  }
  return markers_.builder().choice(ways);
}

Result<Node> ValueGrammar::of_type(ValueForm form, const std::string& type, const Json& schema,
                                   int depth) {
  grammar::Builder& b = markers_.builder();
  if (type == "string") return string(form, schema);
  if (type == "array") return list(form, schema, depth);
  if (type == "object") return object(form, schema, depth);
  if (type == "boolean") {
    if (form != ValueForm::python) return b.choice({b.text("true"), b.text("false")});
    return b.choice({b.text("True"), b.text("False"), b.text("true"), b.text("false")});
  }
  if (type == "null") {
    return form == ValueForm::python ? b.choice({b.text("None"), b.text("null")}) : b.text("null");
  }
  if (type != "integer" && type != "number") return refuse(fmt::format("type \"{}\"", type));
  Json number = schema;
  number["type"] = type;
  return json(number);
}

Result<Node> ValueGrammar::string(ValueForm form, const Json& schema) {
  grammar::Builder& b = markers_.builder();
  if (form == ValueForm::elements) return text(schema, {marks_.mark});
  if (form == ValueForm::braces) {
    CAIRN_TRY(const Node content, text(schema, {marks_.mark, marks_.never}));
    return b.sequence({markers_.marker(marks_.mark), content, markers_.marker(marks_.mark)});
  }
  Json own = schema;
  own["type"] = "string";
  CAIRN_TRY(const Node quoted, json(own));
  const bool is_plain = !has(schema, "pattern") && !has(schema, "format") &&
                        !has(schema, "minLength") && !has(schema, "maxLength");
  if (!is_plain) return quoted;
  // Python's other quotes, as templates write them.
  CharacterSet special = {{'\'', '\''}, {'\\', '\\'}};
  special.add(first_characters({marks_.end}));
  const CharacterSet escaped = {{'\'', '\''}, {'\\', '\\'}, {'n', 'n'}, {'t', 't'}};
  const Node letter = b.choice(
      {b.characters(special.inverse()), b.sequence({b.text("\\"), b.characters(escaped)})});
  const Node other = b.sequence({b.text("'"), b.repeat(letter, 0, kUnbounded), b.text("'")});
  return b.choice({quoted, other});
}

Result<Node> ValueGrammar::listed(ValueForm form, const std::vector<Json>& values) {
  grammar::Builder& b = markers_.builder();
  const bool all_strings = std::all_of(values.begin(), values.end(),
                                       [](const Json& value) { return value.is_string(); });
  std::vector<Node> ways;
  for (const Json& value : values) {
    if (value.is_structured()) return refuse("a listed value that is no scalar");
    if (!value.is_string()) {
      ways.push_back(b.text(value.dump()));
      continue;
    }
    const std::string& said = value.get_ref<const std::string&>();
    if (form == ValueForm::python) {
      if (holds_any(said, {marks_.end})) return refuse("a listed value that holds its own end");
      ways.push_back(b.json_text(said));
      if (said.find_first_of("'\\\n\t") == std::string::npos) {
        ways.push_back(b.text("'" + said + "'"));
      }
      continue;
    }
    if (holds_any(said, {marks_.mark, marks_.never})) {
      return refuse("a listed value that holds a mark of the form");
    }
    if (form == ValueForm::elements && !all_strings) return refuse("listed values of two types");
    const Node content = b.text(said);
    ways.push_back(form == ValueForm::elements ? content
                                               : b.sequence({markers_.marker(marks_.mark), content,
                                                             markers_.marker(marks_.mark)}));
  }
  return b.choice(ways);
}

Result<Node> ValueGrammar::list(ValueForm form, const Json& schema, int depth) {
  grammar::Builder& b = markers_.builder();
  if (!has(schema, "items")) return refuse("a list without items");
  int32_t min = 0, max = kUnbounded;
  if (!read_count(schema, "minItems", min) || !read_count(schema, "maxItems", max) || min > max) {
    return refuse("minItems or maxItems");
  }
  const bool is_elements = form == ValueForm::elements;
  if (max == 0) return b.text("[]");
  CAIRN_TRY(Node item, value(form, schema["items"], depth + 1));
  if (is_elements) item = element("item", item);
  Node comma = b.empty();
  if (form == ValueForm::python) comma = b.sequence({b.text(","), b.optional(b.text(" "))});
  if (form == ValueForm::braces) comma = b.text(",");
  const Node more = b.repeat(b.sequence({comma, item}), std::max(min, 1) - 1,
                             max == kUnbounded ? kUnbounded : max - 1);
  const Node items = b.sequence({item, more});
  if (is_elements) {
    const Node some = b.sequence({items, markers_.blanks()});
    return min == 0 ? b.choice({b.text("[]"), some}) : some;
  }
  return b.sequence({b.text("["), min == 0 ? b.optional(items) : items, b.text("]")});
}

Result<Node> ValueGrammar::object(ValueForm form, const Json& schema, int depth) {
  if (form == ValueForm::python) return json(schema);
  grammar::Builder& b = markers_.builder();
  const bool is_closed = has(schema, "additionalProperties") &&
                         schema["additionalProperties"].is_boolean() &&
                         !schema["additionalProperties"].get<bool>();
  CAIRN_TRY(const std::vector<SchemaProperty> inner, properties_of(schema));
  if (inner.empty()) {
    if (!is_closed) return refuse("an object of any members");
    return b.text("{}");
  }
  CAIRN_TRY(const Node content, members(form, inner, depth + 1));
  if (form == ValueForm::braces) return b.sequence({b.text("{"), content, b.text("}")});
  const bool may_be_empty = std::none_of(inner.begin(), inner.end(),
                                         [](const SchemaProperty& one) { return one.is_required; });
  // An element with nothing in it is an empty text: what has no members is written as JSON.
  const Node some = b.sequence({content, markers_.blanks()});
  return may_be_empty ? b.choice({b.text("{}"), some}) : some;
}

Result<std::vector<SchemaProperty>> ValueGrammar::properties_of(const Json& schema) {
  CAIRN_TRY(refuse_keywords(
      schema, {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "enum", "const", "patternProperties",
               "propertyNames", "minProperties", "maxProperties", "dependentRequired",
               "dependentSchemas", "dependencies", "unevaluatedProperties"}));
  std::vector<SchemaProperty> found;
  if (has(schema, "properties")) {
    if (!schema["properties"].is_object()) return refuse("properties that are no object");
    for (const auto& [name, property] : schema["properties"].items()) {
      if (!is_plain_name(name)) return refuse(fmt::format("the name \"{}\"", name));
      found.push_back({name, &property, false});
    }
  }
  if (!has(schema, "required")) return found;
  for (const Json& name : schema["required"]) {
    const auto known = std::find_if(found.begin(), found.end(), [&](const SchemaProperty& one) {
      return name.is_string() && one.name == name.get_ref<const std::string&>();
    });
    if (known == found.end()) return refuse(fmt::format("required {}", name.dump()));
    known->is_required = true;
  }
  return found;
}

// Some templates sort the members by their names: both orders are taken.
Result<Node> ValueGrammar::members(ValueForm form, std::vector<SchemaProperty> properties,
                                   int depth) {
  CAIRN_TRY(const Node first, member_list(form, properties, depth));
  if (form != ValueForm::braces) return first;
  const auto by_name = [](const SchemaProperty& a, const SchemaProperty& b) {
    return a.name < b.name;
  };
  if (std::is_sorted(properties.begin(), properties.end(), by_name)) return first;
  std::sort(properties.begin(), properties.end(), by_name);
  CAIRN_TRY(const Node second, member_list(form, properties, depth));
  return markers_.builder().choice({first, second});
}

Result<Node> ValueGrammar::member_list(ValueForm form,
                                       const std::vector<SchemaProperty>& properties, int depth) {
  grammar::Builder& b = markers_.builder();
  std::vector<Member> all;
  for (const SchemaProperty& property : properties) {
    if (depth == 0) parameter_ = property.name;
    CAIRN_TRY(const Node content, value(form, *property.schema, depth));
    if (form == ValueForm::elements) {
      if (property.name == "item") return refuse("the name \"item\", which is that of a list's");
      all.push_back({element(property.name, content), property.is_required});
    } else {
      const char* sign = form == ValueForm::python ? "=" : ":";
      all.push_back({b.sequence({b.text(property.name + sign), content}), property.is_required});
    }
  }
  if (depth == 0) parameter_.clear();
  if (form == ValueForm::elements) {
    std::vector<Node> parts;
    for (const Member& one : all) {
      parts.push_back(one.is_required ? one.node : b.optional(one.node));
    }
    return b.sequence(parts);
  }
  return with_commas(all, form == ValueForm::python
                              ? b.sequence({b.text(","), b.optional(b.text(" "))})
                              : b.text(","));
}

Node ValueGrammar::element(std::string_view name, Node content) {
  grammar::Builder& b = markers_.builder();
  const std::string tag = std::string(name) + ">";
  return b.sequence({markers_.blanks(), markers_.marker(marks_.mark + "<" + tag), content,
                     markers_.marker(marks_.mark + "</" + tag)});
}

// From the last to the first: what may follow once something stands before, and what where nothing
// does.
Node ValueGrammar::with_commas(const std::vector<Member>& members, Node comma) {
  grammar::Builder& b = markers_.builder();
  Node behind = b.empty(), alone = b.empty();
  for (size_t i = members.size(); i > 0; --i) {
    const Member& member = members[i - 1];
    const Node begun = b.sequence({member.node, behind});
    alone = member.is_required ? begun : b.choice({begun, alone});
    const Node next = b.sequence({comma, member.node});
    const grammar::Rule rule = b.declare("members");
    b.define(rule, b.sequence({member.is_required ? next : b.optional(next), behind}));
    behind = b.call(rule);
  }
  return alone;
}

}  // namespace cairn::chat
