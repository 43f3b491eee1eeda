// A model's vocabulary, checked: the bytes of every token, what kind each is, which tokens are
// special, and the way back from bytes to tokens. Knows nothing of how text is cut into tokens.
// Invariant: built from any input or refused with an error that names the key; ids that it hands
// out are below size(). Thread-safe: constant once built.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "tokenize/vocabulary_index.h"

namespace cairn::tokenize {

// What a model file says of its vocabulary; names as in GGUF, without "tokenizer.ggml.". Views must
// live until the build has returned.
struct VocabularySource {
  // "gpt2" (BPE), "llama" (SPM), "bert" (WPM), "t5" (unigram), "gemma4", "rwkv" or "plamo2".
  std::string_view model;
  std::optional<std::string_view> pre;
  std::string_view name;  // general.name: tells phi-3, whose special tokens eat spaces.
  std::vector<std::string_view> tokens;
  std::vector<int32_t> types;            // TokenType by number, as many as tokens, or none.
  std::vector<float> scores;             // As many as tokens, or none.
  std::vector<std::string_view> merges;  // "left right", best first.
  std::optional<int64_t> bos, eos, eot, eom, unk, sep, pad, cls, mask;
  std::optional<int64_t> fim_prefix, fim_suffix, fim_middle, fim_pad, fim_repository, fim_separator;
  std::optional<bool> add_bos, add_eos, add_sep, add_space_prefix, remove_extra_whitespaces;
  std::optional<bool> lowercase, strip_accents;  // BERT's normalizer.
  std::string_view precompiled_charsmap;
};

enum class TokenType : uint8_t {
  undefined,
  normal,
  unknown,
  control,       // Special: never shown, recognised only in trusted text.
  user_defined,  // Taken from text as a whole, before anything else.
  unused,
  byte,
};

struct SpecialTokens {
  std::optional<Token> bos, eos, eot, eom, unk, sep, pad, cls, mask;
  std::optional<Token> fim_prefix, fim_suffix, fim_middle, fim_pad, fim_repository, fim_separator;
};

class Vocabulary {
 public:
  // How the file writes bytes: as one printable character each (GPT-2), as UTF-8 with U+2581 in
  // place of the space, as they are, or as Python's literals do ("\n", "\xff").
  enum class Spelling { byte_level, spaced, plain, escaped };

  static Result<Vocabulary> build(const VocabularySource& source, Spelling spelling);

  size_t size() const { return types_.size(); }
  bool holds(Token token) const { return uint32_t(index_of(token)) < size(); }
  // The exact bytes. REQUIRES (here and below): the vocabulary holds the token.
  std::string_view piece(Token token) const {
    const auto id = size_t(index_of(token));
    return std::string_view(bytes_).substr(begins_[id], begins_[id + 1] - begins_[id]);
  }
  std::string_view text_of(int32_t token) const { return piece(Token(token)); }
  TokenType type(Token token) const { return types_[size_t(index_of(token))]; }
  float score(Token token) const {
    return scores_.empty() ? 0.0f : scores_[size_t(index_of(token))];
  }
  bool is_control(Token token) const;
  bool is_end(Token token) const { return ends_[size_t(index_of(token))]; }

  // The token for these bytes of ordinary text, or kNoToken: never a control token, so that text
  // cannot spell one; and of byte-level spelling none but those that bytes spell, since merges
  // begin at these.
  int32_t find_word(std::string_view bytes) const { return words_.find(bytes, *this); }
  // Any token by its exact bytes; special tokens first.
  std::optional<Token> find(std::string_view bytes) const;
  // The token for one byte alone, or kNoToken.
  int32_t byte_token(uint8_t byte) const { return byte_tokens_[byte]; }

  // Tokens that are recognised as a whole (control, unknown, user-defined), ascending.
  std::span<const Token> specials() const { return specials_; }
  const SpecialTokens& special_ids() const { return special_ids_; }
  // What honest files in the wild get wrong and is harmless.
  std::span<const std::string> warnings() const { return warnings_; }
  void warn(std::string warning) { warnings_.push_back(std::move(warning)); }

 private:
  Vocabulary() = default;

  Status check_counts(const VocabularySource& source) const;
  Status read_types(const VocabularySource& source);
  Status read_pieces(const VocabularySource& source, Spelling spelling);
  Status read_byte_tokens(const VocabularySource& source, Spelling spelling);
  Status read_special_ids(const VocabularySource& source);
  Status check_lengths() const;
  void index_specials();
  void index_words();
  void find_ends();
  void mark_end(Token token);

  std::string bytes_;             // All pieces, one after another.
  std::vector<uint32_t> begins_;  // size() + 1 offsets into bytes_.
  std::vector<TokenType> types_;
  std::vector<float> scores_;
  std::vector<bool> ends_;
  std::vector<bool>
      outside_;  // Of byte-level spelling: words with characters that it does not have.
  std::array<int32_t, 256> byte_tokens_{};
  std::vector<Token> specials_;
  SpecialTokens special_ids_;
  VocabularyIndex words_;
  std::vector<std::string> warnings_;
};

// The bytes that a byte-level token spells, appended; false (and nothing appended) where a
// character is not of the alphabet.
bool append_spelled_bytes(std::string_view spelled, std::string& out);
// The bytes that a literal of Python spells between its quotes, appended; false (and nothing
// appended) where it has another escape than \\, \', \", \t, \n, \r or \x and two digits.
bool append_escaped_bytes(std::string_view escaped, std::string& out);
// The same for U+2581: it becomes a space. Always succeeds.
void append_unescaped(std::string_view spaced, std::string& out);

}  // namespace cairn::tokenize
