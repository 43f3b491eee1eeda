// Reading and showing amounts.
#include "base/quantities.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace cairn {

namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr Unit kUnits[] = {
    {"", 1},       {"B", 1},        {"K", 0x1p10},   {"M", 0x1p20},   {"G", 0x1p30},
    {"T", 0x1p40}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
    {"KB", 1e3},   {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return out;
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view what, std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string number(text.substr(0, digits));
  std::string_view unit_text = text.substr(digits);
  while (unit_text.starts_with(' ')) unit_text.remove_prefix(1);
  char* end = nullptr;
  const double amount = std::strtod(number.c_str(), &end);
  const bool is_number = !number.empty() && *end == '\0';
  for (const Unit& unit : kUnits) {
    if (!is_number || lower(unit.name) != lower(unit_text)) continue;
    const double bytes = amount * unit.bytes;
    if (bytes < 1 || bytes > 0x1p60) break;
    return uint64_t(bytes);
  }
  return fail(ErrorCode::invalid_argument, "{}: expected a size such as 512M or 4G, found \"{}\"",
              what, text);
}

std::string show_bytes(uint64_t bytes) {
  constexpr std::string_view kNames[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double amount = double(bytes) / 1024;
  size_t unit = 0;
  while (amount >= 1000 && unit + 1 < std::size(kNames)) {
    amount /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", amount, amount < 9.95 ? 1 : 0, kNames[unit]);
}

std::string show_seconds(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.5) return fmt::format("{:.0f} s", seconds);
  const long whole = std::lround(seconds);
  return fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

}  // namespace cairn
