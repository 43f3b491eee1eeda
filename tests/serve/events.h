// For tests: the events of a stream, as a client takes them apart.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::serve {

struct Event {
  std::string name;  // Empty: it has none.
  std::string data;
};

// Without comments. An event has one line of data and ends with an empty line; what is left behind
// the last one, of a stream that was cut, goes to `rest`, and is a failure where nobody asks for
// it.
inline std::vector<Event> events_of(std::string_view body, std::string* rest = nullptr) {
  std::vector<Event> events;
  for (size_t end; (end = body.find("\n\n")) != body.npos; body.remove_prefix(end + 2)) {
    std::string_view text = body.substr(0, end);
    if (text.starts_with(':')) continue;
    constexpr std::string_view kName = "event: ", kData = "data: ";
    Event event;
    if (const size_t line = text.find('\n'); text.starts_with(kName) && line != text.npos) {
      event.name = text.substr(kName.size(), line - kName.size());
      text.remove_prefix(line + 1);
    }
    EXPECT_TRUE(text.starts_with(kData) && text.find('\n') == text.npos) << text;
    event.data = text.substr(std::min(kData.size(), text.size()));
    events.push_back(std::move(event));
  }
  if (rest != nullptr) {
    *rest = body;
  } else {
    EXPECT_EQ(body, "") << "the stream is cut";
  }
  return events;
}

// Of events without names, whose last one is no object but the end of all.
inline std::vector<nlohmann::json> chunks_of(std::string_view body) {
  std::vector<Event> events = events_of(body);
  std::vector<nlohmann::json> objects;
  if (events.empty() || events.back().data != "[DONE]") {
    ADD_FAILURE() << "it has no end: " << body;
    return objects;
  }
  events.pop_back();
  for (const Event& event : events) {
    EXPECT_EQ(event.name, "");
    objects.push_back(nlohmann::json::parse(event.data));
  }
  return objects;
}

// Of events whose names their objects have as `type`.
inline std::vector<nlohmann::json> typed_objects_of(std::string_view body) {
  std::vector<nlohmann::json> objects;
  for (const Event& event : events_of(body)) {
    objects.push_back(nlohmann::json::parse(event.data));
    EXPECT_EQ(objects.back().value("type", ""), event.name);
  }
  return objects;
}

// The text of a choice in the pieces of a chat completion.
inline std::string text_in(const std::vector<nlohmann::json>& chunks, size_t choice = 0) {
  std::string text;
  for (const nlohmann::json& chunk : chunks) {
    for (const nlohmann::json& each : chunk.value("choices", nlohmann::json::array())) {
      if (each.value("index", size_t(0)) == choice) text += each["delta"].value("content", "");
    }
  }
  return text;
}

}  // namespace cairn::serve
