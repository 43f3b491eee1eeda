// RFC 3339 for dates and times, with the days that months have; leap seconds are left out. RFC 5322
// and 1123 for addresses and hosts, RFC 4291 for IPv6, each as far as programs agree on it.
#include "grammar/string_formats.h"

#include <utility>

namespace cairn::grammar {

namespace {

#define CAIRN_DATE                                                \
  "([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|"    \
  "(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|" \
  "([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)-02-29)"
#define CAIRN_TIME                                           \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?" \
  "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define CAIRN_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define CAIRN_IPV4 CAIRN_BYTE "(\\." CAIRN_BYTE "){3}"
#define CAIRN_GROUP "[0-9a-fA-F]{1,4}"
#define CAIRN_LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"

constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
    {"date", CAIRN_DATE},
    {"time", CAIRN_TIME},
    {"date-time", CAIRN_DATE "T" CAIRN_TIME},
    {"duration",
     "P(([0-9]+D|[0-9]+M([0-9]+D)?|[0-9]+Y([0-9]+M([0-9]+D)?)?)"
     "(T([0-9]+S|[0-9]+M([0-9]+S)?|[0-9]+H([0-9]+M([0-9]+S)?)?))?|"
     "T([0-9]+S|[0-9]+M([0-9]+S)?|[0-9]+H([0-9]+M([0-9]+S)?)?)|[0-9]+W)"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"ipv4", CAIRN_IPV4},
    {"ipv6", "(" CAIRN_GROUP ":){7}" CAIRN_GROUP "|::(" CAIRN_GROUP "(:" CAIRN_GROUP
             "){0,5})?|" CAIRN_GROUP "::(" CAIRN_GROUP "(:" CAIRN_GROUP "){0,4})?|" CAIRN_GROUP
             "(:" CAIRN_GROUP "){1}::(" CAIRN_GROUP "(:" CAIRN_GROUP "){0,3})?|" CAIRN_GROUP
             "(:" CAIRN_GROUP "){2}::(" CAIRN_GROUP "(:" CAIRN_GROUP "){0,2})?|" CAIRN_GROUP
             "(:" CAIRN_GROUP "){3}::(" CAIRN_GROUP "(:" CAIRN_GROUP ")?)?"},
    {"hostname", CAIRN_LABEL "(\\." CAIRN_LABEL "){0,5}"},
    {"email", "[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@" CAIRN_LABEL "(\\." CAIRN_LABEL "){1,5}"},
    {"uri", "[A-Za-z][A-Za-z0-9+.-]*://" CAIRN_LABEL "(\\." CAIRN_LABEL "){0,5}(:[1-9][0-9]{0,3})?"
            "(/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*"
            "(\\?([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"},
};

}  // namespace

std::string_view pattern_of_format(std::string_view format) {
  for (const auto& [name, pattern] : kFormats) {
    if (name == format) return pattern;
  }
  return {};
}

}  // namespace cairn::grammar
