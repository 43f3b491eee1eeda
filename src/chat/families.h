// The formats of model families that cannot be detected by rendering their templates. Plain data,
// keyed by a phrase of the template's source. Thread-safe: constants.
#pragma once

#include <string_view>

#include "chat/format.h"

namespace cairn::chat {

// The calls of a template that has instructions for them but writes none. False: unknown.
bool find_call_family(std::string_view source, CallFormat& format);

// Reasoning that is never rendered, or whose markers are of several parts.
void add_reasoning_family(std::string_view source, ChatFormat& format);

// Additions to what was detected: second openings, texts around answers.
void add_family_traits(std::string_view source, ChatFormat& format);

}  // namespace cairn::chat
