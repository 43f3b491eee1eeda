// For tests: whether replies are what the OpenAPI document says. Stricter than a schema: an object
// whose members are listed has no others.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "serve/openapi.h"
#include "tests/serve/bare_client.h"

namespace cairn::serve {

class SchemaCheck {
 public:
  using Json = nlohmann::json;

  SchemaCheck() : document_(Json::parse(openapi_text({}))) {}

  // Where a value is something else than its schema says, and what; empty: nowhere.
  std::string violation(const Json& value, const Json& schema, const std::string& where) const {
    if (schema.contains("$ref")) {
      const std::string name = schema["$ref"];
      return violation(value, document_.at(Json::json_pointer(name.substr(1))), where);
    }
    if (schema.contains("anyOf")) return violation_of_any(value, schema["anyOf"], where);
    const auto differs = [&](const std::string& expected) {
      return where + ": expected " + expected + ", found " + value.dump().substr(0, 300);
    };
    if (schema.contains("const") && value != schema["const"]) return differs(schema.dump());
    if (schema.contains("enum")) {
      const Json& values = schema["enum"];
      if (std::find(values.begin(), values.end(), value) == values.end()) {
        return differs(schema.dump());
      }
    }
    const std::string type = schema.value("type", "");
    if (!is_of_type(value, type)) return differs(type);
    if (schema.contains("contentSchema")) {
      const Json content = Json::parse(value.get<std::string>(), nullptr, false);
      return violation(content, schema["contentSchema"], where);
    }
    if (type == "array") return violation_of_items(value, schema, where);
    return type == "object" ? violation_of_members(value, schema, where) : "";
  }
  std::string violation_of_type(const Json& value, const std::string& name) const {
    return violation(value, {{"$ref", "#/components/schemas/" + name}}, name);
  }

  // A reply with status 200.
  void check(const std::string& method, std::string_view path, const BareReply& reply) const {
    const Json* const operation = find(method, std::string(path.substr(0, path.find('?'))));
    if (operation == nullptr) return;
    const Json told = (*operation)["responses"]["200"].value("content", Json::object());
    const std::string where = method + " " + std::string(path);
    if (reply.has("application/json")) {
      expect(Json::parse(reply.body, nullptr, false), told, "application/json", where);
    } else if (reply.has("application/x-ndjson")) {
      for (const std::string& line : split(reply.body, "\n")) {
        expect(Json::parse(line, nullptr, false), told, "application/x-ndjson", where);
      }
    } else if (reply.has("text/event-stream")) {
      for (const std::string& event : split(reply.body, "\n\n")) {
        Json fields = Json::object();
        for (const std::string& line : split(event, "\n")) {
          const size_t colon = line.find(':');
          if (colon == 0) continue;
          fields[line.substr(0, colon)] = line.substr(std::min(colon + 2, line.size()));
        }
        if (!fields.empty()) expect(fields, told, "text/event-stream", where);
      }
    }
  }

 private:
  static std::vector<std::string> split(std::string_view text, std::string_view mark) {
    std::vector<std::string> parts;
    while (!text.empty()) {
      const size_t end = std::min(text.find(mark), text.size());
      if (end > 0) parts.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + mark.size(), text.size()));
    }
    return parts;
  }

  static bool is_of_type(const Json& value, const std::string& type) {
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "array") return value.is_array();
    return type != "object" || value.is_object();
  }

  void expect(const Json& value, const Json& told, const std::string& type,
              const std::string& where) const {
    if (!told.contains(type)) {
      ADD_FAILURE() << where << ": the document has no reply of the type " << type;
      return;
    }
    EXPECT_EQ(violation(value, told[type]["schema"], where), "");
  }

  std::string violation_of_any(const Json& value, const Json& ways,
                               const std::string& where) const {
    std::string all;
    for (const Json& way : ways) {
      const std::string one = violation(value, way, where);
      if (one.empty()) return "";
      all += one + "\n";
    }
    return all;
  }
  std::string violation_of_items(const Json& value, const Json& schema,
                                 const std::string& where) const {
    for (size_t index = 0; index < value.size(); ++index) {
      const std::string one =
          violation(value[index], schema["items"], where + "[" + std::to_string(index) + "]");
      if (!one.empty()) return one;
    }
    return "";
  }
  std::string violation_of_members(const Json& value, const Json& schema,
                                   const std::string& where) const {
    const Json listed = schema.value("properties", Json::object());
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) return where + ": lacks " + name.dump();
    }
    const Json others = schema.value("additionalProperties", Json(listed.empty()));
    for (const auto& [name, member] : value.items()) {
      const std::string place = where + "." + name;
      if (!listed.contains(name) && others == false) return place + ": is not in the document";
      const Json& type = listed.contains(name) ? listed[name] : others;
      if (type == true) continue;
      const std::string one = violation(member, type, place);
      if (!one.empty()) return one;
    }
    return "";
  }

  // The operation whose path has the same parts, names in braces aside.
  const Json* find(const std::string& method, const std::string& path) const {
    const std::vector<std::string> parts = split(path, "/");
    const Json* found = nullptr;
    for (const auto& [line, operations] : document_["paths"].items()) {
      const std::vector<std::string> names = split(line, "/");
      const bool fits =
          names.size() == parts.size() && std::equal(names.begin(), names.end(), parts.begin(),
                                                     [](const auto& name, const auto& part) {
                                                       return name == part || name.starts_with('{');
                                                     });
      if (!fits || !operations.contains(method)) continue;
      if (line == path) return &operations[method];
      found = &operations[method];
    }
    return found;
  }

  Json document_;
};

}  // namespace cairn::serve
