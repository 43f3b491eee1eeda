// Walks the two tables.
#include "serve/openapi.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "json/value.h"
#include "serve/app.h"
#include "serve/reply_types.h"

namespace cairn::serve {

namespace {

json::Value type_json(const Field& field) {
  const json::Value text = {{"type", "string"}};
  switch (field.kind) {
    case FieldKind::boolean:
      return {{"type", "boolean"}};
    case FieldKind::integer:
      return {
          {"type", "integer"}, {"minimum", int64_t(field.min)}, {"maximum", int64_t(field.max)}};
    case FieldKind::number:
      return {{"type", "number"}, {"minimum", field.min}, {"maximum", field.max}};
    case FieldKind::text:
      return {{"type", "string"}, {"maxLength", int64_t(field.max)}};
    case FieldKind::texts: {
      json::Value either = json::Value::array();
      either.push_back(text);
      either.push_back({{"type", "array"}, {"items", text}, {"maxItems", int64_t(field.max)}});
      return {{"anyOf", std::move(either)}};
    }
    case FieldKind::object:
      return {{"type", "object"}};
    case FieldKind::list:
      return {
          {"type", "array"}, {"minItems", int64_t(field.min)}, {"maxItems", int64_t(field.max)}};
    case FieldKind::any:
      break;
  }
  return json::Value::object();
}

// Of a number or switch of sampling: what holds where it is not there.
json::Value default_json(const Field& field, const sample::SamplingParams& defaults) {
  for (const sample::SamplingField& sampling : sample::sampling_fields()) {
    if (sampling.name != field.name) continue;
    const double value = sample::get(defaults, sampling);
    if (field.kind == FieldKind::boolean) return value != 0;
    if (field.kind == FieldKind::integer) return int64_t(value);
    // As it is written: 0.8f is not 0.8.
    return std::round(value * 1e6) / 1e6;
  }
  return {};
}

json::Value body_json(uint32_t endpoint, const sample::SamplingParams& defaults) {
  json::Value properties = json::Value::object(), required = json::Value::array();
  for (const Field& field : all_fields()) {
    if ((field.endpoints & endpoint) == 0) continue;
    json::Value type = type_json(field);
    std::string doc(field.doc);
    if (!field.default_text.empty()) doc += fmt::format(" (default: {})", field.default_text);
    type["description"] = doc;
    json::Value value = default_json(field, defaults);
    if (!value.is_null()) type["default"] = std::move(value);
    properties[field.name] = std::move(type);
    if (field.is_required) required.push_back(field.name);
  }
  json::Value schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.items().empty()) schema["required"] = std::move(required);
  return {{"required", true}, {"content", {{"application/json", {{"schema", std::move(schema)}}}}}};
}

std::string_view method_name(http::Method method) {
  if (method == http::Method::delete_) return "delete";
  return method == http::Method::get ? "get" : "post";
}

json::Value with_schema(json::Value schema) {
  return {{"schema", std::move(schema)}};
}

// Of an event as a whole: its data are text, JSON of the type.
json::Value event_schema(const Replies& replies) {
  json::Value data = {{"type", "string"},
                      {"contentMediaType", "application/json"},
                      {"contentSchema", schema_of(replies.events)}};
  if (replies.ends_with_done) {
    json::Value ways = json::Value::array();
    ways.push_back({{"const", "[DONE]"}});
    ways.push_back(std::move(data));
    data = {{"anyOf", std::move(ways)}};
  }
  json::Value required = json::Value::array();
  required.push_back("data");
  return {{"type", "object"},
          {"properties", {{"event", {{"type", "string"}}}, {"data", std::move(data)}}},
          {"required", std::move(required)}};
}

json::Value told_json(const RouteLine& line) {
  json::Value told = {{"description", line.doc}};
  const Replies& replies = line.replies;
  json::Value content = json::Value::object();
  if (!replies.json.empty()) content["application/json"] = with_schema(schema_of(replies.json));
  if (!replies.events.empty()) content["text/event-stream"] = with_schema(event_schema(replies));
  if (!replies.lines.empty()) {
    content["application/x-ndjson"] = with_schema(schema_of(replies.lines));
  }
  if (!content.members().empty()) told["content"] = std::move(content);
  return told;
}

json::Value replies_json(const RouteLine& line) {
  json::Value replies;
  replies["200"] = told_json(line);
  const json::Value schema = {{"$ref", "#/components/schemas/Error"}};
  const json::Value error = {{"description", "why not"},
                             {"content", {{"application/json", {{"schema", schema}}}}}};
  for (const char* status :
       {"400", "401", "403", "404", "409", "413", "415", "429", "500", "501", "503"}) {
    replies[status] = error;
  }
  return replies;
}

// What a query may say, of paths whose query says something.
struct QueryField {
  std::string_view path, name, type, doc;
};
constexpr QueryField kQueries[] = {
    {"/v1/responses/{id}/input_items", "limit", "integer",
     "how many items, 1 to 100 (default: 20)"},
    {"/v1/responses/{id}/input_items", "order", "\"asc\" | \"desc\"", "(default: desc)"},
    {"/v1/responses/{id}/input_items", "after", "string", "those behind the item of this id"},
};

// What stands in the path and behind it.
json::Value parameters_json(const std::string& path) {
  json::Value parameters = json::Value::array();
  if (const size_t open = path.find('{'); open != path.npos) {
    const std::string name = path.substr(open + 1, path.find('}') - open - 1);
    parameters.push_back(
        {{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
  }
  for (const QueryField& field : kQueries) {
    if (field.path != path) continue;
    parameters.push_back({{"name", field.name},
                          {"in", "query"},
                          {"description", field.doc},
                          {"schema", schema_of(field.type)}});
  }
  return parameters;
}

}  // namespace

std::string openapi_text(const sample::SamplingParams& defaults) {
  json::Value paths = json::Value::object();
  for (const RouteLine& line : all_routes()) {
    std::string path(line.path);
    json::Value operation = {{"summary", line.doc}, {"responses", replies_json(line)}};
    if (path.ends_with('*')) path = path.substr(0, path.size() - 1) + "{name}";
    json::Value parameters = parameters_json(path);
    if (!parameters.items().empty()) operation["parameters"] = std::move(parameters);
    if (line.endpoint != 0) operation["requestBody"] = body_json(line.endpoint, defaults);
    if (line.access == Access::anyone) operation["security"] = json::Value::array();
    paths[path][method_name(line.method)] = std::move(operation);
  }
  json::Value schemas = json::Value::object();
  for (const ReplyType& type : reply_types()) schemas[type.name] = schema_of(type.type);
  json::Value security = json::Value::array();
  security.push_back({{"key", json::Value::array()}});
  const json::Value document = {
      {"openapi", "3.1.0"},
      {"info", {{"title", "cairn"}, {"version", CAIRN_VERSION}}},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas", std::move(schemas)},
        {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}}},
      {"security", std::move(security)}};
  return json::to_text(document);
}

}  // namespace cairn::serve
