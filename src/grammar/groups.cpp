// The stack, and the small texts that both syntaxes share.
#include "grammar/groups.h"

#include <algorithm>

namespace cairn::grammar {

void Groups::alternate() {
  Level& level = levels_.back();
  level.alternatives.push_back(expressions_.sequence(level.sequence));
  level.sequence.clear();
  ++alternative_count_;
}

Node Groups::close() {
  alternate();
  const Level level = std::move(levels_.back());
  levels_.pop_back();
  return expressions_.choice(level.alternatives);
}

namespace {

constexpr int64_t kTooMany = int64_t(1) << 40;

// The digits at `at`, which moves behind them; negative where there are none.
int64_t read_digits(std::string_view text, size_t& at) {
  int64_t value = -1;
  for (; at < text.size() && '0' <= text[at] && text[at] <= '9'; ++at) {
    value = std::min(kTooMany, std::max<int64_t>(value, 0) * 10 + (text[at] - '0'));
  }
  return value;
}

}  // namespace

CountText read_count(std::string_view text, bool blanks_allowed) {
  size_t at = 0;
  const auto skip = [&] {
    while (blanks_allowed && at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  };
  CountText count;
  skip();
  count.min = read_digits(text, at);
  if (count.min < 0) return {};
  skip();
  count.max = count.min;
  if (at < text.size() && text[at] == ',') {
    ++at;
    skip();
    count.max = read_digits(text, at);
    if (count.max < 0) count.max = kUnbounded;
    skip();
  }
  if (at >= text.size() || text[at] != '}') return {};
  count.bytes = at + 1;
  return count;
}

int64_t read_hex(std::string_view text, size_t count) {
  if (text.size() < count) return -1;
  int64_t value = 0;
  for (const char c : text.substr(0, count)) {
    const int digit = '0' <= c && c <= '9'   ? c - '0'
                      : 'a' <= c && c <= 'f' ? c - 'a' + 10
                      : 'A' <= c && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace cairn::grammar
