// Formats in a few words.
#include "chat/format.h"

#include <fmt/core.h>

namespace cairn::chat {

namespace {

std::string shown(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\n') {
      out += "\\n";
    } else {
      out += letter;
    }
  }
  return out;
}

}  // namespace

std::string describe_calls(const CallFormat& format) {
  std::string fields;
  for (const CallHeaderPart& part : format.header) {
    constexpr std::string_view kNames[] = {"NAME", "ID", "INDEX"};
    fields += shown(part.before) + std::string(kNames[size_t(part.field)]);
  }
  const std::string open = format.header.empty() ? "" : shown(format.header[0].before);
  const std::string end = shown(format.close) + shown(format.section_close);
  switch (format.shape) {
    case CallShape::none:
      return "none";
    case CallShape::object: {
      const std::string members =
          format.name_key.empty() ? "NAME: ARGUMENTS"
                                  : fmt::format("{}, {}", format.name_key, format.arguments_key);
      return fmt::format("{}{{{}}}{}", open, members, end);
    }
    case CallShape::arguments:
      if (open.empty() && format.text_name.empty()) return "message to functions.NAME: JSON";
      return shown(format.section_open) + fields + shown(format.arguments_open) + "JSON" + end;
    case CallShape::parameters:
      return fmt::format("{}{}{}{}KEY{}{}VALUE{}{}", shown(format.section_open), fields,
                         shown(format.arguments_open), shown(format.key_open),
                         shown(format.key_end),
                         format.type_end.empty() ? "" : "TYPE" + shown(format.type_end),
                         shown(format.value_close), end);
    case CallShape::elements:
      return fmt::format("{}{}{}{}<KEY>VALUE{}</KEY>{}", shown(format.section_open), fields,
                         shown(format.arguments_open), format.mark, format.mark, end);
    case CallShape::python:
      return fmt::format("{}[NAME(KEY=VALUE)]{}", open, end);
    case CallShape::braces:
      return fmt::format("{}{{KEY:{}VALUE{}}}{}", fields, format.mark, format.mark, end);
  }
  return "";
}

std::string describe_reasoning(const ChatFormat& format) {
  if (!format.channels.message_open.empty()) return "messages of their own";
  if (format.reasoning_close.empty()) return "none";
  return shown(format.reasoning_open) + "…" + shown(format.reasoning_close);
}

}  // namespace cairn::chat
