// Every view of the schema becomes a rule, made once and from a list of those that wait: schemas
// that refer to themselves are rules that call themselves, and depth costs no recursion.
#include "grammar/schema.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "grammar/automaton.h"
#include "grammar/json_document.h"
#include "grammar/json_nodes.h"
#include "grammar/key_set.h"
#include "grammar/number_ranges.h"
#include "grammar/regex.h"
#include "grammar/schema_view.h"
#include "grammar/source.h"
#include "grammar/stacks.h"
#include "grammar/string_formats.h"

namespace cairn::grammar {

namespace {

using Kind = JsonDocument::Kind;

// Views may be many where choices are nested in allOf.
constexpr size_t kViewsMax = 1 << 15;
constexpr size_t kUniqueRulesMax = 4096;
constexpr std::string_view kUniqueItemsNeed =
    "\"uniqueItems\" can be followed where items are texts, integers and such of an enum, or at "
    "most one";

class Reader {
 public:
  Reader(const JsonDocument& document, const Limits& limits, Expressions& expressions)
      : document_(document),
        limits_(limits),
        expressions_(expressions),
        views_(document),
        json_(expressions) {}

  Result<Node> read() {
    CAIRN_TRY(const Node root, node_of({{.schema = document_.root()}}));
    while (!waiting_.empty()) {
      const auto [view, rule] = waiting_.back();
      waiting_.pop_back();
      CAIRN_TRY(const Node body, read_view(view));
      expressions_.define(rule, body);
    }
    return root;
  }

 private:
  struct Property {
    std::string name;
    SchemaView view;
    bool is_required = false;
    bool is_forbidden = false;
  };
  // What may stand where no schema of its own is said.
  struct Rest {
    bool is_open = false;    // Said to be allowed.
    bool is_closed = false;  // Said not to be.
    SchemaView view;
  };

  // Names that fit have this schema; of one part of a view.
  struct NamePattern {
    uint32_t part;
    const JsonDocument::Member* member;  // The expression and the schema.
    std::shared_ptr<const Automaton> automaton;
  };

  Node nothing() { return expressions_.choice(std::span<const Node>()); }

  Result<Node> node_of(SchemaView view) {
    std::sort(view.begin(), view.end());
    view.erase(std::unique(view.begin(), view.end()), view.end());
    if (view.empty()) return json_.value();
    if (view.size() == 1 && !view[0].is_flat) {
      CAIRN_TRY(view[0].schema, views_.follow(view[0].schema));
    }
    const auto known = rules_.find(view);
    if (known != rules_.end()) return expressions_.call(known->second);
    if (rules_.size() >= kViewsMax) {
      return views_.error(ErrorCode::no_room, document_.value(view[0].schema).offset,
                          "expected fewer combinations of schemas");
    }
    const Place place = place_of(document_.source(), document_.value(view[0].schema).offset);
    const Rule rule =
        expressions_.declare(fmt::format("schema at line {}, column {}", place.line, place.column));
    waiting_.emplace_back(view, rule);
    rules_.emplace(std::move(view), rule);
    return expressions_.call(rule);
  }

  Result<Node> read_view(const SchemaView& view) {
    CAIRN_TRY(const std::optional<SchemaView> flat, views_.flatten(view));
    if (!flat) return nothing();
    if (flat->empty()) return json_.value();
    if (const SchemaPart* part = views_.find_choice(*flat)) {
      CAIRN_TRY(const std::vector<SchemaView> choices, views_.choices(*flat, *part));
      std::vector<Node> ways;
      for (const SchemaView& choice : choices) {
        CAIRN_TRY(const Node way, node_of(choice));
        ways.push_back(way);
      }
      return expressions_.choice(ways);
    }
    CAIRN_TRY(const SchemaViews::Exclusion excluded, views_.exclusion(*flat));
    CAIRN_TRY(uint32_t types, views_.types(*flat));
    types &= ~excluded.types;
    if (views_.find(*flat, "enum") != nullptr || views_.find(*flat, "const") != nullptr) {
      CAIRN_TRY(const std::vector<uint32_t> values, values_of(*flat, types, excluded));
      std::vector<Node> ways;
      for (const uint32_t value : values) {
        ways.push_back(expressions_.text(document_.compact(value)));
      }
      return expressions_.choice(ways);
    }
    return read_types(*flat, types, excluded);
  }

