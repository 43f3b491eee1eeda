// Decimal numbers between bounds, as expressions over digits: exact, however long the numbers are.
// Knows no schemas. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "grammar/expression.h"

namespace cairn::grammar {

// A decimal number: digits without superfluous zeros, "0" and "" for nothing.
struct Decimal {
  bool is_negative = false;
  std::string whole = "0";
  std::string fraction;
  bool is_integer() const { return fraction.empty(); }
};

// Of a JSON number. Errors: unsupported where it has more than 64 digits before or behind the
// point.
Result<Decimal> read_decimal(std::string_view text);
// Negative, zero or positive, as a - b is.
int compare(const Decimal& a, const Decimal& b);

struct Bounds {
  std::optional<Decimal> min, max;
  bool excludes_min = false, excludes_max = false;
};

// All integers within; where a side is open, of at most 16 digits or as many as the other side has.
// Nothing where there is none.
std::optional<Node> integers_between(const Bounds& bounds, Expressions& expressions);
// Multiples within, of any step above 0; integers only, or with the step's decimals. Errors:
// unsupported where these are more than 4,096 texts, or without bounds the step is too large or too
// fine; not_found where there is none.
Result<Node> multiples_between(const Bounds& bounds, const Decimal& step, bool has_fractions,
                               Expressions& expressions);
// All numbers within, with at most 16 decimals and without exponent.
std::optional<Node> numbers_between(const Bounds& bounds, Expressions& expressions);

}  // namespace cairn::grammar
