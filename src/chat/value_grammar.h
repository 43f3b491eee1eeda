// The grammar of an argument's value, by the tool's schema, in the syntax that the model writes:
// JSON, unquoted text, or one of the syntaxes that chat/literals.h parses. Errors: unsupported,
// with the tool, the parameter and the keyword, if the syntax cannot enforce what the schema
// requires. What schemas say is read in grammar/; here it is only printed in other forms than JSON.
// Thread rule: one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/marker_nodes.h"
#include "chat/tools.h"
#include "grammar/schema_contents.h"

namespace cairn::chat {

// A schema, by its number in the document of the tool's parameters.
using Schema = uint32_t;

enum class ValueForm : uint8_t { python, braces, elements };

struct Parameter {
  std::string name;
  Schema schema = 0;
  bool is_required = false;
};

struct FormMarks {
  std::string mark;   // CallFormat's: the quote of braces, the text before elements' tags.
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
  // The members of the arguments.
  Result<std::vector<Parameter>> properties() { return properties_of(0); }
  Result<grammar::Node> json(Schema schema, uint32_t types = grammar::kTypeAny);
  // A string as it stands.
  Result<grammar::Node> text(Schema schema, std::vector<std::string> never);
  Result<grammar::Node> value(ValueForm form, Schema schema, int depth = 0);
  // The members, with what stands between them.
  Result<grammar::Node> members(ValueForm form, std::vector<Parameter> properties, int depth);

  bool has(Schema schema, std::string_view keyword) const;
  // The one type that is said; empty where none is, or several.
  std::string_view type_name(Schema schema) const;
  Error refuse(std::string_view what) const;

 private:
  // The tool's parameters and what reads them.
  struct Source;
  struct Member {
    grammar::Node node;
    bool is_required;
  };
  // Says at which tool and parameter.
  Error placed(Error error) const;
  // Where the schema lists values, those of its types.
  Result<bool> find_listed(Schema schema, std::vector<uint32_t>& values);
  Status refuse_keywords(Schema schema, std::initializer_list<std::string_view> keywords);
  Status check_references(Schema schema) const;
  bool lists_character(Schema schema, std::string_view character) const;
  Result<Schema> resolved(ValueForm form, Schema schema);
  Result<uint32_t> types_of(Schema schema);
  Result<std::vector<Parameter>> properties_of(Schema schema);
  Result<grammar::Node> member_list(ValueForm form, const std::vector<Parameter>& properties,
                                    int depth);
  Result<grammar::Node> of_types(ValueForm form, uint32_t types, Schema schema, int depth);
  Result<grammar::Node> string(ValueForm form, Schema schema);
  Result<grammar::Node> listed(ValueForm form, const std::vector<uint32_t>& values);
  Result<grammar::Node> list(ValueForm form, Schema schema, int depth);
  Result<grammar::Node> object(ValueForm form, Schema schema, int depth);
  grammar::Node element(std::string_view name, grammar::Node content);
  grammar::Node with_commas(const std::vector<Member>& members, grammar::Node comma);

  MarkerNodes& markers_;
  FormMarks marks_;
  std::shared_ptr<Source> source_;
  std::string tool_, parameter_;
};

}  // namespace cairn::chat