  // The values of enum and const that all parts name and none excludes.
  Result<std::vector<uint32_t>> values_of(const SchemaView& view, uint32_t types,
                                          const SchemaViews::Exclusion& excluded) {
    if (const JsonDocument::Member* other = views_.find_other(view, {})) {
      return views_.error(
          ErrorCode::unsupported, other->offset,
          "the keyword " + quote(other->key) + " cannot be followed beside enum or const");
    }
    std::vector<std::vector<uint32_t>> lists;
    for (const uint32_t value : views_.all(view, "const")) lists.push_back({value});
    for (const uint32_t value : views_.all(view, "enum")) {
      if (document_.value(value).kind != Kind::array) {
        return views_.error_at(value, "expected a list of values");
      }
      lists.push_back(document_.value(value).items);
      if (int64_t(lists.back().size()) > limits_.enum_count) {
        return views_.error(ErrorCode::no_room, document_.value(value).offset,
                            fmt::format("expected at most {} values", limits_.enum_count));
      }
    }
    std::map<std::string, size_t> count_of;
    for (const std::vector<uint32_t>& list : lists) {
      std::set<std::string> once;
      for (const uint32_t value : list) once.insert(document_.compact(value));
      for (const std::string& text : once) ++count_of[text];
    }
    for (const uint32_t value : excluded.values) count_of[document_.compact(value)] = SIZE_MAX;
    std::vector<uint32_t> values;
    for (const uint32_t value : lists[0]) {
      const bool is_named = count_of[document_.compact(value)] == lists.size();
      if ((views_.type_of(value) & types) != 0 && is_named) values.push_back(value);
    }
    return values;
  }

  Result<Node> read_types(const SchemaView& view, uint32_t types,
                          const SchemaViews::Exclusion& excluded) {
    std::vector<Node> ways;
    std::vector<std::string> names;  // Texts that are excluded.
    bool excludes_true = false, excludes_false = false;
    for (const uint32_t value : excluded.values) {
      const uint32_t type = views_.type_of(value);
      if (type == kTypeString) names.push_back(document_.value(value).text);
      if (type == kTypeBoolean) (document_.is_true(value) ? excludes_true : excludes_false) = true;
      if (type == kTypeNull) types &= ~uint32_t(kTypeNull);
      const uint32_t others = kTypeInteger | kTypeNumber | kTypeArray | kTypeObject;
      const uint32_t concerned = type == kTypeInteger ? type | kTypeNumber : type;
      if ((type & others) != 0 && (concerned & types) != 0) {
        return views_.error(ErrorCode::unsupported, document_.value(value).offset,
                            "\"not\" cannot exclude one number, list or object");
      }
    }
    if ((types & kTypeObject) != 0) {
      CAIRN_TRY(const Node way, read_object(view));
      ways.push_back(way);
    }
    if ((types & kTypeArray) != 0) {
      CAIRN_TRY(const Node way, read_array(view));
      ways.push_back(way);
    }
    if ((types & kTypeString) != 0) {
      CAIRN_TRY(const Node way, names.empty() ? read_string(view) : read_other_string(view, names));
      ways.push_back(way);
    }
    if ((types & (kTypeNumber | kTypeInteger)) != 0) {
      CAIRN_TRY(const Node way, read_number(view, (types & kTypeNumber) != 0));
      ways.push_back(way);
    }
    if ((types & kTypeBoolean) != 0) {
      if (!excludes_true) ways.push_back(expressions_.text("true"));
      if (!excludes_false) ways.push_back(expressions_.text("false"));
    }
    if ((types & kTypeNull) != 0) ways.push_back(json_.null());
    return expressions_.choice(ways);
  }

