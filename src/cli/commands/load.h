// Opening and loading the model that a command was given, with progress on a terminal.
// Thread rule: one thread.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "gguf/gguf.h"

namespace cairn::cli {

// The file at `path`, or the built-in model where it is empty.
Result<gguf::File> open_model(const std::string& path);

Result<std::unique_ptr<Engine>> load_engine(const std::string& path, EngineOptions options);

// A form of keys or values by name: f32, f16 … `option` is named in the error.
// Errors: invalid_argument.
Result<KvType> parse_kv_type(std::string_view option, std::string_view text);

}  // namespace cairn::cli
