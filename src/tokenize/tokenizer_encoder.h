// The interface of the encoders of each kind of vocabulary (BPE, SPM, WPM), for text without
// special tokens.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace cairn::tokenize {

// The working memory of one call of Tokenizer::encode.
class EncoderSession {
 public:
  virtual ~EncoderSession() = default;

  // Appends the tokens of a stretch of text. `follows_special`: it stands at the start of the text
  // or right behind a special token.
  virtual void encode(std::string_view text, bool follows_special, std::vector<Token>& out) = 0;
};

// Thread-safe: constant.
class Encoder {
 public:
  virtual ~Encoder() = default;

  // `text_bytes`: how much text is to come. The encoder must outlive the session.
  virtual std::unique_ptr<EncoderSession> start(size_t text_bytes) const = 0;
};

}  // namespace cairn::tokenize
