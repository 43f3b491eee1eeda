// Digits from the left: as long as they are those of a bound, the next one is bounded too; after
// the first that differs, all are free.
#include "grammar/number_ranges.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace cairn::grammar {

namespace {

constexpr size_t kRangeDigitsMax = 64;
constexpr size_t kOpenDigits = 16;  // Doubles hold as many.
constexpr size_t kMultiplesMax = 4096;
constexpr int64_t kFreeStepMax = 1000;

int compare_digits(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

std::string successor(std::string digits) {
  for (size_t at = digits.size(); at-- > 0;) {
    if (digits[at] != '9') {
      ++digits[at];
      return digits;
    }
    digits[at] = '0';
  }
  return "1" + digits;
}

// REQUIRES: not "0".
std::string predecessor(std::string digits) {
  for (size_t at = digits.size(); at-- > 0;) {
    if (digits[at] != '0') {
      --digits[at];
      break;
    }
    digits[at] = '9';
  }
  if (digits.size() > 1 && digits[0] == '0') digits.erase(0, 1);
  return digits;
}

Node digit(char first, char last, Expressions& expressions) {
  return expressions.characters({{char32_t(first), char32_t(last)}});
}

Node digits(int32_t min, int32_t max, Expressions& expressions) {
  return expressions.repeat(digit('0', '9', expressions), min, max);
}

// Strings as long as `bound`, not below it or not above it.
Node beyond(std::string_view bound, bool is_above, Expressions& expressions) {
  Node rest = expressions.empty();
  for (size_t at = bound.size(); at-- > 0;) {
    const char c = bound[at];
    std::vector<Node> ways = {expressions.sequence({digit(c, c, expressions), rest})};
    if (c != (is_above ? '9' : '0')) {
      const Node free =
          is_above ? digit(char(c + 1), '9', expressions) : digit('0', char(c - 1), expressions);
      const auto count = int32_t(bound.size() - at - 1);
      ways.push_back(expressions.sequence({free, digits(count, count, expressions)}));
    }
    rest = expressions.choice(ways);
  }
  return rest;
}

Node of_one_length(std::string_view low, std::string_view high, Expressions& expressions) {
  size_t equal = 0;
  while (equal < low.size() && low[equal] == high[equal]) ++equal;
  const Node prefix = expressions.text(low.substr(0, equal));
  if (equal == low.size()) return prefix;
  const char first = low[equal], last = high[equal];
  const auto count = int32_t(low.size() - equal - 1);
  std::vector<Node> ways = {
      expressions.sequence(
          {digit(first, first, expressions), beyond(low.substr(equal + 1), true, expressions)}),
      expressions.sequence(
          {digit(last, last, expressions), beyond(high.substr(equal + 1), false, expressions)})};
  if (first + 1 < last) {
    ways.push_back(expressions.sequence(
        {digit(char(first + 1), char(last - 1), expressions), digits(count, count, expressions)}));
  }
  return expressions.sequence({prefix, expressions.choice(ways)});
}

// Whole numbers, neither negative nor with superfluous zeros; `high` empty: as many digits as fit.
std::optional<Node> naturals(const std::string& low, std::string high, Expressions& expressions) {
  if (high.empty()) high.assign(std::max(kOpenDigits, low.size()), '9');
  if (compare_digits(low, high) > 0) return std::nullopt;
  std::vector<Node> ways;
  for (size_t count = low.size(); count <= high.size(); ++count) {
    const std::string first = count == low.size() ? low : "1" + std::string(count - 1, '0');
    const std::string last = count == high.size() ? high : std::string(count, '9');
    ways.push_back(of_one_length(first, last, expressions));
  }
  return expressions.choice(ways);
}

// The digits behind the point of numbers whose whole part is that of one or both bounds.
struct Fractions {
  Expressions& expressions;
  std::optional<std::string> low, high;
  bool excludes_low = false, excludes_high = false;

  // Whether a number may end where all digits so far are those of the bounds that are named.
  bool can_end(size_t at, bool at_low, bool at_high) const {
    if (at_low && (at < low->size() || excludes_low)) return false;
    return !at_high || at < high->size() || !excludes_high;
  }

  std::optional<Node> rest(size_t at, bool at_low, bool at_high) {
    if (at_low && at >= low->size() && !excludes_low) at_low = false;
    if (!at_low && !at_high) return digits(0, kOpenDigits - 1, expressions);
    std::vector<Node> ways;
    if (can_end(at, at_low, at_high)) ways.push_back(expressions.empty());
    if (const auto more = some(at, at_low, at_high)) ways.push_back(*more);
    if (ways.empty()) return std::nullopt;
    return expressions.choice(ways);
  }

  // At least one digit.
  std::optional<Node> some(size_t at, bool at_low, bool at_high) {
    if (at_low && at >= low->size() && !excludes_low) at_low = false;
    if (at_high && at >= high->size() && !at_low && !excludes_high) {
      return expressions.repeat(digit('0', '0', expressions), 1, kOpenDigits);
    }
    if (at >= kRangeDigitsMax || (at_high && at >= high->size())) return std::nullopt;
    const char first = at_low && at < low->size() ? (*low)[at] : '0';
    const char last = at_high ? (*high)[at] : '9';
    std::vector<Node> ways;
    for (char c = first; c <= last; ++c) {
      // Runs of digits inside have the same rest.
      const bool is_low = at_low && c == first, is_high = at_high && c == last;
      char until = c;
      if (!is_low && !is_high) until = at_high ? char(last - 1) : last;
      if (const auto behind = rest(at + 1, is_low, is_high)) {
        ways.push_back(expressions.sequence({digit(c, until, expressions), *behind}));
      }
      c = until;
    }
    if (ways.empty()) return std::nullopt;
    return expressions.choice(ways);
  }

  // With the point, or nothing at all.
  std::optional<Node> node() {
    const bool has_low = low.has_value(), has_high = high.has_value();
    std::vector<Node> ways;
    const bool low_counts = has_low && !(low->empty() && !excludes_low);
    if (can_end(0, low_counts, has_high)) ways.push_back(expressions.empty());
    if (const auto more = some(0, low_counts, has_high)) {
      ways.push_back(expressions.sequence({expressions.text("."), *more}));
    }
    if (ways.empty()) return std::nullopt;
    return expressions.choice(ways);
  }
};

// Numbers that are not negative; `max` absent: no bound.
std::optional<Node> magnitudes(const Decimal& min, bool excludes_min,
                               const std::optional<Decimal>& max, bool excludes_max,
                               Expressions& expressions) {
  std::vector<Node> ways;
  const auto add = [&](const std::string& whole, Fractions fractions) {
    if (const auto node = fractions.node()) {
      ways.push_back(expressions.sequence({expressions.text(whole), *node}));
    }
  };
  if (max && compare(min, *max) > 0) return std::nullopt;
  if (max && max->whole == min.whole) {
    add(min.whole, {expressions, min.fraction, max->fraction, excludes_min, excludes_max});
  } else {
    add(min.whole, {expressions, min.fraction, std::nullopt, excludes_min, false});
    if (max) add(max->whole, {expressions, std::nullopt, max->fraction, false, excludes_max});
    const std::string last = max ? predecessor(max->whole) : "";
    if (const auto between = naturals(successor(min.whole), last, expressions)) {
      const Node fraction = expressions.sequence(
          {expressions.text("."), digits(1, int32_t(kOpenDigits), expressions)});
      ways.push_back(expressions.sequence({*between, expressions.optional(fraction)}));
    }
  }
  if (ways.empty()) return std::nullopt;
  return expressions.choice(ways);
}

Decimal negated(Decimal value) {
  value.is_negative = !value.is_negative && (value.whole != "0" || !value.fraction.empty());
  return value;
}

// The first integer inside a bound.
std::string whole_inside(const Decimal& bound, bool is_excluded, bool rounds_up) {
  const bool is_moved = rounds_up && (is_excluded || !bound.is_integer());
  if (is_moved) return successor(bound.whole);
  if (rounds_up || !is_excluded || !bound.is_integer()) return bound.whole;
  return bound.whole == "0" ? "" : predecessor(bound.whole);
}

struct WholeBounds {
  // Magnitudes of the negative integers and of the others; "-": none of them; "": open.
  std::string negative_low = "1", negative_high, low = "0", high;
};

WholeBounds whole_bounds(const Bounds& bounds) {
  WholeBounds whole;
  if (bounds.min && !bounds.min->is_negative) {
    whole.low = whole_inside(*bounds.min, bounds.excludes_min, true);
    whole.negative_high = "-";
  } else if (bounds.min) {
    whole.negative_high = whole_inside(*bounds.min, bounds.excludes_min, false);
    if (whole.negative_high.empty() || whole.negative_high == "0") whole.negative_high = "-";
  }
  if (bounds.max && bounds.max->is_negative) {
    whole.negative_low = whole_inside(*bounds.max, bounds.excludes_max, true);
    if (whole.negative_low == "0") whole.negative_low = "1";
    whole.high = "-";
  } else if (bounds.max) {
    whole.high = whole_inside(*bounds.max, bounds.excludes_max, false);
    if (whole.high.empty()) whole.high = "-";
  }
  return whole;
}

std::optional<int64_t> to_integer(std::string_view text) {
  int64_t value = 0;
  const auto [behind, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (trouble != std::errc() || behind != text.data() + text.size()) return std::nullopt;
  return value;
}

// A step as an integer of so many decimals: 0.25 is 25 of 2.
struct Step {
  int64_t size;
  size_t decimals;
};

// Remainders as rules: behind each digit the next; the end is where nothing is left, digits that
// are not written being 0.
Node any_multiples(Step step, bool has_fractions, Expressions& expressions) {
  std::vector<int64_t> scales = {1};  // What a digit counts, from the last decimal to the units.
  for (size_t i = 0; i < step.decimals; ++i) scales.push_back(scales.back() * 10 % step.size);
  const size_t place_count = has_fractions ? step.decimals + 1 : 1;
  std::vector<Rule> rules;  // [decimals read, remainder]
  for (size_t i = 0; i < place_count * size_t(step.size); ++i) {
    rules.push_back(expressions.declare("multiples"));
  }
  const auto behind = [&](size_t place, int64_t rest, int64_t d) {
    const auto next = place * size_t(step.size) + size_t((rest * 10 + d) % step.size);
    const char c = char('0' + d);
    return expressions.sequence({digit(c, c, expressions), expressions.call(rules[next])});
  };
  const auto digits_behind = [&](size_t place, int64_t rest, int64_t first) {
    std::vector<Node> ways;
    for (int64_t d = first; d < 10; ++d) ways.push_back(behind(place, rest, d));
    return expressions.choice(ways);
  };
  const auto fraction_behind = [&](int64_t rest) {
    return expressions.sequence({expressions.text("."), digits_behind(1, rest, 0)});
  };
  for (size_t place = 0; place < place_count; ++place) {
    for (int64_t rest = 0; rest < step.size; ++rest) {
      std::vector<Node> ways;
      if (rest * scales[step.decimals - place] % step.size == 0) {
        ways.push_back(expressions.empty());
      }
      if (place == 0) ways.push_back(digits_behind(0, rest, 0));
      if (place == 0 && place_count > 1) ways.push_back(fraction_behind(rest));
      if (place > 0 && place + 1 < place_count) ways.push_back(digits_behind(place + 1, rest, 0));
      expressions.define(rules[place * size_t(step.size) + size_t(rest)], expressions.choice(ways));
    }
  }
  std::vector<Node> ways = {digits_behind(0, 0, 1)};
  if (place_count > 1) {
    ways.push_back(expressions.sequence({expressions.text("0"), fraction_behind(0)}));
  }
  return expressions.choice(
      {expressions.text("0"), expressions.sequence({expressions.optional(expressions.text("-")),
                                                    expressions.choice(ways)})});
}

// The number times a power of ten.
Decimal shifted(Decimal value, size_t places) {
  std::string moved = value.fraction.substr(0, places);
  moved.resize(places, '0');
  value.whole += moved;
  value.fraction.erase(0, std::min(places, value.fraction.size()));
  value.whole.erase(0, std::min(value.whole.find_first_not_of('0'), value.whole.size() - 1));
  return value;
}

// An integer of so many decimals, without superfluous ones.
std::string with_point(int64_t value, size_t decimals) {
  std::string text = std::to_string(value);
  if (decimals == 0) return text;
  if (text.size() <= decimals) text.insert(0, decimals + 1 - text.size(), '0');
  text.insert(text.size() - decimals, ".");
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

Result<Decimal> read_decimal(std::string_view text) {
  Decimal value;
  std::string_view rest = text;
  if (rest.starts_with('-')) {
    value.is_negative = true;
    rest.remove_prefix(1);
  }
  const size_t exponent_at = rest.find_first_of("eE");
  int64_t exponent = 0;
  if (exponent_at != std::string_view::npos) {
    std::string_view spelled = rest.substr(exponent_at + 1);
    if (spelled.starts_with('+')) spelled.remove_prefix(1);
    exponent = to_integer(spelled).value_or(1 << 20);
    rest = rest.substr(0, exponent_at);
  }
  const size_t point = rest.find('.');
  std::string all(rest.substr(0, point));
  auto whole_count = int64_t(all.size());
  if (point != std::string_view::npos) all += rest.substr(point + 1);
  const size_t zeros = std::min(all.find_first_not_of('0'), all.size());
  all.erase(0, zeros);
  whole_count += exponent - int64_t(zeros);
  while (!all.empty() && all.back() == '0') all.pop_back();
  if (all.empty()) return Decimal{};
  const auto digit_count = int64_t(all.size());
  constexpr auto kMax = int64_t(kRangeDigitsMax);
  if (whole_count > kMax || digit_count - whole_count > kMax || digit_count > 2 * kMax) {
    return fail(ErrorCode::unsupported, "expected at most {} digits on a side of the point",
                kRangeDigitsMax);
  }
  if (whole_count < 0) all.insert(0, size_t(-whole_count), '0');
  whole_count = std::max<int64_t>(whole_count, 0);
  if (whole_count > int64_t(all.size())) all.append(size_t(whole_count) - all.size(), '0');
  if (whole_count > 0) value.whole = all.substr(0, size_t(whole_count));
  value.fraction = all.substr(size_t(whole_count));
  return value;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.is_negative != b.is_negative) return a.is_negative ? -1 : 1;
  int order = compare_digits(a.whole, b.whole);
  if (order == 0) order = a.fraction.compare(b.fraction);
  return a.is_negative ? -order : order;
}

std::optional<Node> integers_between(const Bounds& bounds, Expressions& expressions) {
  const WholeBounds whole = whole_bounds(bounds);
  std::vector<Node> ways;
  if (whole.high != "-") {
    if (const auto node = naturals(whole.low, whole.high, expressions)) ways.push_back(*node);
  }
  if (whole.negative_high != "-") {
    if (const auto node = naturals(whole.negative_low, whole.negative_high, expressions)) {
      ways.push_back(expressions.sequence({expressions.text("-"), *node}));
    }
  }
  if (ways.empty()) return std::nullopt;
  return expressions.choice(ways);
}

Result<Node> multiples_between(const Bounds& bounds, const Decimal& decimal, bool has_fractions,
                               Expressions& expressions) {
  const std::optional<int64_t> size = to_integer(decimal.whole + decimal.fraction);
  if (decimal.is_negative || !size || *size < 1) {
    return fail(ErrorCode::unsupported, "expected \"multipleOf\" above 0, of less than 19 digits");
  }
  const Step step{.size = *size, .decimals = decimal.fraction.size()};
  if (!bounds.min && !bounds.max) {
    if (step.size > kFreeStepMax / int64_t(step.decimals + 1)) {
      return fail(ErrorCode::unsupported,
                  "expected a lower and an upper bound beside this \"multipleOf\", found none: "
                  "without them it is at most {} units of its last decimal",
                  kFreeStepMax / int64_t(step.decimals + 1));
    }
    return any_multiples(step, has_fractions, expressions);
  }
  if (!bounds.min || !bounds.max) {
    return fail(ErrorCode::unsupported,
                "expected a lower and an upper bound beside \"multipleOf\", or neither, found one");
  }
  Bounds moved = bounds;
  moved.min = shifted(*bounds.min, step.decimals);
  moved.max = shifted(*bounds.max, step.decimals);
  const WholeBounds whole = whole_bounds(moved);
  std::vector<Node> ways;
  size_t seen_count = 0;
  const auto add = [&](const std::string& low, const std::string& high, std::string_view sign) {
    const auto first = to_integer(low), last = to_integer(high);
    if (high == "-") return true;
    if (!first || !last || *last > INT64_MAX - step.size) return false;
    if (*first > *last) return true;
    const int64_t begin = (*first + step.size - 1) / step.size * step.size;
    for (int64_t value = begin; value <= *last; value += step.size) {
      if (++seen_count > kMultiplesMax) return false;
      const std::string text = with_point(value, step.decimals);
      if (!has_fractions && text.find('.') != std::string::npos) continue;
      ways.push_back(expressions.text(std::string(sign) + text));
    }
    return true;
  };
  if (!add(whole.low, whole.high, "") || !add(whole.negative_low, whole.negative_high, "-")) {
    return fail(ErrorCode::unsupported, "expected at most {} multiples between the bounds",
                kMultiplesMax);
  }
  if (ways.empty()) return fail(ErrorCode::not_found, "expected a multiple between the bounds");
  return expressions.choice(ways);
}

std::optional<Node> numbers_between(const Bounds& bounds, Expressions& expressions) {
  std::vector<Node> ways;
  if (!bounds.max || !bounds.max->is_negative) {
    const bool has_min = bounds.min && !bounds.min->is_negative;
    const auto node = magnitudes(has_min ? *bounds.min : Decimal{}, has_min && bounds.excludes_min,
                                 bounds.max, bounds.excludes_max, expressions);
    if (node) ways.push_back(*node);
  }
  if (!bounds.min || bounds.min->is_negative) {
    const bool has_max = bounds.max && bounds.max->is_negative;
    std::optional<Decimal> far;
    if (bounds.min) far = negated(*bounds.min);
    const auto node =
        magnitudes(has_max ? negated(*bounds.max) : Decimal{}, !has_max || bounds.excludes_max, far,
                   bounds.excludes_min, expressions);
    if (node) ways.push_back(expressions.sequence({expressions.text("-"), *node}));
  }
  if (ways.empty()) return std::nullopt;
  return expressions.choice(ways);
}

}  // namespace cairn::grammar
