// Words that people know from llama.cpp's programs and from Ollama, where cairn has nothing of that
// name: what to do instead. Words that mean the same here are spellings of cairn's own options.
// Thread-safe: constant data.
#pragma once

#include <string_view>

namespace cairn::command_line {

// Of an option, as "--mlock" or "-fa"; empty where nobody is known to have it.
std::string_view advice_for_option(std::string_view typed);

// Of a first word, as "pull"; likewise.
std::string_view advice_for_command(std::string_view word);

}  // namespace cairn::command_line
