// PLaMo's tokenizer (GGUF: "plamo2"): of all ways to cut a text into tokens the one with the best
// sum of scores. A character that no token has costs much, and becomes its bytes.
// Thread-safe: constant; sessions serve one thread.
#pragma once

#include <memory>
#include <vector>

#include "tokenize/tokenizer_encoder.h"
#include "tokenize/vocabulary.h"
#include "tokenize/vocabulary_trie.h"

namespace cairn::tokenize {

class Plamo : public Encoder {
 public:
  // The vocabulary must outlive the encoder.
  explicit Plamo(const Vocabulary& vocabulary);

  std::unique_ptr<EncoderSession> start(size_t text_bytes) const override;

 private:
  class Session;

  const Vocabulary& vocabulary_;
  VocabularyTrie tokens_;
  std::vector<int32_t> costs_;  // Of each token, in ten-thousandths of its score; less is better.
};

}  // namespace cairn::tokenize
