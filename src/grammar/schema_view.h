// The conjunction of several schemas (a schema with its allOf and the targets of its $ref) as one
// list of parts that all hold. Finds keywords, follows references, refuses what is not supported.
// Knows no expressions. One thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/limits.h"
#include "grammar/number_ranges.h"
#include "json/document.h"

namespace cairn::grammar {

enum TypeBit : uint32_t {
  kTypeNull = 1,
  kTypeBoolean = 2,
  kTypeInteger = 4,
  kTypeNumber = 8,
  kTypeString = 16,
  kTypeArray = 32,
  kTypeObject = 64,
  kTypeAny = 127
};

struct SchemaPart {
  uint32_t schema;
  bool is_flat = false;  // Its $ref and allOf are separate parts already.
  bool any_of_is_done = false, one_of_is_done = false;  // Likewise, one of them.
  auto operator<=>(const SchemaPart&) const = default;
};
// Sorted, none twice: the same view is the same value.
using SchemaView = std::vector<SchemaPart>;

class SchemaViews {
 public:
  // REQUIRES: both outlive this.
  SchemaViews(const json::Document& document, const Limits& limits)
      : document_(document), limits_(limits) {}

  // What a reference points to.
  Result<uint32_t> resolve(uint32_t reference) const;
  // Where a schema that is only a reference leads to.
  Result<uint32_t> follow(uint32_t schema) const;
  // All parts with those that $ref and allOf add; nothing where one of them is false.
  Result<std::optional<SchemaView>> flatten(const SchemaView& view) const;
  // The part whose anyOf or oneOf is to be chosen from next, or nothing.
  const SchemaPart* find_choice(const SchemaView& view) const;
  // The views of its alternatives.
  Result<std::vector<SchemaView>> choices(const SchemaView& view, const SchemaPart& part) const;

  // The types that all parts allow; where none says anything, those that their keywords are about.
  Result<uint32_t> types(const SchemaView& view) const;
  // What the parts' `not` excludes: types and single values.
  struct Exclusion {
    uint32_t types = 0;
    std::vector<uint32_t> values;
  };
  Result<Exclusion> exclusion(const SchemaView& view) const;
  // The first part's keyword, or null.
  const json::Document::Member* find(const SchemaView& view, std::string_view keyword) const;
  // All parts' values of a keyword.
  std::vector<uint32_t> all(const SchemaView& view, std::string_view keyword) const;
  // A keyword but these, `type` and annotations that says something, or null.
  const json::Document::Member* find_other(const SchemaView& view,
                                           std::initializer_list<std::string_view> keywords) const;
  // The largest of all minima and the smallest of all maxima of a count.
  struct Counts {
    int32_t min = 0, max = INT32_MAX;
  };
  Result<Counts> counts(const SchemaView& view, std::string_view min_keyword,
                        std::string_view max_keyword) const;
  Result<Bounds> bounds(const SchemaView& view) const;
  // What is said of strings: the last pattern, how many there are, and the length.
  struct Texts {
    Counts length;
    std::string_view pattern;
    size_t pattern_count = 0, offset = 0;
    bool is_whole = false;  // A format: it describes all of the text.
    bool is_counted() const { return length.min > 0 || length.max != INT32_MAX; }
  };
  Result<Texts> texts(const SchemaView& view) const;
  // Whether enum or const lists what fits.
  bool is_listed(const SchemaView& view) const {
    return find(view, "enum") != nullptr || find(view, "const") != nullptr;
  }
  // The values of enum and const that all parts name and none excludes. REQUIRES: is_listed().
  Result<std::vector<uint32_t>> values(const SchemaView& view, uint32_t types,
                                       const Exclusion& excluded) const;

  uint32_t type_of(uint32_t value) const;
  Error error(ErrorCode code, size_t offset, std::string_view what) const;
  Error error_at(uint32_t value, std::string_view what) const {
    return error(ErrorCode::invalid_argument, document_.value(value).offset, what);
  }

 private:
  Status check_keywords(uint32_t schema) const;
  bool has_constraint(const SchemaPart& part) const;
  Status add_bound(const SchemaView& view, std::string_view keyword,
                   std::string_view strict_keyword, int direction, std::optional<Decimal>& bound,
                   bool& is_excluded) const;

  const json::Document& document_;
  const Limits& limits_;
};

}  // namespace cairn::grammar
