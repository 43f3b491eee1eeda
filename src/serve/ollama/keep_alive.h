// How long a model shall stay in memory, as Ollama's clients say it. Thread-safe: pure.
#pragma once

#include <chrono>
#include <optional>

#include "serve/fields.h"

namespace cairn::serve::ollama {

// The member keep_alive: seconds, or a text such as "5m", "1h30m", "500ms"; below 0: as long as
// there is room. Nothing where it is not said. Errors: what is neither.
Checked<std::optional<std::chrono::milliseconds>> read_keep_alive(const Body& body);

// Whether there is something to answer; else the model is to be loaded, or unloaded.
bool has_question(const Body& body);

}  // namespace cairn::serve::ollama
