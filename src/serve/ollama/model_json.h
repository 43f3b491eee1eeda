// The served model as Ollama describes models. Thread-safe: pure.
#pragma once

#include <string>

#include "json/value.h"
#include "serve/served_model.h"

namespace cairn::serve::ollama {

// With a tag, which clients expect behind every name.
std::string model_name(const ServedModel& model);
// Of the list of models.
json::Value model_json(const ServedModel& model);
// With what its file says, and what it can do.
json::Value show_json(const ServedModel& model);

}  // namespace cairn::serve::ollama
