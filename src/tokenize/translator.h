// A text of one vocabulary as the text of another, kept up while it grows or is rewound; and what
// follows it in the other one, back in the first. Both ways go by the bytes of tokens and cut them
// as the vocabulary cuts text. What cannot be said alike is said as well as it can be: nobody may
// rely on a translation being the text. Thread rule: one thread; the tokenizers outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "tokenize/tokenizer.h"

namespace cairn::tokenize {

class Translator {
 public:
  Translator(const Tokenizer* from, const Tokenizer* to) : from_(from), to_(to) {}

  // Takes note of the text, of what is new at most so many tokens: false where there are more. The
  // last token may change its translation, as may those that stand in the same word before it.
  bool follow(std::span<const Token> text, size_t count_most);
  // In the other vocabulary, with the token that its texts begin with. Special tokens are those
  // that are called alike in both; behind one that the other vocabulary lacks the text begins anew.
  // A character whose bytes are not all there is left out.
  std::span<const Token> text() const { return made_; }

  // A token of the first vocabulary, and which of the other one's tokens begin in it: those from
  // `first` on, up to `end`; none where one began before it and ends in it, or behind it.
  struct Piece {
    Token token;
    size_t first = 0, end = 0;
  };
  // What the text goes on with if its translation goes on with `more`, up to the first special
  // token; nothing where that does not begin with the rest of the character that was left out. A
  // character at the end that is not whole is left out.
  std::span<const Piece> translate_back(std::span<const Token> more);

 private:
  // The translation's token that ends at such a place does not end where bytes of the text do.
  static constexpr size_t kNowhere = SIZE_MAX;
  struct Special {
    size_t begin, end;
  };

  void go_back(size_t count);
  void begin_anew();
  void add(Token token);
  void extend();
  size_t whole_bytes() const;  // Without half a character at the end.
  size_t first_to_change() const;
  bool begins_word(size_t place) const;
  bool is_behind_name() const;     // The text, of a special token.
  bool is_behind_special() const;  // The translation.
  void collect_pieces(size_t begin, size_t end);
  void find_ends(size_t first, size_t begin, size_t end);

  const Tokenizer* from_;
  const Tokenizer* to_;

  std::vector<Token> seen_;   // The text as it was followed,
  std::vector<size_t> ends_;  // and where each token ends in bytes_.
  size_t begin_ = 0;          // So many of its first tokens are not translated.
  std::string bytes_;         // Of the rest, with the names of special tokens.
  std::vector<Special> specials_;
  bool drops_space_ = false;  // Of the next token: it was put before a text by the vocabulary.
  std::vector<Token> made_;
  std::vector<size_t> made_ends_;
  size_t made_bytes_ = 0;  // So many of bytes_ are translated.

  std::vector<TextPiece> pieces_;
  std::vector<size_t> more_begins_;
  std::string more_bytes_;
  std::vector<Token> back_;
  std::vector<Piece> back_pieces_;
};

}  // namespace cairn::tokenize
