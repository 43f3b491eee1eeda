// XML's quotation, in which some forms let a model put texts as they stand. Pure.
#pragma once

#include <string_view>

namespace cairn::chat {

constexpr std::string_view kCdataOpen = "<![CDATA[";
constexpr std::string_view kCdataClose = "]]>";

}  // namespace cairn::chat
