// Models as Ollama describes them. Thread-safe: pure.
#pragma once

#include <string>

#include "engine/model_text.h"
#include "gguf/gguf.h"
#include "json/value.h"
#include "sample/params.h"
#include "serve/models/model_source.h"

namespace cairn::serve::ollama {

// With a tag, which clients expect behind every name.
std::string model_name(const std::string& name);
// Of the list of models. Its digest is not that of the file's bytes, but of its metadata and
// samples of its weights.
json::Value model_json(const ModelSource& model, const std::string& digest);
// What it can do: "completion", "tools" …
json::Value capabilities_json(const ModelSource& model, const ModelText& text);
// With what its file says. `sampling`: where a request says nothing.
json::Value show_json(const ModelSource& model, const gguf::File& file, const ModelText& text,
                      const sample::SamplingParams& sampling);

}  // namespace cairn::serve::ollama
