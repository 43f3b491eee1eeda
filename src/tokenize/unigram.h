// SentencePiece's unigram vocabularies (GGUF: "t5"; XLM-RoBERTa, T5): text is normalized by the
// model's table, then segmented into the tokens with the highest sum of scores (Kudo, 2018). Text
// that no token spells becomes one unknown token for each stretch, or bytes if the vocabulary has
// all of them. Thread-safe: constant; sessions serve one thread.
#pragma once

#include <memory>

#include "tokenize/charsmap.h"
#include "tokenize/tokenizer_encoder.h"
#include "tokenize/vocabulary.h"
#include "tokenize/vocabulary_trie.h"

namespace cairn::tokenize {

class Unigram : public Encoder {
 public:
  struct Spaces {
    bool prefix = true;         // One before the text, and behind a special token.
    bool removes_extra = true;  // At both ends, and but one of several.
  };

  // The vocabulary must outlive the encoder. Errors: invalid_data (no unknown token).
  static Result<std::unique_ptr<Unigram>> build(const Vocabulary& vocabulary, Charsmap charsmap,
                                                Spaces spaces);

  std::unique_ptr<EncoderSession> start(size_t text_bytes) const override;

 private:
  class Session;

  Unigram(const Vocabulary& vocabulary, Charsmap charsmap, Spaces spaces, Token unknown);

  const Vocabulary& vocabulary_;
  Charsmap charsmap_;
  Spaces spaces_;
  Token unknown_;
  double unknown_score_ = 0;
  bool has_bytes_ = true;       // A token for each.
  bool cuts_at_spaces_ = true;  // No token has a space behind its first byte.
  VocabularyTrie tokens_;
};

}  // namespace cairn::tokenize
