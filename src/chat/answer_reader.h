// Parses an answer while it is generated: tokens become text, text becomes events, and events add
// up to a message. Tokens that are markers of the format are parsed by their names; other control
// tokens are not text. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "chat/conversation.h"
#include "chat/output_parser.h"
#include "tokenize/detokenizer.h"
#include "tokenize/tokenizer.h"

namespace cairn::chat {

class AnswerReader {
 public:
  // `tokenizer` must outlive the reader.
  AnswerReader(const tokenize::Tokenizer* tokenizer, const ChatFormat& format,
               ParserOptions options);

  // Adds what the token tells to `events`. REQUIRES: the tokenizer holds it; it does not end
  // generation.
  void push(Token token, std::vector<OutputEvent>& events);
  // `is_cut`: the model would have gone on.
  void finish(bool is_cut, std::vector<OutputEvent>& events);

  const OutputParser& parser() const { return parser_; }
  int32_t reasoning_tokens() const { return reasoning_tokens_; }
  // Tokens that belong to what the answer tells, whatever follows: those whose text begins before
  // what the parser holds back, and in the end all that begin before the stop text. A token that
  // has the end of the text and the beginning of the stop text is one of them: some of it is told,
  // and its probability is that of the whole token. It never becomes less.
  size_t settled_tokens() const { return message_.tokens.size() - unsettled_.size(); }
  // All of it so far. Where the answer is nothing but text, the content is that of its tokens to
  // the byte; calls that were not finished are left out.
  Message message() const;

 private:
  void add(std::span<const OutputEvent> events);
  void push_text(std::string_view text, std::vector<OutputEvent>& events);
  void settle();

  const tokenize::Tokenizer* tokenizer_;
  tokenize::Detokenizer detokenizer_;
  OutputParser parser_;
  Message message_;
  std::string plain_;           // The text of all tokens.
  std::vector<bool> is_whole_;  // Of the calls.
  int32_t reasoning_tokens_ = 0;
  size_t pushed_bytes_ = 0;  // To the parser.
  // Of the last tokens, where they begin among these; within a character: where that begins.
  std::vector<size_t> unsettled_;
};

}  // namespace cairn::chat
