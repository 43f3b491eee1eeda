// Every view of the schema becomes a rule, made once and from a list of those that wait: schemas
// that refer to themselves are rules that call themselves, and depth costs no recursion.
#include "grammar/schema.h"

#include <algorithm>
#include <map>
#include <set>

#include "grammar/json_nodes.h"
#include "grammar/key_set.h"
#include "grammar/number_ranges.h"
#include "grammar/regex.h"
#include "grammar/schema_contents.h"
#include "grammar/schema_view.h"
#include "json/document.h"
#include "unicode/place.h"

namespace cairn::grammar {

namespace {

using Kind = json::Document::Kind;

// Views may be many where choices are nested in allOf.
constexpr size_t kViewsMax = 1 << 15;
constexpr size_t kUniqueRulesMax = 4096;
constexpr std::string_view kUniqueItemsNeed =
    "\"uniqueItems\" can be followed where an enum or const names the items (texts, whole numbers, "
    "true, false, null), or where there is at most one";

class Reader {
 public:
  Reader(const json::Document& document, const Limits& limits, Expressions& expressions)
      : document_(document),
        limits_(limits),
        expressions_(expressions),
        views_(document, limits),
        contents_(document, views_, limits),
        json_(expressions) {}

  // `types`: of which of its types a text may be; all of them unless it has no choices.
  Result<Node> read(uint32_t schema, uint32_t types) {
    const SchemaView whole = {{.schema = schema}};
    CAIRN_TRY(const Node root, types == kTypeAny ? node_of(whole) : read_view(whole, types));
    while (!waiting_.empty()) {
      const auto [view, rule] = waiting_.back();
      waiting_.pop_back();
      CAIRN_TRY(const Node body, read_view(view, kTypeAny));
      expressions_.define(rule, body);
    }
    return root;
  }

 private:
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
    const unicode::Place place =
        unicode::place_of(document_.source(), document_.value(view[0].schema).offset);
    const Rule rule =
        expressions_.declare(fmt::format("schema at line {}, column {}", place.line, place.column));
    waiting_.emplace_back(view, rule);
    rules_.emplace(std::move(view), rule);
    return expressions_.call(rule);
  }

  Result<Node> read_view(const SchemaView& view, uint32_t wanted) {
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
    types &= wanted & ~excluded.types;
    if (views_.is_listed(*flat)) {
      CAIRN_TRY(const std::vector<uint32_t> values, views_.values(*flat, types, excluded));
      std::vector<Node> ways;
      for (const uint32_t value : values) {
        ways.push_back(expressions_.text(document_.compact(value)));
      }
      return expressions_.choice(ways);
    }
    return read_types(*flat, types, excluded);
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
      if (const json::Document::Member* other = views_.find(view, keyword)) {
        return views_.error(
            ErrorCode::unsupported, other->offset,
            unicode::quote(keyword) + " cannot be followed beside \"not\" with texts");
      }
    }
    return keys_except(names, expressions_);
  }

