// Keywords of containers, part by part.
#include "grammar/schema_contents.h"

#include <algorithm>
#include <functional>
#include <map>

#include "grammar/automaton.h"
#include "grammar/regex.h"
#include "grammar/stacks.h"

namespace cairn::grammar {

namespace {

using Kind = json::Document::Kind;

}  // namespace

bool NamePattern::fits(std::string_view name) const {
  Stacks stacks(*automaton);
  stacks.set_work(kStepWorkMax);
  Stacks::Set set = stacks.start();
  for (const char byte : name) {
    if (set == Stacks::kOver) return true;
    set = stacks.step(set, uint8_t(byte));
  }
  return set == Stacks::kOver || stacks.is_accepting(set);
}

void SchemaContents::add_rest(uint32_t schema, SchemaRest& rest) const {
  if (document_.value(schema).kind == Kind::boolean) {
    (document_.is_true(schema) ? rest.is_open : rest.is_closed) = true;
    return;
  }
  rest.is_open = true;
  rest.view.push_back({.schema = schema});
}

Result<SchemaItems> SchemaContents::items(const SchemaView& view) const {
  SchemaItems found;
  for (int round = 0; round < 2; ++round) {
    for (const SchemaPart& part : view) {
      const json::Document::Member* first = document_.find(part.schema, "prefixItems");
      const json::Document::Member* others = document_.find(part.schema, "items");
      // Before 2020, a list of items was what prefixItems is now.
      if (others != nullptr && document_.value(others->value).kind == Kind::array) {
        first = others;
        others = document_.find(part.schema, "additionalItems");
      }
      if (first != nullptr && document_.value(first->value).kind != Kind::array) {
        return views_.error_at(first->value, "expected a list of schemas");
      }
      const size_t count = first == nullptr ? 0 : document_.value(first->value).items.size();
      if (round == 0) {
        found.prefix.resize(std::max(found.prefix.size(), count));
        continue;
      }
      for (size_t i = 0; i < found.prefix.size(); ++i) {
        if (i < count) {
          add_rest(document_.value(first->value).items[i], found.prefix[i]);
        } else if (others != nullptr) {
          add_rest(others->value, found.prefix[i]);
        }
      }
      if (others != nullptr) add_rest(others->value, found.rest);
    }
  }
  return found;
}

// The properties that any part names, in order, with what all parts say of them.
Result<SchemaMembers> SchemaContents::members(const SchemaView& view) {
  SchemaMembers members;
  CAIRN_TRY(members.pattern, name_pattern(view));
  CAIRN_TRY(add_names(view, members.properties));
  property_count_ += members.properties.size();
  if (int64_t(property_count_) > limits_.property_count) {
    return views_.error(ErrorCode::no_room, document_.value(view[0].schema).offset,
                        fmt::format("expected at most {} properties", limits_.property_count));
  }
  for (const SchemaPart& part : view) add_part(part, members);
  return members;
}

Status SchemaContents::add_names(const SchemaView& view,
                                 std::vector<SchemaProperty>& properties) const {
  std::map<std::string, size_t, std::less<>> known;
  const auto add = [&](const std::string& name) -> SchemaProperty& {
    const auto [at, is_new] = known.try_emplace(name, properties.size());
    if (is_new) properties.push_back({.name = name});
    return properties[at->second];
  };
  for (const uint32_t object : views_.all(view, "properties")) {
    if (document_.value(object).kind != Kind::object) {
      return views_.error_at(object, "expected an object of schemas");
    }
    for (const json::Document::Member& member : document_.value(object).members) {
      add(member.key).is_named = true;
    }
  }
  for (const uint32_t list : views_.all(view, "required")) {
    if (document_.value(list).kind != Kind::array) {
      return views_.error_at(list, "expected a list of names");
    }
    for (const uint32_t name : document_.value(list).items) {
      if (document_.value(name).kind != Kind::string) {
        return views_.error_at(name, "expected a name");
      }
      add(document_.value(name).text).is_required = true;
    }
  }
  return Ok{};
}

void SchemaContents::add_part(const SchemaPart& part, SchemaMembers& members) const {
  const std::optional<NamePattern>& pattern = members.pattern;
  const json::Document::Member* own = document_.find(part.schema, "properties");
  const json::Document::Member* others = document_.find(part.schema, "additionalProperties");
  std::map<std::string_view, uint32_t> own_schemas;
  if (own != nullptr) {
    for (const auto& member : document_.value(own->value).members) {
      own_schemas.emplace(member.key, member.value);
    }
  }
  for (SchemaProperty& property : members.properties) {
    const auto named = own_schemas.find(property.name);
    SchemaRest said;
    const bool is_patterned =
        pattern && pattern->part == part.schema && pattern->fits(property.name);
    if (is_patterned) add_rest(pattern->member->value, said);
    if (named != own_schemas.end()) {
      property.view.push_back({.schema = named->second});
    } else if (!is_patterned && others != nullptr) {
      add_rest(others->value, said);
    }
    property.is_forbidden = property.is_forbidden || said.is_closed;
    property.view.insert(property.view.end(), said.view.begin(), said.view.end());
  }
  if (others != nullptr) add_rest(others->value, members.rest);
}

// The one entry of patternProperties that the parts have, if any.
Result<std::optional<NamePattern>> SchemaContents::name_pattern(const SchemaView& view) const {
  std::optional<NamePattern> found;
  for (const SchemaPart& part : view) {
    const json::Document::Member* keyword = document_.find(part.schema, "patternProperties");
    if (keyword == nullptr) continue;
    if (document_.value(keyword->value).kind != Kind::object) {
      return views_.error_at(keyword->value, "expected an object of schemas");
    }
    for (const json::Document::Member& member : document_.value(keyword->value).members) {
      if (found) {
        return views_.error(ErrorCode::unsupported, member.offset,
                            "only one of \"patternProperties\" can be followed");
      }
      Expressions own;
      Result<Node> regex = read_regex(member.key, {.is_search = true}, limits_, own);
      if (!regex) return views_.error(regex.error().code, member.offset, regex.error().message);
      const Rule root = own.declare("name");
      own.define(root, *regex);
      CAIRN_TRY(Automaton automaton, compile(own, root, limits_));
      found.emplace(NamePattern{.part = part.schema,
                                .member = &member,
                                .automaton = std::make_shared<Automaton>(std::move(automaton))});
    }
  }
  return found;
}

}  // namespace cairn::grammar
