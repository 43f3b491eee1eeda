// Outputs read to their end, as text, reasoning and calls. For tests only.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "chat/output_parser.h"

namespace cairn::chat {

using Kind = OutputEvent::Kind;

struct Call {
  std::string name, id, arguments;
  bool is_whole = false;
};

struct Reading {
  std::string text, reasoning;
  std::vector<Call> calls;
  std::vector<OutputEvent> events;  // Neighbours of one kind joined.
};

inline void append(std::vector<OutputEvent>& all, const std::vector<OutputEvent>& more) {
  for (const OutputEvent& event : more) {
    const bool is_piece = event.kind != Kind::call_start && event.kind != Kind::call_end;
    if (is_piece && !all.empty() && all.back().kind == event.kind &&
        all.back().call == event.call) {
      all.back().text += event.text;
    } else {
      all.push_back(event);
    }
  }
}

inline std::vector<OutputEvent> pushed(OutputParser& parser, std::string_view piece) {
  std::vector<OutputEvent> events;
  parser.push(piece, events);
  return events;
}

inline std::vector<OutputEvent> finished(OutputParser& parser, bool is_cut = false) {
  std::vector<OutputEvent> events;
  parser.finish(is_cut, events);
  return events;
}

inline Reading sorted(std::vector<OutputEvent> events) {
  Reading reading;
  for (const OutputEvent& event : events) {
    if (event.kind == Kind::text) reading.text += event.text;
    if (event.kind == Kind::reasoning) reading.reasoning += event.text;
    if (event.kind == Kind::call_start) reading.calls.push_back({event.text, event.id, "", false});
    if (event.kind == Kind::call_arguments) reading.calls.back().arguments += event.text;
    if (event.kind == Kind::call_end) {
      reading.calls.back().is_whole = event.is_whole;
      reading.calls.back().id = event.id;
    }
  }
  reading.events = std::move(events);
  return reading;
}

// `cuts`: pieces of random sizes, or, without it, the whole at once.
inline Reading read(const ChatFormat& format, const ParserOptions& options, std::string_view output,
                    std::mt19937* cuts = nullptr, bool is_cut = false) {
  OutputParser parser(format, options);
  std::vector<OutputEvent> events;
  while (!output.empty()) {
    size_t bytes = output.size();
    if (cuts != nullptr) bytes = std::min<size_t>(output.size(), 1 + (*cuts)() % 7);
    append(events, pushed(parser, output.substr(0, bytes)));
    output.remove_prefix(bytes);
  }
  append(events, finished(parser, is_cut));
  return sorted(std::move(events));
}

}  // namespace cairn::chat
