// Names and types out of JSON schemas.
#include "chat/tools.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cairn::chat {

namespace {

using Json = nlohmann::ordered_json;

ParameterType type_named(const Json& name) {
  return name == "string" ? ParameterType::string : ParameterType::other;
}

ParameterType common_type(const std::vector<ParameterType>& types) {
  if (types.empty()) return ParameterType::any;
  const bool is_one = std::all_of(types.begin(), types.end(),
                                  [&](ParameterType type) { return type == types.front(); });
  return is_one ? types.front() : ParameterType::any;
}

ParameterType type_in(const Json& schema) {
  if (!schema.is_object()) return ParameterType::any;
  std::vector<ParameterType> types;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_string()) return type_named(*type);
    if (!type->is_array()) return ParameterType::any;
    for (const Json& name : *type) types.push_back(type_named(name));
    return common_type(types);
  }
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
    for (const Json& value : *values) {
      types.push_back(value.is_string() ? ParameterType::string : ParameterType::other);
    }
  }
  return common_type(types);
}

Result<Tool> read_tool(const Json& entry, size_t index) {
  const bool is_wrapped = entry.is_object() && entry.contains("function");
  const Json& function = is_wrapped ? entry["function"] : entry;
  if (!function.is_object() || !function.contains("name") || !function["name"].is_string() ||
      function["name"].get<std::string>().empty()) {
    return fail(ErrorCode::invalid_data, "tools[{}]: expected a function with a name, found {}",
                index, function.is_object() ? "none" : function.type_name());
  }
  Tool tool{.name = function["name"].get<std::string>(), .parameters = "{}", .types = {}};
  const auto parameters = function.find("parameters");
  if (parameters == function.end() || parameters->is_null()) return tool;
  if (!parameters->is_object()) {
    return fail(ErrorCode::invalid_data, "tools[{}].parameters: expected an object, found {}",
                index, parameters->type_name());
  }
  tool.parameters = parameters->dump();
  const auto properties = parameters->find("properties");
  if (properties == parameters->end() || !properties->is_object()) return tool;
  for (const auto& [name, schema] : properties->items()) {
    tool.types.emplace_back(name, type_in(schema));
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
  const Json root = Json::parse(parameters, nullptr, false);
  const Json* schema = &root;
  const auto below = [&](const char* key) -> const Json* {
    if (!schema->is_object() || !schema->contains(key)) return nullptr;
    return &(*schema)[key];
  };
  for (const std::string& member : path) {
    const Json* properties = below("properties");
    const Json* items = below("items");
    if (properties != nullptr && properties->is_object() && properties->contains(member)) {
      schema = &(*properties)[member];
    } else if (items != nullptr && member == "item") {
      schema = items;
    } else {
      return ParameterType::any;
    }
  }
  return type_in(*schema);
}

Result<std::vector<Tool>> read_tools(std::string_view json) {
  const Json list = Json::parse(json, nullptr, false);
  if (!list.is_array()) {
    return fail(ErrorCode::invalid_data, "tools: expected a list, found {}",
                list.is_discarded() ? "no JSON" : list.type_name());
  }
  std::vector<Tool> tools;
  for (const Json& entry : list) {
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
