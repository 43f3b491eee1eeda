// How people name adapters: files on the command line, names during a conversation, each with a
// scale behind a colon or without. Thread-safe: pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/adapters.h"

namespace cairn::terminal_chat {

// "FILE" or "FILE:0.5". A name with a colon of its own needs a scale behind it. Errors:
// invalid_argument.
Result<AdapterChoice> parse_adapter(std::string_view text);

// "NAME NAME:0.5 …", or "off": none. Errors: invalid_argument.
Result<std::vector<AdapterUse>> parse_adapter_uses(std::string_view list);

// A line for each that is loaded: its name, and whether and how much it is on.
std::string show_adapters(std::span<const AdapterUse> loaded, const Selection& selection);

}  // namespace cairn::terminal_chat