  // Any text but these.
  Result<Node> read_other_string(const SchemaView& view, std::span<const std::string> names) {
    for (const std::string_view keyword : {"pattern", "format", "minLength", "maxLength"}) {
      if (const JsonDocument::Member* other = views_.find(view, keyword)) {
        return views_.error(ErrorCode::unsupported, other->offset,
                            quote(keyword) + " cannot be followed beside \"not\" with texts");
      }
    }
    return keys_except(names, expressions_);
  }

  Result<Node> read_string(const SchemaView& view) {
    CAIRN_TRY(const auto counts, views_.counts(view, "minLength", "maxLength"));
    std::vector<uint32_t> patterns = views_.all(view, "pattern");
    std::string_view pattern;
    size_t pattern_count = patterns.size(), offset = 0;
    bool is_search = true;
    for (const uint32_t value : patterns) {
      if (document_.value(value).kind != Kind::string) {
        return views_.error_at(value, "expected a pattern in quotes");
      }
      pattern = document_.value(value).text;
      offset = document_.value(value).offset;
    }
    for (const uint32_t value : views_.all(view, "format")) {
      const std::string_view format = pattern_of_format(document_.value(value).text);
      if (format.empty()) continue;
      ++pattern_count;
      pattern = format;
      offset = document_.value(value).offset;
      is_search = false;
    }
    const bool is_counted = counts.min > 0 || counts.max != INT32_MAX;
    if (pattern_count > 1) {
      return views_.error(ErrorCode::unsupported, offset,
                          "only one pattern or format can be followed at once");
    }
    if (counts.max < counts.min) return nothing();
    if (pattern_count == 0 && !is_counted) return json_.string();
    Node content = expressions_.empty();
    if (pattern_count == 1) {
      const RegexStyle style{
          .is_search = is_search, .is_json = true, .length = {counts.min, counts.max}};
      Result<Node> regex = read_regex(pattern, style, limits_, expressions_);
      if (!regex) return views_.error(regex.error().code, offset, regex.error().message);
      content = *regex;
    } else {
      content = expressions_.repeat(json_.character(), counts.min, counts.max);
    }
    return expressions_.sequence({expressions_.text("\""), content, expressions_.text("\"")});
  }

  Result<Node> read_number(const SchemaView& view, bool has_fractions) {
    CAIRN_TRY(const Bounds bounds, views_.bounds(view));
    const std::vector<uint32_t> steps = views_.all(view, "multipleOf");
    for (const uint32_t step : steps) {
      auto decimal = document_.value(step).kind == Kind::number
                         ? read_decimal(document_.spelling(step))
                         : Result<Decimal>(Decimal{});
      if (!decimal || steps.size() > 1) {
        return views_.error(ErrorCode::unsupported, document_.value(step).offset,
                            "this step cannot be followed");
      }
      Result<Node> multiples = multiples_between(bounds, *decimal, has_fractions, expressions_);
      if (multiples) return *multiples;
      if (multiples.error().code == ErrorCode::not_found) return nothing();
      return views_.error(multiples.error().code, document_.value(step).offset,
                          multiples.error().message);
    }
    if (!bounds.min && !bounds.max) return has_fractions ? json_.number() : json_.integer();
    return (has_fractions ? numbers_between(bounds, expressions_)
                          : integers_between(bounds, expressions_))
        .value_or(nothing());
  }

  // Adds what a part says of everything that it does not name.
  Status add_rest(uint32_t schema, Rest& rest) {
    if (document_.value(schema).kind == Kind::boolean) {
      (document_.is_true(schema) ? rest.is_open : rest.is_closed) = true;
      return Ok{};
    }
    rest.is_open = true;
    rest.view.push_back({.schema = schema});
    return Ok{};
  }

