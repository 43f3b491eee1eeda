// RWKV's tokenizer (GGUF: "rwkv"): greedy longest match, token by token. Tokens are bytes, and may
// end within a character. Thread-safe: constant; sessions serve one thread.
#pragma once

#include <memory>

#include "tokenize/tokenizer_encoder.h"
#include "tokenize/vocabulary.h"
#include "tokenize/vocabulary_trie.h"

namespace cairn::tokenize {

class Greedy : public Encoder {
 public:
  // The vocabulary must outlive the encoder.
  explicit Greedy(const Vocabulary& vocabulary);

  std::unique_ptr<EncoderSession> start(size_t text_bytes) const override;

 private:
  class Session;

  const Vocabulary& vocabulary_;
  VocabularyTrie tokens_;
};

}  // namespace cairn::tokenize
