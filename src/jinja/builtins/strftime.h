// Civil time and its formatting as C's strftime does in the C locale. No clock of its own except
// local_time_now(); pure otherwise. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cairn::jinja {

struct CivilTime {
  int year = 1970;
  int month = 1;  // 1 to 12.
  int day = 1;    // 1 to 31.
  int hour = 0;
  int minute = 0;
  int second = 0;
};

CivilTime local_time_now();
// `2026-03-14T09:26:53`; nothing where the text is no such time.
std::optional<CivilTime> parse_civil_time(std::string_view text);

// The directives of glibc and Python without a time zone (%z and %Z give nothing); nothing at all
// where the format has a directive that does not exist.
std::optional<std::string> format_time(std::string_view format, const CivilTime& time);

}  // namespace cairn::jinja