  bool is_unique(const SchemaView& view) const {
    const std::vector<uint32_t> said = views_.all(view, "uniqueItems");
    return std::any_of(said.begin(), said.end(),
                       [&](uint32_t value) { return document_.is_true(value); });
  }

  // Lists without equal items, where the items are values with names: some of them, in their order.
  Result<Node> read_unique_items(const SchemaView& view, const Rest& rest,
                                 SchemaViews::Counts counts) {
    const size_t offset = views_.find(view, "uniqueItems")->offset;
    CAIRN_TRY(const std::optional<SchemaView> flat, views_.flatten(rest.view));
    const bool is_named = flat && views_.find_choice(*flat) == nullptr &&
                          (views_.find(*flat, "enum") || views_.find(*flat, "const"));
    if (!is_named) return views_.error(ErrorCode::unsupported, offset, kUniqueItemsNeed);
    CAIRN_TRY(const SchemaViews::Exclusion excluded, views_.exclusion(*flat));
    CAIRN_TRY(const uint32_t types, views_.types(*flat));
    CAIRN_TRY(const std::vector<uint32_t> values,
              values_of(*flat, types & ~excluded.types, excluded));
    std::set<std::string> texts;
    std::vector<Node> items;
    for (const uint32_t value : values) {
      const uint32_t type = views_.type_of(value);
      const std::string text = document_.compact(value);
      // 1 and 1.0 would be equal; so may lists and objects be.
      const bool is_plain = (type & (kTypeNull | kTypeBoolean | kTypeString)) != 0 ||
                            (type == kTypeInteger && text.find_first_of(".eE") == text.npos);
      if (!is_plain) return views_.error(ErrorCode::unsupported, offset, kUniqueItemsNeed);
      if (texts.insert(text).second) items.push_back(expressions_.text(text));
    }
    counts.max = std::min(counts.max, int32_t(items.size()));
    if (counts.max < counts.min) return nothing();
    if (items.size() * size_t(counts.max + 1) > kUniqueRulesMax) {
      return views_.error(ErrorCode::no_room, offset, "expected fewer values in unique items");
    }
    return expressions_.sequence({expressions_.text("["), json_.blanks(), some_of(items, counts),
                                  json_.blanks(), expressions_.text("]")});
  }

  // So many of the items, in their order, with commas.
  Node some_of(std::span<const Node> items, SchemaViews::Counts counts) {
    // [taken]: what may follow behind the items that were looked at already, from the last on.
    std::vector<Node> behind(size_t(counts.max) + 1);
    for (int32_t taken = 0; taken <= counts.max; ++taken) {
      behind[size_t(taken)] = taken < counts.min ? nothing() : expressions_.empty();
    }
    for (size_t at = items.size(); at-- > 0;) {
      for (int32_t taken = 0; taken < counts.max; ++taken) {
        Node item = items[at];
        if (taken > 0) item = expressions_.sequence({json_.comma(), item});
        item = expressions_.sequence({item, behind[size_t(taken) + 1]});
        behind[size_t(taken)] =
            shared("some of the values", expressions_.choice({item, behind[size_t(taken)]}));
      }
    }
    return behind[0];
  }

