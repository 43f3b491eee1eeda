// A walk over the schema. Whatever it does not know is refused by its name.
#include "chat/value_grammar.h"

#include <algorithm>
#include <bit>

#include "grammar/schema.h"
#include "json/value.h"

namespace cairn::chat {

namespace {

using grammar::CharacterSet;
using grammar::kUnbounded;
using grammar::Node;
using json::Document;
using Kind = Document::Kind;

constexpr int kDepthMax = 24;
constexpr int32_t kCountMax = 10'000;
// Where references may lead.
constexpr std::string_view kDefinitions[] = {"$defs", "definitions"};

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

// Whether `is_it` holds for a member of an object within the value.
template <class IsIt>
bool any_member(const Document& document, uint32_t value, const IsIt& is_it) {
  std::vector<uint32_t> waiting = {value};
  while (!waiting.empty()) {
    const Document::Value& inside = document.value(waiting.back());
    waiting.pop_back();
    waiting.insert(waiting.end(), inside.items.begin(), inside.items.end());
    for (const Document::Member& member : inside.members) {
      if (is_it(member)) return true;
      waiting.push_back(member.value);
    }
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

struct ValueGrammar::Source {
  Source(Document read, const grammar::Limits& limits)
      : document(std::move(read)), views(document, limits), contents(document, views, limits) {}
  Document document;
  grammar::SchemaViews views;
  grammar::SchemaContents contents;
};

bool ValueGrammar::has(Schema schema, std::string_view keyword) const {
  return source_->document.find(schema, keyword) != nullptr;
}

std::string_view ValueGrammar::type_name(Schema schema) const {
  const Document::Member* type = source_->document.find(schema, "type");
  return type == nullptr ? std::string_view() : source_->document.value(type->value).text;
}

Error ValueGrammar::refuse(std::string_view what) const {
  const std::string place = parameter_.empty() ? tool_ : tool_ + "." + parameter_;
  return fail(ErrorCode::unsupported, "tools: {}: {} cannot be kept in this model's form of calls",
              place, what);
}

Error ValueGrammar::placed(Error error) const {
  const std::string& where = parameter_.empty() ? "parameters" : parameter_;
  error.message = "tools: " + tool_ + "." + where + ": " + error.message;
  return error;
}

Status ValueGrammar::refuse_keywords(Schema schema,
                                     std::initializer_list<std::string_view> keywords) {
  for (const std::string_view keyword : keywords) {
    if (has(schema, keyword)) return refuse(keyword);
  }
  return Ok{};
}

Status ValueGrammar::enter(const Tool& tool) {
  tool_ = tool.name;
  parameter_.clear();
  auto read = json::read_value("tools", tool.parameters, kToolLimits);
  json::Value root = read && read->is_object() ? std::move(read).value() : json::Value::object();
  if (root.find("type") == nullptr) root.set("type", "object");
  if (root.text_at("type") != "object") {
    return fail(ErrorCode::invalid_argument,
                "tools: {}.parameters.type: expected \"object\", found {}", tool_,
                json::to_text(*root.find("type")));
  }
  // What takes no parameters gets none.
  const json::Value* properties = root.find("properties");
  const bool is_closed = (properties == nullptr || properties->members().empty()) &&
                         root.find("additionalProperties") == nullptr &&
                         root.find("$ref") == nullptr && root.find("anyOf") == nullptr &&
                         root.find("oneOf") == nullptr && root.find("allOf") == nullptr;
  if (is_closed) root.set("additionalProperties", false);
  const grammar::Limits& limits = markers_.builder().limits();
  auto document = grammar::read_schema_text(json::to_text(root), limits);
  if (!document) return placed(std::move(document).error());
  source_ = std::make_shared<Source>(std::move(document).value(), limits);
  return Ok{};
}

Result<Node> ValueGrammar::arguments() {
  const Document& document = source_->document;
  auto node = markers_.builder().schema(document, document.root(), grammar::kTypeAny, {});
  if (!node) return placed(std::move(node).error());
  return node;
}

// Of the schema and of all that may be referred to.
Status ValueGrammar::check_references(Schema schema) const {
  const Document& document = source_->document;
  const auto is_elsewhere = [&](const Document::Member& member) {
    const std::string_view target = document.value(member.value).text;
    return member.key == "$ref" && document.value(member.value).kind == Kind::string &&
           !target.starts_with("#/$defs/") && !target.starts_with("#/definitions/");
  };
  bool is_found = any_member(document, schema, is_elsewhere);
  for (const std::string_view key : kDefinitions) {
    const Document::Member* all = document.find(document.root(), key);
    is_found = is_found || (all != nullptr && any_member(document, all->value, is_elsewhere));
  }
  if (is_found) return refuse("a reference to elsewhere than $defs");
  return Ok{};
}

// Whether a value that is listed somewhere in the schema, or in what may be referred to, holds the
// character.
bool ValueGrammar::lists_character(Schema schema, std::string_view character) const {
  const Document& document = source_->document;
  const auto lists = [&](const Document::Member& member) {
    return (member.key == "enum" || member.key == "const") &&
           document.compact(member.value).find(character) != std::string::npos;
  };
  if (any_member(document, schema, lists)) return true;
  return std::any_of(std::begin(kDefinitions), std::end(kDefinitions), [&](std::string_view key) {
    const Document::Member* all = document.find(document.root(), key);
    return all != nullptr && any_member(document, all->value, lists);
  });
}

Result<Node> ValueGrammar::json(Schema schema, uint32_t types) {
  CAIRN_TRY(check_references(schema));
  const std::string first = marks_.end.substr(0, 1);
  if (!first.empty() && (first != "<" || lists_character(schema, first))) {
    return refuse("a value whose end stands within it");
  }
  auto node =
      markers_.builder().schema(source_->document, schema, types, first_characters({marks_.end}));
  if (!node) return placed(std::move(node).error());
  return node;
}

Result<bool> ValueGrammar::find_listed(Schema schema, std::vector<uint32_t>& values) {
  const grammar::SchemaView view = {{.schema = schema}};
  if (!source_->views.is_listed(view)) return false;
  if (has(schema, "const")) CAIRN_TRY(refuse_keywords(schema, {"enum"}));
  CAIRN_TRY(
      refuse_keywords(schema, {"anyOf", "oneOf", "pattern", "minLength", "maxLength", "minimum",
                               "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}));
  auto texts = source_->views.texts(view);
  if (!texts) return placed(std::move(texts).error());
  if (texts->pattern_count > 0) return refuse("a format beside listed values");
  CAIRN_TRY(const uint32_t types, types_of(schema));
  auto listed = source_->views.values(view, types, {});
  if (!listed) return placed(std::move(listed).error());
  values = std::move(listed).value();
  return true;
}

// One of: values that are listed, a pattern, a length, or any text. Where what is wanted could hold
// the beginning of what ends the value, texts without its first character do.
Result<Node> ValueGrammar::text(Schema schema, std::vector<std::string> never) {
  CAIRN_TRY(
      refuse_keywords(schema, {"allOf", "anyOf", "oneOf", "not", "if", "$ref", "contentEncoding"}));
  std::erase_if(never, [](const std::string& part) { return part.empty(); });
  grammar::Builder& b = markers_.builder();
  std::vector<uint32_t> values;
  CAIRN_TRY(const bool is_listed, find_listed(schema, values));
  if (is_listed) {
    std::vector<Node> ways;
    for (const uint32_t number : values) {
      const Document::Value& value = source_->document.value(number);
      if (value.kind != Kind::string) return refuse("a value that is no string");
      if (holds_any(value.text, never)) {
        return refuse("a listed value that holds a mark of the form");
      }
      ways.push_back(b.text(value.text));
    }
    return b.choice(ways);
  }
  auto texts = source_->views.texts({{.schema = schema}});
  if (!texts) return placed(std::move(texts).error());
  const bool is_counted = has(schema, "minLength") || has(schema, "maxLength");
  if (texts->pattern_count + size_t(is_counted) > 1) {
    return refuse("more than one of pattern, format and a length");
  }
  const CharacterSet first = first_characters(never);
  if (texts->pattern_count == 1) {
    const std::string_view pattern = texts->pattern;
    return b.pattern(texts->is_whole ? fmt::format("^(?:{})$", pattern) : std::string(pattern),
                     first);
  }
  if (!is_counted) return markers_.without(std::move(never));
  const auto [min, max] = texts->length;
  const bool is_open = !has(schema, "maxLength");
  if (min > kCountMax || (!is_open && max > kCountMax)) return refuse("a length over 10000");
  if (min > max) return refuse("a minLength above its maxLength");
  return b.repeat(b.characters(first.inverse()), min, is_open ? kUnbounded : max);
}

Result<Schema> ValueGrammar::resolved(ValueForm form, Schema schema) {
  const Document& document = source_->document;
  for (int step = 0; has(schema, "$ref"); ++step) {
    for (const Document::Member& member : document.value(schema).members) {
      if (!is_note(member.key)) return refuse(fmt::format("{} beside $ref", member.key));
    }
    const uint32_t reference = document.find(schema, "$ref")->value;
    const std::string_view target = document.value(reference).text;
    const size_t name = target.rfind('/') + 1;
    const bool is_near = (target.starts_with("#/definitions/") && name == 14) ||
                         (target.starts_with("#/$defs/") && name == 8);
    auto next = source_->views.resolve(reference);
    if (!is_near || !next || step == kDepthMax || form == ValueForm::elements) {
      return refuse(fmt::format("$ref \"{}\"", target));
    }
    schema = *next;
  }
  if (document.value(schema).kind != Kind::object) return refuse("a schema that says nothing");
  return schema;
}

// Those that are said, or that the keywords are about; all of them where nothing says any.
Result<uint32_t> ValueGrammar::types_of(Schema schema) {
  auto types = source_->views.types({{.schema = schema}});
  if (!types) return placed(std::move(types).error());
  return types;
}

Result<Node> ValueGrammar::value(ValueForm form, Schema given, int depth) {
  if (depth > kDepthMax) return refuse("a schema within itself");
  CAIRN_TRY(const Schema schema, resolved(form, given));
  CAIRN_TRY(refuse_keywords(
      schema, {"allOf", "not", "if", "contains", "patternProperties", "propertyNames",
               "minProperties", "maxProperties", "uniqueItems", "prefixItems", "dependentRequired",
               "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"}));
  std::vector<uint32_t> values;
  CAIRN_TRY(const bool is_listed, find_listed(schema, values));
  if (is_listed) return listed(form, values);
  const Document& document = source_->document;
  for (const std::string_view key : {"anyOf", "oneOf"}) {
    const Document::Member* choices = document.find(schema, key);
    if (choices == nullptr) continue;
    if (document.value(choices->value).kind != Kind::array || has(schema, "type") ||
        form == ValueForm::elements) {
      return refuse(key);
    }
    std::vector<Node> ways;
    for (const Schema one : document.value(choices->value).items) {
      CAIRN_TRY(const Node way, value(form, one, depth + 1));
      ways.push_back(way);
    }
    return markers_.builder().choice(ways);
  }
  if (!has(schema, "type") && !has(schema, "properties") && !has(schema, "items")) {
    return refuse("a schema without a type");
  }
  CAIRN_TRY(const uint32_t types, types_of(schema));
  return of_types(form, types, schema, depth);
}

Result<Node> ValueGrammar::of_types(ValueForm form, uint32_t types, Schema schema, int depth) {
  using grammar::kTypeInteger, grammar::kTypeNumber;
  grammar::Builder& b = markers_.builder();
  // What may be a number may be an integer.
  const uint32_t kinds = (types & kTypeNumber) != 0 ? types & ~uint32_t(kTypeInteger) : types;
  if (std::popcount(kinds) > 1 && form == ValueForm::elements) return refuse("several types");
  std::vector<Node> ways;
  if ((types & grammar::kTypeString) != 0) {
    CAIRN_TRY(const Node way, string(form, schema));
    ways.push_back(way);
  }
  if ((types & grammar::kTypeArray) != 0) {
    CAIRN_TRY(const Node way, list(form, schema, depth));
    ways.push_back(way);
  }
  if ((types & grammar::kTypeObject) != 0) {
    CAIRN_TRY(const Node way, object(form, schema, depth));
    ways.push_back(way);
  }
  const bool is_python = form == ValueForm::python;
  if ((types & grammar::kTypeBoolean) != 0) {
    for (const std::string_view word : {"true", "false"}) ways.push_back(b.text(word));
    for (const std::string_view word : {"True", "False"}) {
      if (is_python) ways.push_back(b.text(word));
    }
  }
  if ((types & grammar::kTypeNull) != 0) {
    ways.push_back(b.text("null"));
    if (is_python) ways.push_back(b.text("None"));
  }
  if ((types & (kTypeInteger | kTypeNumber)) != 0) {
    CAIRN_TRY(const Node way, json(schema, types & (kTypeInteger | kTypeNumber)));
    ways.push_back(way);
  }
  return b.choice(ways);
}

Result<Node> ValueGrammar::string(ValueForm form, Schema schema) {
  grammar::Builder& b = markers_.builder();
  if (form == ValueForm::elements) return text(schema, {marks_.mark});
  if (form == ValueForm::braces) {
    CAIRN_TRY(const Node content, text(schema, {marks_.mark, marks_.never}));
    return b.sequence({markers_.marker(marks_.mark), content, markers_.marker(marks_.mark)});
  }
  CAIRN_TRY(const Node quoted, json(schema, grammar::kTypeString));
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

Result<Node> ValueGrammar::listed(ValueForm form, const std::vector<uint32_t>& values) {
  grammar::Builder& b = markers_.builder();
  const Document& document = source_->document;
  const bool all_strings = std::all_of(values.begin(), values.end(), [&](uint32_t number) {
    return document.value(number).kind == Kind::string;
  });
  std::vector<Node> ways;
  for (const uint32_t number : values) {
    const Document::Value& value = document.value(number);
    if (value.kind == Kind::object || value.kind == Kind::array) {
      return refuse("a listed value that is no scalar");
    }
    if (value.kind != Kind::string) {
      ways.push_back(b.text(document.spelling(number)));
      continue;
    }
    const std::string& said = value.text;
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

Result<Node> ValueGrammar::list(ValueForm form, Schema schema, int depth) {
  grammar::Builder& b = markers_.builder();
  if (!has(schema, "items")) return refuse("a list without items");
  const grammar::SchemaView view = {{.schema = schema}};
  auto counts = source_->views.counts(view, "minItems", "maxItems");
  if (!counts) return placed(std::move(counts).error());
  auto said = source_->contents.items(view);
  if (!said) return placed(std::move(said).error());
  const int32_t min = counts->min;
  const bool is_open = !has(schema, "maxItems");
  const int32_t max = is_open ? kUnbounded : counts->max;
  if (min > kCountMax || (!is_open && (max > kCountMax || min > max))) {
    return refuse("minItems or maxItems");
  }
  const bool is_elements = form == ValueForm::elements;
  if (max == 0) return b.text("[]");
  if (!said->prefix.empty() || said->rest.view.empty()) {
    return refuse("a schema that says nothing");
  }
  CAIRN_TRY(Node item, value(form, said->rest.view[0].schema, depth + 1));
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

Result<Node> ValueGrammar::object(ValueForm form, Schema schema, int depth) {
  if (form == ValueForm::python) return json(schema, grammar::kTypeObject);
  grammar::Builder& b = markers_.builder();
  CAIRN_TRY(const std::vector<Parameter> inner, properties_of(schema));
  if (inner.empty()) {
    const Document::Member* others = source_->document.find(schema, "additionalProperties");
    const bool is_closed =
        others != nullptr && source_->document.spelling(others->value) == "false";
    if (!is_closed) return refuse("an object of any members");
    return b.text("{}");
  }
  CAIRN_TRY(const Node content, members(form, inner, depth + 1));
  if (form == ValueForm::braces) return b.sequence({b.text("{"), content, b.text("}")});
  const bool may_be_empty = std::none_of(inner.begin(), inner.end(),
                                         [](const Parameter& one) { return one.is_required; });
  // An element with nothing in it is an empty text: what has no members is written as JSON.
  const Node some = b.sequence({content, markers_.blanks()});
  return may_be_empty ? b.choice({b.text("{}"), some}) : some;
}

Result<std::vector<Parameter>> ValueGrammar::properties_of(Schema schema) {
  CAIRN_TRY(refuse_keywords(
      schema, {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "enum", "const", "patternProperties",
               "propertyNames", "minProperties", "maxProperties", "dependentRequired",
               "dependentSchemas", "dependencies", "unevaluatedProperties"}));
  auto members = source_->contents.members({{.schema = schema}});
  if (!members) return placed(std::move(members).error());
  std::vector<Parameter> found;
  for (const grammar::SchemaProperty& property : members->properties) {
    if (!property.is_named) return refuse("required " + json::quoted(property.name));
    if (!is_plain_name(property.name)) return refuse(fmt::format("the name \"{}\"", property.name));
    found.push_back({property.name, property.view[0].schema, property.is_required});
  }
  return found;
}

// Some templates sort the members by their names: both orders are taken.
Result<Node> ValueGrammar::members(ValueForm form, std::vector<Parameter> properties, int depth) {
  CAIRN_TRY(const Node first, member_list(form, properties, depth));
  if (form != ValueForm::braces) return first;
  const auto by_name = [](const Parameter& a, const Parameter& b) { return a.name < b.name; };
  if (std::is_sorted(properties.begin(), properties.end(), by_name)) return first;
  std::sort(properties.begin(), properties.end(), by_name);
  CAIRN_TRY(const Node second, member_list(form, properties, depth));
  return markers_.builder().choice({first, second});
}

Result<Node> ValueGrammar::member_list(ValueForm form, const std::vector<Parameter>& properties,
                                       int depth) {
  grammar::Builder& b = markers_.builder();
  std::vector<Member> all;
  for (const Parameter& property : properties) {
    if (depth == 0) parameter_ = property.name;
    CAIRN_TRY(const Node content, value(form, property.schema, depth));
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
