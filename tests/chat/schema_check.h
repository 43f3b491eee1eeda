// Whether a JSON value is what a schema asks for, as far as the tests' schemas go. For tests only.
#pragma once

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "unicode/unicode.h"

namespace cairn::chat {

inline size_t character_count(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += (uint8_t(byte) & 0xC0) != 0x80;
  return count;
}

inline bool has_type(const nlohmann::json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "null") return value.is_null();
  return type == value.type_name();
}

inline std::string string_fault(const std::string& text, const nlohmann::json& schema) {
  const size_t count = character_count(text);
  if (count < schema.value("minLength", 0u)) return "is too short";
  if (schema.contains("maxLength") && count > schema["maxLength"]) return "is too long";
  if (schema.contains("pattern") &&
      !std::regex_search(text, std::regex(schema["pattern"].get<std::string>()))) {
    return "has not the pattern";
  }
  if (schema.value("format", "") == "date" &&
      !std::regex_match(text, std::regex("[0-9]{4}-[0-9]{2}-[0-9]{2}"))) {
    return "is no date";
  }
  return "";
}

// Empty where it fits, else what does not.
inline std::string schema_fault(const nlohmann::json& value, const nlohmann::json& schema,
                                const std::string& where) {
  if (schema.contains("type") && !has_type(value, schema["type"])) {
    return where + " is of type " + value.type_name();
  }
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
    return where + " is none of those listed";
  }
  if (value.is_string()) {
    const std::string fault = string_fault(value.get<std::string>(), schema);
    return fault.empty() ? "" : where + " " + fault;
  }
  if (value.is_number()) {
    if (schema.contains("minimum") && value < schema["minimum"]) return where + " is too small";
    if (schema.contains("maximum") && value > schema["maximum"]) return where + " is too large";
    return "";
  }
  if (value.is_array()) {
    if (value.size() < schema.value("minItems", 0u)) return where + " has too few items";
    if (schema.contains("maxItems") && value.size() > schema["maxItems"]) {
      return where + " has too many items";
    }
    for (const nlohmann::json& item : value) {
      const std::string fault = schema_fault(item, schema["items"], where + "[]");
      if (!fault.empty()) return fault;
    }
    return "";
  }
  if (!value.is_object()) return "";
  for (const nlohmann::json& name : schema.value("required", nlohmann::json::array())) {
    if (!value.contains(name)) return where + " lacks " + name.dump();
  }
  for (const auto& [name, member] : value.items()) {
    if (!schema.contains("properties") || !schema["properties"].contains(name)) {
      return where + " has " + name;
    }
    const std::string fault = schema_fault(member, schema["properties"][name], where + "." + name);
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace cairn::chat
