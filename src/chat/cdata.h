// XML's CDATA sections, in which some call formats write texts without escapes. Pure.
#pragma once

#include <string_view>

namespace cairn::chat {

constexpr std::string_view kCdataOpen = "<![CDATA[";
constexpr std::string_view kCdataClose = "]]>";

}  // namespace cairn::chat