  Result<Node> read_array(const SchemaView& view) {
    CAIRN_TRY(auto counts, views_.counts(view, "minItems", "maxItems"));
    std::vector<Rest> prefix;
    Rest rest;
    CAIRN_TRY(read_items(view, prefix, rest));
    int32_t prefix_count = std::min(int32_t(prefix.size()), counts.max);
    for (int32_t i = 0; i < prefix_count; ++i) {
      if (prefix[size_t(i)].is_closed) prefix_count = i;
    }
    if (is_unique(view) && counts.max > 1) {
      if (prefix.empty() && !rest.is_closed) return read_unique_items(view, rest, counts);
      return views_.error(ErrorCode::unsupported, views_.find(view, "uniqueItems")->offset,
                          kUniqueItemsNeed);
    }
    const bool may_go_on = !rest.is_closed && prefix_count == int32_t(prefix.size()) &&
                           (prefix.empty() || rest.is_open || counts.min > prefix_count);
    if (!may_go_on) counts.max = std::min(counts.max, prefix_count);
    if (counts.max < counts.min) return nothing();
    CAIRN_TRY(const Node item, may_go_on ? node_of(rest.view) : Result<Node>(nothing()));
    if (prefix_count == 0) return json_.list("[", item, counts.min, counts.max, "]");
    std::vector<Node> parts = {expressions_.text("["), json_.blanks()};
    for (int32_t i = 0; i < prefix_count; ++i) {
      if (i > 0) parts.push_back(json_.comma());
      CAIRN_TRY(const Node one, node_of(prefix[size_t(i)].view));
      parts.push_back(one);
    }
    if (may_go_on && counts.max > prefix_count) {
      const int32_t max = counts.max == INT32_MAX ? kUnbounded : counts.max - prefix_count;
      parts.push_back(expressions_.repeat(expressions_.sequence({json_.comma(), item}),
                                          std::max(0, counts.min - prefix_count), max));
    }
    parts.push_back(json_.blanks());
    parts.push_back(expressions_.text("]"));
    return expressions_.sequence(parts);
  }

  // What is said of the first items, one by one, and of all behind them.
  Status read_items(const SchemaView& view, std::vector<Rest>& prefix, Rest& rest) {
    for (int round = 0; round < 2; ++round) {
      for (const SchemaPart& part : view) {
        const JsonDocument::Member* first = document_.find(part.schema, "prefixItems");
        const JsonDocument::Member* others = document_.find(part.schema, "items");
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
          prefix.resize(std::max(prefix.size(), count));
          continue;
        }
        for (size_t i = 0; i < prefix.size(); ++i) {
          if (i < count) {
            CAIRN_TRY(add_rest(document_.value(first->value).items[i], prefix[i]));
          } else if (others != nullptr) {
            CAIRN_TRY(add_rest(others->value, prefix[i]));
          }
        }
        if (others != nullptr) CAIRN_TRY(add_rest(others->value, rest));
      }
    }
    return Ok{};
  }

