// Answers as text completions, the older form: one object, or a stream of chunks. Thread rule: one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/answer_json.h"
#include "serve/generation.h"
#include "tokenize/detokenizer.h"
#include "tokenize/tokenizer.h"

namespace cairn::serve::openai {

// A prompt that its answers repeat.
struct Echo {
  std::string text;
  Token first = {};  // Its first token.
};

struct CompletionStyle {
  bool is_stream = false;
  bool tells_usage = false;
  bool tells_probabilities = false;
  int32_t top_count = 0;
  size_t per_prompt = 1;        // Choices.
  std::vector<Echo> echo = {};  // Of each prompt, where they are repeated.

  // What their probabilities are told by comes when they are read, with the first choice of each.
  bool tells_prompts() const { return tells_probabilities && !echo.empty(); }
};

class CompletionWriter final : public AnswerWriter {
 public:
  // `tokenizer` must outlive the writer.
  CompletionWriter(ObjectHead head, CompletionStyle style, size_t choice_count,
                   const tokenize::Tokenizer* tokenizer);

  bool is_stream() const override { return style_.is_stream; }
  void begin(const PromptReport&, std::string& out) override;
  void add(size_t choice, const session::AnswerPiece& piece, std::string& out) override;
  void end_choice(size_t choice, const session::Answer& answer, std::string& out) override;
  void gather(size_t choice, const session::AnswerPiece& piece) override;
  void end(std::span<const session::Answer> answers, std::string& out) override;
  void fail(const Refusal& refusal, std::string& out) override;

 private:
  // Beside each other, of some tokens one after the other.
  struct Lists {
    TextList tokens, values, tops, offsets;

    void cut(size_t count);
  };
  // Of a token in the text: characters before it. Within a character it is where that begins; a
  // token that gives no text takes no place.
  struct Place {
    size_t characters;
    tokenize::Detokenizer text;

    size_t next(Token token);
  };
  const Echo& echo_of(size_t choice) const { return style_.echo[choice / style_.per_prompt]; }
  void add_token(const sample::LogProbabilities& probability, size_t offset, Lists& lists) const;
  Lists prompt_lists(size_t choice, const session::PromptProbabilities& probabilities) const;
  void add_answer(size_t choice, std::span<const sample::LogProbabilities> probabilities);
  void add_end(size_t choice, const session::Answer& answer);
  void add_choice(size_t choice, std::string_view text, const Lists& prompt, const Lists& lists,
                  const session::Answer* answer, std::string& out) const;
  void add_whole(size_t choice, std::span<const session::Answer> answers, std::string& out);
  void add_echo(size_t choice, const session::PromptProbabilities* probabilities,
                std::string& out) const;
  void add_echoes(size_t choice, const session::PromptProbabilities& probabilities,
                  std::string& out);
  std::string& place_of(size_t choice, std::string& out);
  void chunk(size_t choice, std::string_view text, const Lists& lists,
             const session::Answer* answer, std::string& out) const;

  ObjectHead head_;
  CompletionStyle style_;
  const tokenize::Tokenizer* tokenizer_;
  // By choice; of a stream, of tokens whose text has not been sent yet. And where the next one
  // stands.
  std::vector<Lists> lists_;
  std::vector<Place> places_;
  // Of a stream that tells prompts, by choice: pieces that wait for what stands before them; none
  // once that is written.
  std::vector<std::optional<std::string>> held_;
};

}  // namespace cairn::serve::openai
