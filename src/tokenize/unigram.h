// SentencePiece's unigram vocabularies (GGUF: "t5"; XLM-RoBERTa, T5): text is normalized by the
// model's table, then cut into the row of tokens with the highest sum of scores (Kudo, 2018). What
// no token spells is unknown, a stretch of it once; or bytes, where the vocabulary has them all.
// Thread-safe: constant; sessions serve one thread.
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
