// Reading types, and writing them as JSON Schema.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "serve/reply_types.h"

namespace cairn::serve {

namespace {

class TypeReader {
 public:
  explicit TypeReader(std::string_view text) : rest_(text) {}

  json::Value whole() {
    json::Value schema = either();
    CHECK(rest_.empty());
    return schema;
  }

 private:
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
  }
  bool takes(std::string_view mark) {
    skip_blanks();
    if (!rest_.starts_with(mark)) return false;
    rest_.remove_prefix(mark.size());
    skip_blanks();
    return true;
  }
  std::string_view word() {
    skip_blanks();
    const auto is_letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_letter);
    const std::string_view found = rest_.substr(0, size_t(end - rest_.begin()));
    CHECK(!found.empty());
    rest_.remove_prefix(found.size());
    return found;
  }

  // Texts alone are a list of them.
  json::Value either() {
    json::Value ways = json::Value::array(), texts = json::Value::array();
    do {
      json::Value one = single();
      if (const json::Value* const text = one.find("const"); text != nullptr && text->as_text()) {
        texts.push_back(*text);
      }
      ways.push_back(std::move(one));
    } while (takes("|"));
    if (ways.items().size() == 1) return ways.items().front();
    if (texts.items().size() == ways.items().size()) return {{"enum", std::move(texts)}};
    return {{"anyOf", std::move(ways)}};
  }

  json::Value single() {
    if (takes("[")) {
      json::Value items = either();
      CHECK(takes("]"));
      return {{"type", "array"}, {"items", std::move(items)}};
    }
    if (takes("{")) return members();
    if (takes("\"")) {
      const size_t end = rest_.find('"');
      CHECK(end != rest_.npos);
      json::Value text = {{"const", rest_.substr(0, end)}};
      rest_.remove_prefix(end + 1);
      return text;
    }
    const std::string_view name = word();
    if (name == "any") return json::Value::object();
    if (name == "true" || name == "false") return {{"const", name == "true"}};
    constexpr std::string_view kPlain[] = {"string",  "integer", "number",
                                           "boolean", "null",    "object"};
    if (std::find(std::begin(kPlain), std::end(kPlain), name) != std::end(kPlain)) {
      return {{"type", name}};
    }
    CHECK(find_type(name) != nullptr);
    return {{"$ref", "#/components/schemas/" + std::string(name)}};
  }

  json::Value members() {
    json::Value properties = json::Value::object(), required = json::Value::array();
    json::Value others;
    while (!takes("}")) {
      if (takes("...")) {
        if (rest_.starts_with('}')) {
          others = true;
        } else {
          add_all(word(), properties, required);
        }
      } else if (takes("*")) {
        CHECK(takes(":"));
        others = either();
      } else {
        const std::string_view name = word();
        if (!takes("?")) required.push_back(name);
        CHECK(takes(":"));
        properties[name] = either();
      }
      takes(",");
    }
    json::Value schema = {{"type", "object"}};
    if (!properties.members().empty()) schema["properties"] = std::move(properties);
    if (!required.items().empty()) schema["required"] = std::move(required);
    if (!others.is_null()) schema["additionalProperties"] = std::move(others);
    return schema;
  }

  static const ReplyType* find_type(std::string_view name) {
    for (const ReplyType& type : reply_types()) {
      if (type.name == name) return &type;
    }
    return nullptr;
  }

  static void add_all(std::string_view name, json::Value& properties, json::Value& required) {
    const ReplyType* const type = find_type(name);
    CHECK(type != nullptr);
    const json::Value schema = schema_of(type->type);
    for (const json::Value::Member& member : schema.find("properties")->members()) {
      properties[member.key] = member.value;
    }
    const json::Value* const needed = schema.find("required");
    if (needed == nullptr) return;
    for (const json::Value& one : needed->items()) required.push_back(one);
  }

  std::string_view rest_;
};

}  // namespace

json::Value schema_of(std::string_view type) {
  return TypeReader(type).whole();
}

}  // namespace cairn::serve
