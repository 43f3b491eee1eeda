// Byte-pair encoding: byte-level with a pre-tokenizer (GPT-2 and its children), or over UTF-8
// characters with fallback to bytes (Gemma 4). Thread-safe: constant; sessions serve one thread.
#pragma once

#include <memory>

#include "base/result.h"
#include "tokenize/bpe_merges.h"
#include "tokenize/pretokenizer.h"
#include "tokenize/tokenizer_encoder.h"
#include "tokenize/tokenizer_pairs.h"
#include "tokenize/vocabulary.h"

namespace cairn::tokenize {

// The vocabulary must outlive the encoder.
class ByteLevelBpe : public Encoder {
 public:
  static Result<std::unique_ptr<Encoder>> build(const Vocabulary& vocabulary, BpeMerges merges,
                                                const PretokenizerRule& rule);

  std::unique_ptr<EncoderSession> start(size_t text_bytes) const override;

 private:
  class Session;

  ByteLevelBpe(const Vocabulary& vocabulary, BpeMerges merges,
               std::unique_ptr<Pretokenizer> pretokenizer, bool whole_words)
      : vocabulary_(vocabulary),
        merges_(std::move(merges)),
        pretokenizer_(std::move(pretokenizer)),
        whole_words_(whole_words) {}

  const Vocabulary& vocabulary_;
  BpeMerges merges_;
  std::unique_ptr<Pretokenizer> pretokenizer_;
  bool whole_words_;
};

// Runs of line feeds stand for themselves; all else is one word, spaces included.
class CharacterBpe : public Encoder {
 public:
  CharacterBpe(const Vocabulary& vocabulary, BpeMerges merges);

  std::unique_ptr<EncoderSession> start(size_t text_bytes) const override;

 private:
  class Session;

  const Vocabulary& vocabulary_;
  BpeMerges merges_;
  CharacterPairs pairs_;
};

}  // namespace cairn::tokenize
