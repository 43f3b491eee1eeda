// What the parts of a view say of the members of objects and of the items of lists: which names,
// with which schemas, what is required, what else may stand there. Each notation of values prints
// its own text from it. Knows no notation. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/limits.h"
#include "grammar/schema_view.h"

namespace cairn::grammar {

struct Automaton;

// What may stand where no schema of its own is said.
struct SchemaRest {
  bool is_open = false;    // Said to be allowed.
  bool is_closed = false;  // Said not to be.
  SchemaView view;
};

struct SchemaProperty {
  std::string name;
  SchemaView view;
  bool is_named = false;  // By "properties", not by "required" alone.
  bool is_required = false;
  bool is_forbidden = false;
};

// Names that fit have this schema; of one part of a view.
struct NamePattern {
  uint32_t part;
  const json::Document::Member* member;  // The expression and the schema.
  std::shared_ptr<const Automaton> automaton;

  bool fits(std::string_view name) const;
};

struct SchemaMembers {
  std::vector<SchemaProperty> properties;  // In the order in which they are named.
  std::optional<NamePattern> pattern;
  SchemaRest rest;
};

struct SchemaItems {
  std::vector<SchemaRest> prefix;  // Of the first items, one by one.
  SchemaRest rest;                 // Of all behind them.
};

class SchemaContents {
 public:
  // REQUIRES: all of these outlive this.
  SchemaContents(const json::Document& document, const SchemaViews& views, const Limits& limits)
      : document_(document), views_(views), limits_(limits) {}

  Result<SchemaMembers> members(const SchemaView& view);
  Result<SchemaItems> items(const SchemaView& view) const;
  // Adds what a part says of everything that it does not name.
  void add_rest(uint32_t schema, SchemaRest& rest) const;

 private:
  Result<std::optional<NamePattern>> name_pattern(const SchemaView& view) const;
  Status add_names(const SchemaView& view, std::vector<SchemaProperty>& properties) const;
  void add_part(const SchemaPart& part, SchemaMembers& members) const;

  const json::Document& document_;
  const SchemaViews& views_;
  const Limits& limits_;
  size_t property_count_ = 0;  // Of all objects that were asked about.
};

}  // namespace cairn::grammar
