// Infers the format of tool calls from rendered ones whose names, keys, values and ids are known
// (chat/probe.h). Thread-safe: pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "chat/format.h"

namespace cairn::chat {

// What templates write for calls, without the header and the end that plain answers have too.
struct CallRegions {
  std::string one;    // One call.
  std::string two;    // Two; empty where the template takes only one.
  std::string plain;  // What a plain answer has there before its content.
  bool has_channels = false;
};

// Leaves shape none where the text is of no known form.
void read_shape(const CallRegions& regions, CallFormat& format);

// The bytes in which two texts agree at their front or back, without cutting a marker in two.
size_t shared_front(std::string_view a, std::string_view b);
size_t shared_back(std::string_view a, std::string_view b);

}  // namespace cairn::chat
