// What a tool's schema allows of a value, as a grammar of the text that a model writes for it:
// JSON, a text as it stands, or one of the forms that chat/literals.h reads. Errors: unsupported,
// naming the tool, the parameter and the keyword, where a form cannot keep what the schema asks
// for. Thread rule: one thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/marker_nodes.h"
#include "chat/tools.h"

namespace cairn::chat {

using SchemaJson = nlohmann::ordered_json;

enum class ValueForm : uint8_t { python, braces, elements };

struct SchemaProperty {
  std::string name;
  const SchemaJson* schema = nullptr;
  bool is_required = false;
};

struct FormMarks {
  std::string mark;   // CallFormat's: the quote of braces, what stands before elements' tags.
  std::string never;  // No text within the value may hold it.
  std::string end;    // What ends a value wherever it stands, within JSON's quotes too; or nothing.
};

class ValueGrammar {
 public:
  // REQUIRES: `markers` outlives this.
  ValueGrammar(MarkerNodes* markers, FormMarks marks)
      : markers_(*markers), marks_(std::move(marks)) {}

  // Values of this tool's parameters from here on. Errors: invalid_argument where they are none of
  // an object's.
  Status enter(const Tool& tool);
  // What errors name.
  void name_parameter(std::string_view name) { parameter_ = name; }

  // The whole of the arguments as a JSON object.
  Result<grammar::Node> arguments();
  // The members of the arguments, or of an object within them.
  Result<std::vector<SchemaProperty>> properties() { return properties_of(root_); }
  Result<grammar::Node> json(const SchemaJson& schema);
  // A string as it stands.
  Result<grammar::Node> text(const SchemaJson& schema, std::vector<std::string> never);
  Result<grammar::Node> value(ValueForm form, const SchemaJson& schema, int depth = 0);
  // The members, with what stands between them.
  Result<grammar::Node> members(ValueForm form, std::vector<SchemaProperty> properties, int depth);

  Error refuse(std::string_view what) const;

 private:
  struct Member {
    grammar::Node node;
    bool is_required;
  };
  // Where the schema lists values, those of its types.
  Result<bool> find_listed(const SchemaJson& schema, std::vector<SchemaJson>& values);
  Status refuse_keywords(const SchemaJson& schema, std::initializer_list<const char*> keywords);
  Result<const SchemaJson*> resolved(ValueForm form, const SchemaJson& schema);
  Result<std::vector<SchemaProperty>> properties_of(const SchemaJson& schema);
  Result<grammar::Node> member_list(ValueForm form, const std::vector<SchemaProperty>& properties,
                                    int depth);
  Result<grammar::Node> of_type(ValueForm form, const std::string& type, const SchemaJson& schema,
                                int depth);
  Result<grammar::Node> string(ValueForm form, const SchemaJson& schema);
  Result<grammar::Node> listed(ValueForm form, const std::vector<SchemaJson>& values);
  Result<grammar::Node> list(ValueForm form, const SchemaJson& schema, int depth);
  Result<grammar::Node> object(ValueForm form, const SchemaJson& schema, int depth);
  grammar::Node element(std::string_view name, grammar::Node content);
  grammar::Node with_commas(const std::vector<Member>& members, grammar::Node comma);

  MarkerNodes& markers_;
  FormMarks marks_;
  SchemaJson root_;
  std::string tool_, parameter_;
};

}  // namespace cairn::chat
