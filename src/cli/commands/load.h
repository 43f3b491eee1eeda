// Opening and loading the model that a command was given, with progress on a terminal.
// Thread rule: one thread.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "engine/engine.h"
#include "gguf/gguf.h"

namespace cairn::cli {

// Of a path that is a plain word, as other programs call models ("llama3.2:1b"): whether anything
// is there, before prompts are read. Errors: not_found.
Status check_model_name(const std::string& path);

// The file at `path`, or the built-in model where it is empty.
Result<gguf::File> open_model(const std::string& path,
                              gguf::OpenMode mode = gguf::OpenMode::strict);

// What an engine of these reads, and the files at `others`: no output may be one of them.
std::vector<FileIdentity> input_files(const gguf::File& model, const EngineOptions& options,
                                      std::initializer_list<std::string> others = {});

Result<std::unique_ptr<Engine>> load_engine(gguf::File file, EngineOptions options);
Result<std::unique_ptr<Engine>> load_engine(const std::string& path, EngineOptions options);

}  // namespace cairn::cli
