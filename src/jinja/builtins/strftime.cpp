// glibc's strftime does the work, with the C locale's words: programs that set no locale have it.
// A directive goes to it alone, so that the result's size is known.
#include "jinja/builtins/strftime.h"

#include <array>
#include <charconv>
#include <ctime>

namespace cairn::jinja {
namespace {

bool read_number(std::string_view text, size_t at, size_t digits, int low, int high, int& out) {
  const std::string_view part = text.substr(at, digits);
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), out);
  return part.size() == digits && error == std::errc() && end == part.data() + digits &&
         out >= low && out <= high;
}

// The week day and the day of the year follow from the date.
std::tm calendar(const CivilTime& time) {
  std::tm parts{};
  parts.tm_year = time.year - 1900;
  parts.tm_mon = time.month - 1;
  parts.tm_mday = time.day;
  parts.tm_hour = time.hour;
  parts.tm_min = time.minute;
  parts.tm_sec = time.second;
  std::tm whole = parts;
  whole.tm_isdst = 0;
  timegm(&whole);
  return whole;
}

}  // namespace

CivilTime local_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return {parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
          parts.tm_hour,        parts.tm_min,     parts.tm_sec};
}

std::optional<CivilTime> parse_civil_time(std::string_view text) {
  CivilTime time;
  const bool is_time = text.size() == 19 && text[4] == '-' && text[7] == '-' &&
                       (text[10] == 'T' || text[10] == ' ') && text[13] == ':' && text[16] == ':';
  if (!is_time || !read_number(text, 0, 4, 0, 9999, time.year) ||
      !read_number(text, 5, 2, 1, 12, time.month) || !read_number(text, 8, 2, 1, 31, time.day) ||
      !read_number(text, 11, 2, 0, 23, time.hour) ||
      !read_number(text, 14, 2, 0, 59, time.minute) ||
      !read_number(text, 17, 2, 0, 60, time.second)) {
    return std::nullopt;
  }
  return time;
}

std::optional<std::string> format_time(std::string_view format, const CivilTime& time) {
  constexpr std::string_view kDirectives = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyY%";
  const std::tm parts = calendar(time);
  std::string out;
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      out += format[at];
      continue;
    }
    std::string directive = "%";
    if (at + 1 < format.size() && std::string_view("-_0^#").find(format[at + 1]) != format.npos) {
      directive += format[++at];
    }
    if (++at >= format.size()) return std::nullopt;
    const char letter = format[at];
    if (letter == 'z' || letter == 'Z') continue;
    if (letter == 'f') {
      out += "000000";  // Python's microseconds, which this clock does not have.
      continue;
    }
    if (kDirectives.find(letter) == kDirectives.npos) return std::nullopt;
    directive += letter;
    std::array<char, 64> text{};
    out.append(text.data(), std::strftime(text.data(), text.size(), directive.c_str(), &parts));
  }
  return out;
}

}  // namespace cairn::jinja
