// Stretches of text between the tokens of answers.
#include "chat/raw_prompt.h"

#include <string>
#include <utility>
#include <vector>

namespace cairn::chat {

namespace {

// The tokens of an answer that spell the beginning of its text; control tokens are not text.
struct OwnTokens {
  std::span<const Token> tokens;
  size_t bytes = 0;
};

OwnTokens own_tokens(const tokenize::Tokenizer& tokenizer, const Message& said) {
  const std::string_view text = said.content;
  OwnTokens own;
  size_t count = 0;
  for (; count < said.tokens.size(); ++count) {
    const Token token = said.tokens[count];
    if (!tokenizer.holds(token)) break;
    if (tokenizer.is_control(token)) continue;
    const std::string_view piece = tokenizer.piece(token);
    if (!text.substr(own.bytes).starts_with(piece)) break;
    own.bytes += piece.size();
  }
  own.tokens = std::span(said.tokens).first(count);
  return own;
}

// Tokens, and the text behind them that has not become tokens yet.
class Composer {
 public:
  explicit Composer(const tokenize::Tokenizer& tokenizer) : tokenizer_(tokenizer) {
    if (tokenizer.adds_bos()) tokens_.push_back(*tokenizer.special_ids().bos);
  }

  void add_text(std::string_view text, bool is_trusted) {
    if (text.empty()) return;
    pieces_.push_back({text, is_trusted});
    text_bytes_ += text.size();
  }
  void add_tokens(std::span<const Token> tokens) {
    encode_text();
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    goes_on_ = true;
  }
  // A message of the user begins here. The first one, where nothing was said before it, has what
  // the model wants before a text.
  void mark_start() {
    if (!goes_on_ && text_bytes_ == 0) {
      starts_.push_back(0);
    } else {
      marks_.push_back(text_bytes_);
    }
  }
  Prompt finish() && {
    encode_text();
    if (tokenizer_.adds_eos()) tokens_.push_back(*tokenizer_.special_ids().eos);
    // A message at the beginning alone is no place to go back to, and has no turn before it.
    const bool is_first_alone = starts_.size() == 1 && starts_.front() == 0;
    if (!knows_starts_ || is_first_alone) starts_.clear();
    return {.tokens = std::move(tokens_), .message_starts = std::move(starts_)};
  }

 private:
  void encode_text() {
    const size_t begin = tokens_.size();
    tokenizer_.encode_to(pieces_, {.parse_special = true, .goes_on = goes_on_}, tokens_);
    if (!marks_.empty()) find_starts(begin);
    goes_on_ = goes_on_ || !pieces_.empty();
    pieces_.clear();
    marks_.clear();
    text_bytes_ = 0;
  }

  // The tokens from `begin` on are those of the pieces, in which the marks are.
  void find_starts(size_t begin) {
    std::string text, spelled;
    for (const tokenize::TextPiece& piece : pieces_) text += piece.text;
    for (size_t token = begin; token < tokens_.size(); ++token) {
      spelled += tokenizer_.piece(tokens_[token]);
    }
    knows_starts_ = knows_starts_ && spelled.ends_with(text);
    if (!knows_starts_) return;
    size_t token = begin, end = 0;
    const size_t added_bytes = spelled.size() - text.size();  // The blank before a text.
    for (const size_t mark : marks_) {
      while (token < tokens_.size()) {
        const size_t next_end = end + tokenizer_.piece(tokens_[token]).size();
        if (next_end > mark + added_bytes) break;
        end = next_end;
        ++token;
      }
      starts_.push_back(int32_t(token));
    }
  }

  const tokenize::Tokenizer& tokenizer_;
  std::vector<Token> tokens_;
  std::vector<tokenize::TextPiece> pieces_;
  size_t text_bytes_ = 0;      // Of the pieces.
  std::vector<size_t> marks_;  // Where messages begin in them.
  std::vector<int32_t> starts_;
  bool goes_on_ = false;      // Text stands before the pieces.
  bool knows_starts_ = true;  // All tokens so far spell their text.
};

}  // namespace

Prompt encode_raw(const tokenize::Tokenizer& tokenizer, std::string_view system,
                  std::span<const Message> messages) {
  Composer composer(tokenizer);
  composer.add_text(system, true);
  for (const Message& message : messages) {
    if (message.role == "assistant") {
      const OwnTokens own = own_tokens(tokenizer, message);
      if (!own.tokens.empty()) composer.add_tokens(own.tokens);
      composer.add_text(std::string_view(message.content).substr(own.bytes), false);
      continue;
    }
    const bool is_users = message.role == "user";
    if (is_users) composer.mark_start();
    composer.add_text(message.content, is_users);
  }
  return std::move(composer).finish();
}

}  // namespace cairn::chat
