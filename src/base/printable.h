// Escapes untrusted text (file names, metadata, a model's output) so that it cannot control a
// terminal. Thread rule: pure.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

// Only LF and TAB pass of the control characters. C0, DEL and C1 become \xNN, as do bytes that are
// not UTF-8; the characters that turn the direction of text, and the line and paragraph separators,
// become \u{NNNN}. Everything else is copied.
std::string printable(std::string_view text);

}  // namespace cairn
