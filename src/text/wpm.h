// WordPiece (BERT; GGUF: "bert"): text is folded and cut at spaces, punctuation and ideographs;
// each word is the row of its longest tokens from the left, or unknown as a whole. In GGUF a token
// that begins a word begins with U+2581, one that continues it has no "##".
// Thread-safe: constant; sessions serve one thread.
#pragma once

#include <memory>

#include "text/tokenizer_encoder.h"
#include "text/unicode.h"
#include "text/vocabulary.h"
#include "text/vocabulary_trie.h"

namespace cairn::text {

class Wpm : public Encoder {
 public:
  // The vocabulary must outlive the encoder.
  Wpm(const Vocabulary& vocabulary, Folding folding);

  std::unique_ptr<EncoderSession> start(size_t text_bytes) const override;

 private:
  class Session;

  const Vocabulary& vocabulary_;
  Folding folding_;
  VocabularyTrie tokens_;
};

}  // namespace cairn::text
