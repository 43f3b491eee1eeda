// A vocabulary of any size for synthetic models: byte-level pieces and merges that make words, so
// that every text can be tokenized and every token printed. Thread-safe: pure.
#pragma once

#include <cstdint>

#include "gguf/writer.h"

namespace cairn::synth {

// Adds tokenizer.ggml.*: two control tokens (begin, end), the 256 bytes, then merged pieces.
// REQUIRES: 258 <= token_count <= 400000.
void add_vocabulary(gguf::Writer& writer, int32_t token_count);

}  // namespace cairn::synth
