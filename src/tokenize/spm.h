// SentencePiece's "BPE" vocabularies (GGUF: "llama"): neighbours are joined whenever the joined
// text is a token, the one with the highest score first; what is left over becomes bytes.
// Thread-safe: constant; sessions serve one thread.
#pragma once

#include <memory>
#include <vector>

#include "tokenize/tokenizer_encoder.h"
#include "tokenize/tokenizer_pairs.h"
#include "tokenize/vocabulary.h"

namespace cairn::tokenize {

class Spm : public Encoder {
 public:
  // `space_prefix`: text at the start and behind a special token gets a space before it. The
  // vocabulary must outlive the encoder.
  Spm(const Vocabulary& vocabulary, bool space_prefix);

  std::unique_ptr<EncoderSession> start(size_t text_bytes) const override;

 private:
  class Session;

  const Vocabulary& vocabulary_;
  bool space_prefix_;
  CharacterPairs pairs_;
  std::vector<uint32_t> priorities_;  // Of each token: the lower, the higher its score.
};

}  // namespace cairn::tokenize
