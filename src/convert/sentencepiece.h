// Reads tokenizer.model, SentencePiece's own file: pieces with scores and kinds, and what a unigram
// model does with text. The file is a Protocol Buffers message; nothing in it is trusted. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cairn::convert {

inline constexpr size_t kModelBytesMax = size_t(256) << 20;  // Of a tokenizer.model.
inline constexpr int64_t kTokenCountMax = int64_t(1) << 21;  // Of any vocabulary.

// Numbered as in the file, and in GGUF.
enum class PieceKind : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

struct Piece {
  std::string text;
  float score = 0;
  PieceKind kind = PieceKind::normal;
};

// "<0x41>": stands for the byte 65.
bool is_byte_token(std::string_view text);

// What a unigram model does with text before it is cut.
struct UnigramNormalizer {
  bool adds_space = true, removes_extra_spaces = true;
  std::string charsmap;  // A table of replacements, as it lies in the file.
};

// Errors: invalid_data, unsupported (a model of another kind).
Result<UnigramNormalizer> parse_unigram_normalizer(std::string_view bytes);

// Whether a text is given a space in front. Errors: invalid_data.
Result<bool> sentencepiece_prepends_space(std::string_view bytes);

// Errors: invalid_data.
Result<std::vector<Piece>> parse_sentencepiece(std::string_view bytes);

}  // namespace cairn::convert
