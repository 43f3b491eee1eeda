// Names and types out of JSON schemas.
#include "chat/tools.h"

#include <algorithm>

#include "json/value.h"

namespace cairn::chat {

namespace {

using Json = json::Value;

ParameterType type_named(const Json& name) {
  return name.as_text() == "string" ? ParameterType::string : ParameterType::other;
}

ParameterType common_type(const std::vector<ParameterType>& types) {
  if (types.empty()) return ParameterType::any;
  const bool is_one = std::all_of(types.begin(), types.end(),
                                  [&](ParameterType type) { return type == types.front(); });
  return is_one ? types.front() : ParameterType::any;
}

ParameterType type_in(const Json& schema) {
  std::vector<ParameterType> types;
  if (const Json* type = schema.find("type")) {
    if (type->as_text()) return type_named(*type);
    for (const Json& name : type->items()) types.push_back(type_named(name));
    return common_type(types);
  }
  if (const Json* values = schema.find("enum")) {
    for (const Json& value : values->items()) {
      types.push_back(value.as_text() ? ParameterType::string : ParameterType::other);
    }
  }
  return common_type(types);
}

Result<Tool> read_tool(const Json& entry, size_t index) {
  const Json* wrapped = entry.find("function");
  const Json& function = wrapped == nullptr ? entry : *wrapped;
  const std::string_view name = function.text_at("name").value_or("");
  if (name.empty()) {
    return fail(ErrorCode::invalid_data, "tools[{}]: expected a function with a name, found {}",
                index, function.is_object() ? "none" : function.type_name());
  }
  Tool tool{.name = std::string(name), .parameters = "{}", .types = {}};
  const Json* parameters = function.find_set("parameters");
  if (parameters == nullptr) return tool;
  if (!parameters->is_object()) {
    return fail(ErrorCode::invalid_data, "tools[{}].parameters: expected an object, found {}",
                index, parameters->type_name());
  }
  tool.parameters = json::to_text(*parameters);
  if (const Json* properties = parameters->find("properties")) {
    for (const auto& [key, schema] : properties->members()) {
      tool.types.emplace_back(key, type_in(schema));
    }
  }
  return tool;
}

}  // namespace

ParameterType Tool::type_of(std::string_view parameter) const {
  for (const auto& [known, type] : types) {
    if (known == parameter) return type;
  }
  return ParameterType::any;
}

ParameterType Tool::type_at(std::span<const std::string> path) const {
  auto root = json::read_value("tools", parameters, kToolLimits);
  if (!root) return ParameterType::any;
  const Json* schema = &*root;
  for (const std::string& member : path) {
    const Json* properties = schema->find("properties");
    const Json* items = schema->find("items");
    const Json* property = properties == nullptr ? nullptr : properties->find(member);
    if (property != nullptr) {
      schema = property;
    } else if (items != nullptr && member == "item") {
      schema = items;
    } else {
      return ParameterType::any;
    }
  }
  return type_in(*schema);
}

Result<std::vector<Tool>> read_tools(std::string_view json) {
  CAIRN_TRY(const Json list, json::read_value("tools", json, kToolLimits));
  if (!list.is_array()) {
    return fail(ErrorCode::invalid_data, "tools: expected a list, found {}", list.type_name());
  }
  std::vector<Tool> tools;
  for (const Json& entry : list.items()) {
    CAIRN_TRY(Tool tool, read_tool(entry, tools.size()));
    if (find_tool(tools, tool.name) != nullptr) {
      return fail(ErrorCode::invalid_data,
                  "tools[{}].name: expected a new name, found \"{}\" again", tools.size(),
                  tool.name);
    }
    tools.push_back(std::move(tool));
  }
  return tools;
}

const Tool* find_tool(const std::vector<Tool>& tools, std::string_view name) {
  for (const Tool& tool : tools) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

}  // namespace cairn::chat
