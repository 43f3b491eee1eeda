// Model output against every shape of calls: whatever it says, and however it is cut, nothing
// breaks and the events are the same. The first byte chooses the format, the second the cuts.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "chat/output_parser.h"

namespace {

using namespace cairn::chat;

std::vector<ChatFormat> formats() {
  std::vector<ChatFormat> all(7);
  const auto call = [&](size_t index, CallShape shape, const char* open, const char* close) {
    all[index].call.shape = shape;
    all[index].call.header = {{open, CallField::name}};
    all[index].call.close = close;
    all[index].reasoning_open = "<think>";
    all[index].reasoning_close = "</think>";
  };
  call(0, CallShape::object, "<tool_call>", "</tool_call>");
  all[0].call.name_key = "name";
  call(1, CallShape::arguments, "[CALL]", "[/CALL]");
  all[1].call.header.push_back({"[ID]", CallField::id});
  all[1].call.arguments_open = "[ARGS]";
  all[1].call.section_open = "[CALLS]";
  all[1].call.section_close = "[/CALLS]";
  call(2, CallShape::parameters, "<f=", "</f>");
  all[2].call.arguments_open = ">";
  all[2].call.key_open = "<p=";
  all[2].call.key_end = ">";
  all[2].call.value_close = "</p>";
  all[2].call.has_margin = true;
  call(3, CallShape::elements, "~<f=", "~</f>");
  all[3].call.arguments_open = ">";
  all[3].call.mark = "~";
  call(4, CallShape::python, "", "");
  call(5, CallShape::braces, "<c>", "</c>");
  all[5].call.arguments_open = "{";
  all[5].call.mark = "<q>";
  call(6, CallShape::arguments, "", "");
  all[6].channels = {"<m>", {"<e>"}};
  return all;
}

std::vector<OutputEvent> read(const ChatFormat& format, std::string_view text, size_t bytes) {
  OutputParser parser(format, {.stop = {"STOP"}});
  std::vector<OutputEvent> all;
  std::vector<OutputEvent> events;
  const auto add = [&] {
    for (const OutputEvent& event : events) {
      const bool is_piece =
          event.kind != OutputEvent::Kind::call_start && event.kind != OutputEvent::Kind::call_end;
      if (is_piece && !all.empty() && all.back().kind == event.kind &&
          all.back().call == event.call) {
        all.back().text += event.text;
      } else {
        all.push_back(event);
      }
    }
    events.clear();
  };
  while (!text.empty()) {
    parser.push(text.substr(0, bytes), events);
    add();
    text.remove_prefix(std::min(bytes, text.size()));
  }
  parser.finish(false, events);
  add();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const std::vector<ChatFormat> kAll = formats();
  const ChatFormat& format = kAll[data[0] % kAll.size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (read(format, text, text.size() + 1) != read(format, text, 1 + data[1] % 16)) std::abort();
  return 0;
}
