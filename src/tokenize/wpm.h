// WordPiece (BERT; GGUF: "bert"): text is folded and cut at spaces, punctuation and ideographs;
// each word is segmented by greedy longest match from the left, or is unknown as a whole. In GGUF a
// token that begins a word begins with U+2581, one that continues it has no "##".
// Thread-safe: constant; sessions serve one thread.
#pragma once

#include <memory>

#include "tokenize/tokenizer_encoder.h"
#include "tokenize/vocabulary.h"
#include "tokenize/vocabulary_trie.h"
#include "unicode/unicode.h"

namespace cairn::tokenize {

class Wpm : public Encoder {
 public:
  // The vocabulary must outlive the encoder.
  Wpm(const Vocabulary& vocabulary, unicode::Folding folding);

  std::unique_ptr<EncoderSession> start(size_t text_bytes) const override;

 private:
  class Session;

  const Vocabulary& vocabulary_;
  unicode::Folding folding_;
  VocabularyTrie tokens_;
};

}  // namespace cairn::tokenize