  // The one entry of patternProperties that the parts have, if any.
  Result<std::optional<NamePattern>> name_pattern(const SchemaView& view) {
    std::optional<NamePattern> found;
    for (const SchemaPart& part : view) {
      const JsonDocument::Member* keyword = document_.find(part.schema, "patternProperties");
      if (keyword == nullptr) continue;
      if (document_.value(keyword->value).kind != Kind::object) {
        return views_.error_at(keyword->value, "expected an object of schemas");
      }
      for (const JsonDocument::Member& member : document_.value(keyword->value).members) {
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

  // Members whose names fit the pattern, none of them a property's.
  Result<std::optional<Node>> pattern_member(const SchemaView& view, const NamePattern& pattern,
                                             std::span<const std::string> names) {
    for (const std::string& name : names) {
      if (fits(pattern, name)) return std::optional<Node>();
    }
    for (const SchemaPart& part : view) {
      const bool is_own = part.schema == pattern.part;
      if (!is_own && document_.find(part.schema, "additionalProperties") != nullptr) {
        return std::optional<Node>();
      }
    }
    Rest said;
    CAIRN_TRY(add_rest(pattern.member->value, said));
    if (said.is_closed) return std::optional<Node>();
    Result<Node> regex = read_regex(pattern.member->key, {.is_search = true, .is_json = true},
                                    limits_, expressions_);
    if (!regex) {
      return views_.error(regex.error().code, pattern.member->offset, regex.error().message);
    }
    CAIRN_TRY(const Node value, node_of(said.view));
    const Node quote_mark = expressions_.text("\"");
    return std::optional(
        json_.member(expressions_.sequence({quote_mark, *regex, quote_mark}), value));
  }

  static bool fits(const NamePattern& pattern, std::string_view name) {
    Stacks stacks(*pattern.automaton);
    stacks.set_work(kStepWorkMax);
    Stacks::Set set = stacks.start();
    for (const char byte : name) {
      if (set == Stacks::kOver) return true;
      set = stacks.step(set, uint8_t(byte));
    }
    return set == Stacks::kOver || stacks.is_accepting(set);
  }

  Result<Node> read_object(const SchemaView& view) {
    std::vector<Property> properties;
    Rest rest;
    CAIRN_TRY(const std::optional<NamePattern> pattern, name_pattern(view));
    CAIRN_TRY(read_properties(view, pattern, properties, rest));
    // Beside a pattern, other names would have to be none that fit it.
    const bool is_open = !pattern && !rest.is_closed && (rest.is_open || properties.empty());
    CAIRN_TRY(const auto counts, views_.counts(view, "minProperties", "maxProperties"));
    std::vector<std::string> names;
    std::vector<Property> allowed;
    for (Property& property : properties) {
      names.push_back(property.name);
      if (property.is_forbidden && property.is_required) return nothing();
      if (!property.is_forbidden) allowed.push_back(std::move(property));
    }
    const auto required_count = std::count_if(allowed.begin(), allowed.end(),
                                              [](const Property& p) { return p.is_required; });
    const bool is_plain = allowed.empty() && is_open;
    // Names may come twice where any are allowed, so that more than one cannot be counted on.
    const bool min_holds = counts.min <= required_count || (is_plain && counts.min <= 1);
    const bool max_holds =
        is_plain || (!is_open && !pattern && counts.max >= int64_t(allowed.size()));
    if (!min_holds || (!max_holds && counts.max != INT32_MAX)) {
      const JsonDocument::Member* keyword =
          views_.find(view, min_holds ? "maxProperties" : "minProperties");
      return views_.error(ErrorCode::unsupported, keyword->offset,
                          "this number of properties cannot be followed here");
    }
    std::optional<Node> other;
    if (is_open) {
      CAIRN_TRY(const Node value, node_of(rest.view));
      const Node name = names.empty() ? json_.string() : keys_except(names, expressions_);
      other = json_.member(name, value);
    }
    if (pattern) {
      CAIRN_TRY(other, pattern_member(view, *pattern, names));
    }
    if (is_plain) return json_.list("{", *other, counts.min, counts.max, "}");
    return build_object(allowed, other);
  }

  // Members in their order; those that are not required may be left out.
  Result<Node> build_object(const std::vector<Property>& properties, std::optional<Node> other) {
    Expressions& e = expressions_;
    std::vector<Node> members;
    size_t first_count = properties.size();  // Of those that may come first.
    for (size_t i = 0; i < properties.size(); ++i) {
      CAIRN_TRY(const Node value, node_of(properties[i].view));
      const Node member = json_.member(json_.quoted(properties[i].name), value);
      if (properties[i].is_required) first_count = std::min(first_count, i + 1);
      // Two places call it where it may also come later.
      members.push_back(i == 0 ? member : shared(properties[i].name, member));
    }
    const bool may_be_empty = std::none_of(properties.begin(), properties.end(),
                                           [](const Property& p) { return p.is_required; });
    std::vector<Node> ways;
    Node tail = other ? e.repeat(e.sequence({json_.comma(), *other}), 0, kUnbounded) : e.empty();
    if (may_be_empty && other) ways.push_back(e.sequence({*other, tail}));
    for (size_t i = properties.size(); i-- > 0;) {
      if (i < first_count) ways.push_back(e.sequence({members[i], tail}));
      const Node more = e.sequence({json_.comma(), members[i]});
      tail = e.sequence({properties[i].is_required ? more : e.optional(more), tail});
      if (i < first_count && i > 0) tail = shared("behind " + properties[i].name, tail);
    }
    Node inside = e.sequence({json_.blanks(), e.choice(ways), json_.blanks()});
    if (may_be_empty) inside = ways.empty() ? json_.blanks() : e.choice({json_.blanks(), inside});
    return e.sequence({e.text("{"), inside, e.text("}")});
  }

  Node shared(std::string name, Node body) {
    const Rule rule = expressions_.declare(std::move(name));
    expressions_.define(rule, body);
    return expressions_.call(rule);
  }

  // The properties that any part names, in order, with what all parts say of them.
  Status read_properties(const SchemaView& view, const std::optional<NamePattern>& pattern,
                         std::vector<Property>& properties, Rest& rest) {
    std::map<std::string, size_t, std::less<>> known;
    const auto add = [&](const std::string& name) -> Property& {
      const auto [at, is_new] = known.try_emplace(name, properties.size());
      if (is_new) properties.push_back({.name = name});
      return properties[at->second];
    };
    for (const uint32_t object : views_.all(view, "properties")) {
      if (document_.value(object).kind != Kind::object) {
        return views_.error_at(object, "expected an object of schemas");
      }
      for (const JsonDocument::Member& member : document_.value(object).members) add(member.key);
    }
    for (const uint32_t list : views_.all(view, "required")) {
      if (document_.value(list).kind != Kind::array) {
        return views_.error_at(list, "expected a list of names");
      }
      for (const uint32_t name : document_.value(list).items) {
        if (document_.value(name).kind != Kind::string)
          return views_.error_at(name, "expected a name");
        add(document_.value(name).text).is_required = true;
      }
    }
    property_count_ += properties.size();
    if (int64_t(property_count_) > limits_.property_count) {
      return views_.error(ErrorCode::no_room, document_.value(view[0].schema).offset,
                          fmt::format("expected at most {} properties", limits_.property_count));
    }
    for (const SchemaPart& part : view) CAIRN_TRY(add_part(part, pattern, properties, rest));
    return Ok{};
  }

  Status add_part(const SchemaPart& part, const std::optional<NamePattern>& pattern,
                  std::vector<Property>& properties, Rest& rest) {
    const JsonDocument::Member* own = document_.find(part.schema, "properties");
    const JsonDocument::Member* others = document_.find(part.schema, "additionalProperties");
    std::map<std::string_view, uint32_t> own_schemas;
    if (own != nullptr) {
      for (const auto& member : document_.value(own->value).members) {
        own_schemas.emplace(member.key, member.value);
      }
    }
    for (Property& property : properties) {
      const auto named = own_schemas.find(property.name);
      Rest said;
      const bool is_patterned =
          pattern && pattern->part == part.schema && fits(*pattern, property.name);
      if (is_patterned) CAIRN_TRY(add_rest(pattern->member->value, said));
      if (named != own_schemas.end()) {
        property.view.push_back({.schema = named->second});
      } else if (!is_patterned && others != nullptr) {
        CAIRN_TRY(add_rest(others->value, said));
      }
      property.is_forbidden = property.is_forbidden || said.is_closed;
      property.view.insert(property.view.end(), said.view.begin(), said.view.end());
    }
    return others == nullptr ? Status(Ok{}) : add_rest(others->value, rest);
  }

  const JsonDocument& document_;
  const Limits& limits_;
  Expressions& expressions_;
  SchemaViews views_;
  JsonNodes json_;
  std::map<SchemaView, Rule> rules_;
  std::vector<std::pair<SchemaView, Rule>> waiting_;
  size_t property_count_ = 0;
};

}  // namespace

Result<Node> read_schema(std::string_view source, const Limits& limits, Expressions& expressions) {
  if (source.size() > limits.source_bytes) {
    return fail(ErrorCode::no_room, "schema: expected at most {} bytes, found {}",
                limits.source_bytes, source.size());
  }
  auto document = JsonDocument::read("schema", source, 2 * size_t(limits.schema_depth));
  if (!document) {
    Error error = std::move(document).error();
    if (error.code == ErrorCode::invalid_data) error.code = ErrorCode::invalid_argument;
    return error;
  }
  return Reader(*document, limits, expressions).read();
}

}  // namespace cairn::grammar
