// Text to tokens and back, by a model's own vocabulary: the entrance of this folder's tokenizers.
// Ids equal those of the model's original tokenizer. Thread-safe: constant once built.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "tokenize/tokenizer_special.h"
#include "tokenize/vocabulary.h"

namespace cairn::tokenize {

class Encoder;

struct EncodeOptions {
  bool add_special = false;  // The tokens that the model wants around a text (BOS, EOS, CLS, SEP).
  bool parse_special = false;  // Recognise special tokens in the text.
  // Tokens of a text stand before it, which it goes on with: no space is put between them.
  bool goes_on = false;
};

// A stretch of text with its origin: a template's own text is trusted, what a user wrote is not.
struct TextPiece {
  std::string_view text;
  bool trusted;
};

class Tokenizer {
 public:
  // Fails where the vocabulary contradicts itself or its kind or pre-tokenizer is not known.
  static Result<std::unique_ptr<Tokenizer>> build(const VocabularySource& source);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Any bytes are allowed; what is no UTF-8 becomes bytes (BPE, SPM), nothing (WPM) or
  // U+FFFD (unigram).
  std::vector<Token> encode(std::string_view text, EncodeOptions options = {}) const;
  // The pieces are one text. With parse_special, special tokens are recognised where all their
  // bytes are trusted; control tokens and markup never come out of untrusted text.
  std::vector<Token> encode(std::span<const TextPiece> pieces, EncodeOptions options = {}) const;
  // The same, appended to a buffer that the caller keeps.
  void encode_to(std::string_view text, EncodeOptions options, std::vector<Token>& out) const;
  void encode_to(std::span<const TextPiece> pieces, EncodeOptions options,
                 std::vector<Token>& out) const;

  // For those who need all of a text: an error (invalid_argument) where encode() would leave bytes
  // out or replace them, with the first of them.
  Status check_text(std::string_view text) const;

  size_t token_count() const { return vocabulary_.size(); }
  // The exact bytes of a token; a special token's name. REQUIRES (here and below): the id is below
  // token_count(); `holds` asks.
  std::string_view piece(Token token) const { return vocabulary_.piece(token); }
  bool holds(Token token) const { return vocabulary_.holds(token); }
  TokenType type(Token token) const { return vocabulary_.type(token); }
  bool is_control(Token token) const { return vocabulary_.is_control(token); }
  // Ends an answer: EOS, EOT, EOM and what is known as such by its text (<|im_end|> and others).
  bool is_end_of_generation(Token token) const { return vocabulary_.is_end(token); }
  // The token with exactly these bytes, special ones first.
  std::optional<Token> find(std::string_view bytes) const { return vocabulary_.find(bytes); }

  const SpecialTokens& special_ids() const { return vocabulary_.special_ids(); }
  bool adds_bos() const { return adds_bos_; }
  bool adds_eos() const { return adds_eos_; }
  // Text gets a space before it (SPM, WPM, unigram): decoding a whole text takes it away again.
  bool adds_space_prefix() const { return adds_space_prefix_; }
  // Of all tokens, with their types: where it is the same, ids mean the same.
  uint64_t digest() const;
  // What was wrong with the file and was lived with.
  std::span<const std::string> warnings() const { return vocabulary_.warnings(); }

 private:
  Tokenizer(Vocabulary vocabulary, bool strips_right);

  Status set_flags(const VocabularySource& source, bool adds_bos_by_default,
                   bool adds_eos_by_default);
  void encode_regions(std::string_view text, std::span<const Region> regions, EncodeOptions options,
                      std::vector<Token>& out) const;

  Vocabulary vocabulary_;
  SpecialMatcher specials_;
  std::unique_ptr<Encoder> encoder_;
  std::optional<Token> first_;  // The tokens that add_special puts before and after a text.
  std::optional<Token> last_;
  bool adds_bos_ = false;
  bool adds_eos_ = false;
  bool adds_space_prefix_ = false;
  bool keeps_all_bytes_ = true;
};

}  // namespace cairn::tokenize
