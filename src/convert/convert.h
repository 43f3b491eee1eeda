// Writes a model directory, as transformers saves it, as a GGUF file: same tensors and metadata as
// the usual converter's. Reads from the folder only what it names; the file appears whole or not at
// all. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "convert/tensors.h"

namespace cairn::convert {

struct ConvertOptions {
  std::string folder, out_path;
  OutType type = OutType::automatic;
  std::function<void(uint64_t done, uint64_t total)> on_progress;
};

struct ConvertReport {
  std::string architecture, tokenizer;  // tokenizer: its model and pre-tokenizer.
  OutType type = OutType::f16;
  int64_t tensor_count = 0, token_count = 0;
  uint64_t out_bytes = 0;
};

// Errors: unsupported (architecture, tokenizer or numbers that this cannot write), not_found,
// invalid_data, no_room, io.
Result<ConvertReport> convert(const ConvertOptions& options);

}  // namespace cairn::convert
