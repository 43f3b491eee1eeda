// Reads one GGUF file (a whole model or one part of a split one) into fields and tensors that are
// views into its bytes. Every count, length, dimension, offset and type is checked before it is
// used; memory stays in proportion to the bytes read, whatever the file declares.
// Knows neither mapping nor split models (gguf/gguf.h) nor the meaning of keys.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/fields.h"
#include "gguf/tensor.h"

namespace cairn::gguf {

// A file to be run must keep every rule. One to be inspected must only be safe to read: what else
// is wrong with it becomes a line of `problems`.
enum class OpenMode { strict, inspect };

struct Problems {
  std::vector<std::string> lines;  // At most kProblemLinesMax.
  uint64_t count = 0;

  void add(std::string line);
};

constexpr size_t kProblemLinesMax = 100;

struct Part {
  uint32_t version;
  uint64_t alignment;
  uint64_t data_offset;  // Where the tensor data starts.
  Fields fields;
  std::vector<Tensor> tensors;  // In the file's order; `part` is 0.
};

// Errors: invalid_data (a rule is broken), unsupported (version 1, big-endian); the message names
// the key or tensor, and what was expected and found.
Result<Part> read_part(std::span<const std::byte> bytes, OpenMode mode, Problems& problems);

}  // namespace cairn::gguf
