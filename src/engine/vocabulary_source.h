// Reads a GGUF file's metadata as the source that tokenize/ builds a tokenizer from. Knows the
// keys; tokenize/vocabulary.h interprets the values and checks whether they agree. Thread-safe:
// pure.
#pragma once

#include "base/result.h"
#include "gguf/gguf.h"
#include "tokenize/vocabulary.h"

namespace cairn {

// Views into the file, which must live while the source is used. Errors: not_found (no
// tokenizer.ggml.model or .tokens), invalid_data (a key of another type).
Result<tokenize::VocabularySource> vocabulary_source(const gguf::File& file);

}  // namespace cairn
