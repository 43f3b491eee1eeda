// Merging pieces.
#include "chat/output_event.h"

#include <utility>

#include "unicode/unicode.h"

namespace cairn::chat {

void EventList::text(OutputEvent::Kind kind, std::string_view piece, int32_t call) {
  if (piece.empty()) return;
  if (has_open_ && (open_.kind != kind || open_.call != call)) settle();
  if (!has_open_) open_ = {.kind = kind, .call = call, .text = {}, .id = {}};
  has_open_ = true;
  open_.text += piece;
}

void EventList::start_call(int32_t call, std::string_view name, std::string_view id) {
  settle();
  events_.push_back({.kind = OutputEvent::Kind::call_start,
                     .call = call,
                     .text = std::string(name),
                     .id = std::string(id)});
}

void EventList::end_call(int32_t call, std::string_view id, bool is_whole) {
  settle();
  events_.push_back({.kind = OutputEvent::Kind::call_end,
                     .call = call,
                     .text = {},
                     .id = std::string(id),
                     .is_whole = is_whole});
}

void EventList::take(bool is_all, std::vector<OutputEvent>& out) {
  if (is_all) {
    settle();
  } else if (has_open_) {
    const size_t held = unicode::unfinished_utf8_bytes(open_.text);
    std::string rest = open_.text.substr(open_.text.size() - held);
    open_.text.resize(open_.text.size() - held);
    if (!open_.text.empty()) {
      events_.push_back(open_);
      open_.text = std::move(rest);
      has_open_ = !open_.text.empty();
    } else {
      open_.text = std::move(rest);
    }
  }
  for (OutputEvent& event : events_) out.push_back(std::move(event));
  events_.clear();
}

void EventList::settle() {
  if (has_open_) events_.push_back(std::move(open_));
  has_open_ = false;
  open_ = {};
}

}  // namespace cairn::chat
