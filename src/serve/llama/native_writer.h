// Answers as llama.cpp's own completions: objects, or a stream of them. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "json/value.h"
#include "serve/answer_json.h"
#include "serve/generation.h"
#include "tokenize/tokenizer.h"

namespace cairn::serve::llama {

struct NativeStyle {
  bool is_stream = false;
  bool is_list = false;  // The request had several prompts, or a list of one.
  bool returns_tokens = false;
  bool tells_probabilities = false;
  bool tells_shares = false;  // Not their logarithms.
  int32_t top_count = 0;
  std::string model;
  json::Value settings = {};
  std::vector<std::string> prompts = {};  // Their texts.
  std::vector<std::string> fields = {};   // The members that are wanted; none: all.
  size_t left_out_files = 0;
};

class NativeWriter final : public AnswerWriter {
 public:
  // `tokenizer` must outlive the writer.
  NativeWriter(NativeStyle style, const tokenize::Tokenizer* tokenizer);

  bool is_stream() const override { return style_.is_stream; }
  void begin(const PromptReport&, std::string&) override {}
  void add(size_t choice, const session::AnswerPiece& piece, std::string& out) override;
  void end_choice(size_t choice, const session::Answer& answer, std::string& out) override;
  void gather(size_t choice, const session::AnswerPiece& piece) override;
  void end(std::span<const session::Answer> answers, std::string& out) override;
  void fail(const Refusal& refusal, std::string& out) override;

 private:
  struct Progress {
    int64_t made_tokens = 0;
    std::vector<Token> tokens;       // Of text that has not been sent yet.
    ProbabilityTexts probabilities;  // Of a stream, likewise.
  };
  json::Value last_json(size_t choice, const session::Answer& answer) const;
  void add_last(size_t choice, const session::Answer& answer, std::string& out);
  void add_probabilities(size_t choice, std::string& out);
  json::Value wanted(json::Value whole) const;

  NativeStyle style_;
  std::vector<Progress> progress_;  // By choice.
};

}  // namespace cairn::serve::llama
