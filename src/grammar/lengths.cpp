// Where only one part of a sequence can be of several lengths it takes up what is wanted. Else the
// lengths of the first are gone through one by one, and what may follow each is a rule of its own,
// made once: as much writing as the square of the length.
#include "grammar/lengths.h"

#include <algorithm>

namespace cairn::grammar {

namespace {

constexpr size_t kWaysMax = 1 << 14;
constexpr int64_t kSplitLengthMax = 256;
constexpr size_t kFlexiblePartsMax = 64;

bool is_open(int64_t length) {
  return length >= kUnbounded;
}

int64_t times(int64_t length, int64_t count) {
  if (length == 0 || count == 0) return 0;
  return is_open(length) || is_open(count) ? kUnbounded
                                           : std::min<int64_t>(length * count, kUnbounded);
}

int64_t plus(int64_t a, int64_t b) {
  return std::min<int64_t>(a + b, kUnbounded);
}

// `length` less what stands beside it.
int64_t less(int64_t length, int64_t beside) {
  if (is_open(length)) return kUnbounded;
  return is_open(beside) ? -1 : length - beside;
}

bool is_empty(LengthRange range) {
  return range.max < range.min;
}

}  // namespace

Lengths::Lengths(Expressions& expressions, const std::vector<Node>& units)
    : expressions_(expressions) {
  for (const Node unit : units) ranges_[unit] = {1, 1};
}

LengthRange Lengths::measure(const Expressions::Item& item) {
  using Kind = Expressions::Kind;
  LengthRange range{0, 0};
  switch (item.kind) {
    case Kind::sequence:
      for (const Node part : expressions_.children_of(item)) {
        const LengthRange one = range_of(part);
        range = {plus(range.min, one.min), plus(range.max, one.max)};
      }
      return range;
    case Kind::choice:
      range = {kUnbounded, 0};
      for (const Node part : expressions_.children_of(item)) {
        const LengthRange one = range_of(part);
        range = {std::min(range.min, one.min), std::max(range.max, one.max)};
      }
      return range;
    case Kind::repeat: {
      const LengthRange one = range_of(expressions_.children_of(item)[0]);
      return {times(one.min, item.min), times(one.max, item.max)};
    }
    case Kind::empty:
    case Kind::text:
    case Kind::characters:
    case Kind::call:
    case Kind::token:
      break;  // Without units nothing has a length.
  }
  return range;
}

LengthRange Lengths::range_of(Node node) {
  if (const auto known = ranges_.find(node); known != ranges_.end()) return known->second;
  const Expressions::Item item = expressions_.item(node);
  const LengthRange range = measure(item);
  ranges_[node] = range;
  return range;
}

Result<Node> Lengths::only(Node node, LengthRange wanted) {
  const std::optional<Node> fitting = fit(node, wanted);
  if (fitting) return *fitting;
  return fail(ErrorCode::unsupported,
              "this pattern has too many ways to be of a length within these bounds");
}

std::optional<Node> Lengths::fit(Node node, LengthRange wanted) {
  const LengthRange range = range_of(node);
  if (is_empty(wanted) || range.max < wanted.min || range.min > wanted.max) return nothing();
  if (wanted.min <= range.min && range.max <= wanted.max) return node;
  const Expressions::Item item = expressions_.item(node);
  if (item.kind == Expressions::Kind::choice) {
    std::vector<Node> ways;
    const auto children = expressions_.children_of(item);
    for (const Node child : std::vector<Node>(children.begin(), children.end())) {
      const std::optional<Node> way = fit(child, wanted);
      if (!way) return std::nullopt;
      ways.push_back(*way);
    }
    return expressions_.choice(ways);
  }
  if (item.kind == Expressions::Kind::sequence) return fit_parts(node, 0, wanted);
  if (item.kind == Expressions::Kind::repeat) {
    return fit_repeat(expressions_.children_of(item)[0], item.min, item.max, wanted);
  }
  return std::nullopt;
}

// The parts of a sequence from `first` on.
std::optional<Node> Lengths::fit_parts(Node sequence, size_t first, LengthRange wanted) {
  const Expressions::Item item = expressions_.item(sequence);
  const auto children = expressions_.children_of(item).subspan(first);
  std::vector<Node> parts(children.begin(), children.end());
  std::vector<size_t> flexible;
  int64_t fixed = 0;  // The length of all others, or of those before the first flexible one.
  int64_t fixed_before = 0;
  LengthRange behind{0, 0};
  for (size_t i = 0; i < parts.size(); ++i) {
    const LengthRange one = range_of(parts[i]);
    if (!flexible.empty()) behind = {plus(behind.min, one.min), plus(behind.max, one.max)};
    if (one.min != one.max) flexible.push_back(i);
    if (one.min == one.max) fixed = plus(fixed, one.min);
    if (flexible.empty()) fixed_before = fixed;
  }
  if (flexible.size() > kFlexiblePartsMax) return std::nullopt;
  const auto beside = [&](int64_t length) {
    return LengthRange{std::max<int64_t>(less(wanted.min, length), 0), less(wanted.max, length)};
  };
  if (flexible.empty()) {
    return wanted.min <= fixed && fixed <= wanted.max ? expressions_.sequence(parts) : nothing();
  }
  const size_t at = flexible[0];
  if (flexible.size() == 1) {
    const std::optional<Node> part = fit(parts[at], beside(fixed));
    if (!part) return part;
    parts[at] = *part;
    return expressions_.sequence(parts);
  }
  const auto key =
      std::tuple(uint32_t(sequence), int64_t(first), int64_t(-1), wanted.min, wanted.max);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const std::optional<Node> rest = split(
      range_of(parts[at]), behind, beside(fixed_before),
      [&](LengthRange share) { return fit(parts[at], share); },
      [&](LengthRange share) { return fit_parts(sequence, first + at + 1, share); });
  if (!rest) return rest;
  parts.resize(at);
  parts.push_back(*rest);
  return remember(key, expressions_.sequence(parts));
}

std::optional<Node> Lengths::fit_repeat(Node body, int32_t min, int32_t max, LengthRange wanted) {
  if (is_empty(wanted)) return nothing();
  const LengthRange one = range_of(body);
  if (wanted.min <= times(one.min, min) && times(one.max, max) <= wanted.max) {
    return expressions_.repeat(body, min, max);
  }
  if (one.min == one.max && one.min > 0) {
    const int64_t low = std::max<int64_t>(min, (wanted.min + one.min - 1) / one.min);
    const int64_t high = is_open(wanted.max) ? max : std::min<int64_t>(max, wanted.max / one.min);
    if (high < low) return nothing();
    return expressions_.repeat(body, int32_t(low), int32_t(high));
  }
  if (one.min == 0) return std::nullopt;  // Rounds without a character have no end.
  const bool may_be_empty = min == 0 && wanted.min <= 0;
  if (max == 0 || wanted.max < one.min) return may_be_empty ? expressions_.empty() : nothing();
  const auto key = std::tuple(uint32_t(body), int64_t(min), int64_t(max), wanted.min, wanted.max);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const int32_t fewer = std::max(min - 1, 0), most = max == kUnbounded ? max : max - 1;
  const std::optional<Node> rounds = split(
      one, {times(one.min, fewer), times(one.max, most)}, wanted,
      [&](LengthRange share) { return fit(body, share); },
      [&](LengthRange share) { return fit_repeat(body, fewer, most, share); });
  if (!rounds) return std::nullopt;
  return remember(key,
                  may_be_empty ? expressions_.choice({expressions_.empty(), *rounds}) : rounds);
}

template <class Left, class Right>
std::optional<Node> Lengths::split(LengthRange left, LengthRange right, LengthRange wanted,
                                   const Left& fit_left, const Right& fit_right) {
  std::vector<Node> ways;
  const auto add = [&](LengthRange share, LengthRange other) {
    const std::optional<Node> a = fit_left(share);
    const std::optional<Node> b = a ? fit_right(other) : std::nullopt;
    if (!b || ++way_count_ > kWaysMax) return false;
    ways.push_back(expressions_.sequence({*a, *b}));
    return true;
  };
  // Also the bound of how deep this goes.
  if ((is_open(wanted.max) ? wanted.min : wanted.max) > kSplitLengthMax) return std::nullopt;
  const bool has_max = !is_open(wanted.max);
  // From here on the first alone is long enough, if nothing limits both together.
  const int64_t enough = std::max(left.min, has_max ? wanted.max + 1 : wanted.min - right.min);
  const int64_t last = std::min({left.max, enough - 1, less(wanted.max, right.min)});
  for (int64_t length = left.min; length <= last; ++length) {
    const LengthRange rest{std::max<int64_t>(wanted.min - length, 0), less(wanted.max, length)};
    if (!add({length, length}, rest)) return std::nullopt;
  }
  if (!has_max && left.max >= enough && !add({enough, left.max}, right)) return std::nullopt;
  return expressions_.choice(ways);
}

std::optional<Node> Lengths::remember(std::tuple<uint32_t, int64_t, int64_t, int64_t, int64_t> key,
                                      std::optional<Node> node) {
  if (!node) return node;
  const Rule rule = expressions_.declare("a part of a pattern of some length");
  expressions_.define(rule, *node);
  known_.emplace(key, expressions_.call(rule));
  return known_.at(key);
}

}  // namespace cairn::grammar
