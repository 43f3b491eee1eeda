// A session as a value: a conversation with its branches, and its snapshots. Copies share the
// messages. Thread-safe: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "session/dialogue.h"

namespace cairn::serve {

// What a prompt has beside its messages, as the last answer was asked for.
struct PromptForm {
  std::string tools = {};  // A JSON list; empty: none.
  bool reasons = true;
  std::vector<std::pair<std::string, std::string>> variables = {};  // Of the template.
};

struct SessionState {
  std::string id;
  std::string owner;        // Whose it is: of a key, or empty where there are no keys.
  std::string model;        // By its name for clients.
  int64_t created = 0;      // Seconds since 1970.
  uint64_t vocabulary = 0;  // That the messages' tokens are ids of.
  session::Dialogue dialogue = {};
  std::vector<session::Branch> snapshots = {};  // Of what a branch had when they were made.
  uint64_t seed = 0;                            // Of the last answer, for going on with it.
  PromptForm form = {};

  // Null where there is none of this name.
  const session::Branch* snapshot(std::string_view name) const {
    for (const session::Branch& each : snapshots) {
      if (each.name == name) return &each;
    }
    return nullptr;
  }
};

// Names of sessions, branches and snapshots: letters, digits, ".", "_" and "-", the first a letter
// or digit, at most 128.
bool is_session_name(std::string_view name);

size_t bytes_of(const chat::Message& message);
// What a state takes: each message once, however many lists have it, and the lists.
size_t bytes_of(const SessionState& state);

}  // namespace cairn::serve