  Result<Node> read_string(const SchemaView& view) {
    CAIRN_TRY(const SchemaViews::Texts texts, views_.texts(view));
    if (texts.pattern_count > 1) {
      return views_.error(ErrorCode::unsupported, texts.offset,
                          "only one pattern or format can be followed at once");
    }
    const SchemaViews::Counts counts = texts.length;
    if (counts.max < counts.min) return nothing();
    if (texts.pattern_count == 0 && !texts.is_counted()) return json_.string();
    Node content = expressions_.empty();
    if (texts.pattern_count == 1) {
      const RegexStyle style{
          .is_search = !texts.is_whole, .is_json = true, .length = {counts.min, counts.max}};
      Result<Node> regex = read_regex(texts.pattern, style, limits_, expressions_);
      if (!regex) return views_.error(regex.error().code, texts.offset, regex.error().message);
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
                            "\"multipleOf\" can be followed where it stands once, with a number");
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

  bool is_unique(const SchemaView& view) const {
    const std::vector<uint32_t> said = views_.all(view, "uniqueItems");
    return std::any_of(said.begin(), said.end(),
                       [&](uint32_t value) { return document_.is_true(value); });
  }

  // Lists without equal items, where the items are values with names: some of them, in their order.
  Result<Node> read_unique_items(const SchemaView& view, const SchemaRest& rest,
                                 SchemaViews::Counts counts) {
    const size_t offset = views_.find(view, "uniqueItems")->offset;
    CAIRN_TRY(const std::optional<SchemaView> flat, views_.flatten(rest.view));
    const bool is_named = flat && views_.find_choice(*flat) == nullptr && views_.is_listed(*flat);
    if (!is_named) return views_.error(ErrorCode::unsupported, offset, kUniqueItemsNeed);
    CAIRN_TRY(const SchemaViews::Exclusion excluded, views_.exclusion(*flat));
    CAIRN_TRY(const uint32_t types, views_.types(*flat));
    CAIRN_TRY(const std::vector<uint32_t> values,
              views_.values(*flat, types & ~excluded.types, excluded));
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
    CAIRN_TRY(const SchemaItems items, contents_.items(view));
    const auto& [prefix, rest] = items;
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

  // Members whose names fit the pattern, none of them a property's.
  Result<std::optional<Node>> pattern_member(const SchemaView& view, const NamePattern& pattern,
                                             std::span<const std::string> names) {
    for (const std::string& name : names) {
      if (pattern.fits(name)) return std::optional<Node>();
    }
    for (const SchemaPart& part : view) {
      const bool is_own = part.schema == pattern.part;
      if (!is_own && document_.find(part.schema, "additionalProperties") != nullptr) {
        return std::optional<Node>();
      }
    }
    SchemaRest said;
    contents_.add_rest(pattern.member->value, said);
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

  Result<Node> read_object(const SchemaView& view) {
    CAIRN_TRY(SchemaMembers members, contents_.members(view));
    auto& [properties, pattern, rest] = members;
    // Beside a pattern, other names would have to be none that fit it.
    const bool is_open = !pattern && !rest.is_closed && (rest.is_open || properties.empty());
    CAIRN_TRY(const auto counts, views_.counts(view, "minProperties", "maxProperties"));
    std::vector<std::string> names;
    std::vector<SchemaProperty> allowed;
    for (SchemaProperty& property : properties) {
      names.push_back(property.name);
      if (property.is_forbidden && property.is_required) return nothing();
      if (!property.is_forbidden) allowed.push_back(std::move(property));
    }
    const auto required_count = std::count_if(
        allowed.begin(), allowed.end(), [](const SchemaProperty& p) { return p.is_required; });
    const bool is_plain = allowed.empty() && is_open;
    // Names may come twice where any are allowed, so that more than one cannot be counted on.
    const bool min_holds = counts.min <= required_count || (is_plain && counts.min <= 1);
    const bool max_holds =
        is_plain || (!is_open && !pattern && counts.max >= int64_t(allowed.size()));
    if (!min_holds || (!max_holds && counts.max != INT32_MAX)) {
      const json::Document::Member* keyword =
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
  Result<Node> build_object(const std::vector<SchemaProperty>& properties,
                            std::optional<Node> other) {
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
                                           [](const SchemaProperty& p) { return p.is_required; });
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

  const json::Document& document_;
  const Limits& limits_;
  Expressions& expressions_;
  SchemaViews views_;
  SchemaContents contents_;
  JsonNodes json_;
  std::map<SchemaView, Rule> rules_;
  std::vector<std::pair<SchemaView, Rule>> waiting_;
};

}  // namespace

Result<json::Document> read_schema_text(std::string_view source, const Limits& limits) {
  auto document = json::Document::read("schema", source,
                                       {.bytes = limits.source_bytes,
                                        .depth = 2 * size_t(limits.schema_depth),
                                        .values = SIZE_MAX,
                                        .members = SIZE_MAX});
  if (document || document.error().code != ErrorCode::invalid_data) return document;
  return Error{ErrorCode::invalid_argument, document.error().message};
}

Result<Node> read_schema(const json::Document& document, uint32_t schema, uint32_t types,
                         const Limits& limits, Expressions& expressions) {
  return Reader(document, limits, expressions).read(schema, types);
}

}  // namespace cairn::grammar
