// The bridge from a GGUF file's metadata to what text/ builds a tokenizer from. Knows the keys;
// what the values mean, and whether they agree, text/vocabulary.h says.
// Thread-safe: pure.
#pragma once

#include "base/result.h"
#include "gguf/gguf.h"
#include "tokenize/vocabulary.h"

namespace cairn {

// Views into the file, which must live while the source is used. Errors: not_found (no
// tokenizer.ggml.model or .tokens), invalid_data (a key of another type).
Result<tokenize::VocabularySource> vocabulary_source(const gguf::File& file);

}  // namespace cairn
