// The loop of sampling and advancing.
#include "session/answer.h"

#include <chrono>
#include <optional>

#include "chat/loose_match.h"
#include "session/constraint.h"

namespace cairn::session {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool wants_stop(const AnswerHooks& hooks) {
  return hooks.wants_stop && hooks.wants_stop();
}

// Hands out what tokens tell, and keeps the text.
class Teller {
 public:
  Teller(const tokenize::Tokenizer& tokenizer, const AnswerRequest& request,
         const AnswerHooks& hooks, std::string& text)
      : reader_(&tokenizer, request.format != nullptr ? *request.format : chat::ChatFormat(),
                {.tools = {request.tools.begin(), request.tools.end()},
                 .reads_calls = !request.tools.empty(),
                 .stop = {request.stop.begin(), request.stop.end()},
                 .prompt = request.prompt_end}),
        hooks_(hooks),
        text_(text) {}

  // What was told before.
  void take_up(Token token) { reader_.push(token); }
  void push(Token token) { tell(reader_.push(token)); }
  void finish(bool is_cut) { tell(reader_.finish(is_cut)); }
  const chat::AnswerReader& reader() const { return reader_; }

 private:
  void tell(const std::vector<chat::OutputEvent>& events) {
    for (const chat::OutputEvent& event : events) {
      if (event.kind != chat::OutputEvent::Kind::text) {
        if (hooks_.on_other) hooks_.on_other(event);
        continue;
      }
      text_ += event.text;
      if (hooks_.on_text) hooks_.on_text(event.text);
    }
  }

  chat::AnswerReader reader_;
  const AnswerHooks& hooks_;
  std::string& text_;
};

// What follows once the reasoning has had its tokens: its end, chosen in the model's place.
class ReasoningLimit {
 public:
  ReasoningLimit(const tokenize::Tokenizer& tokenizer, const AnswerRequest& request)
      : tokens_max_(request.reasoning_tokens_max) {
    if (tokens_max_ < 0 || request.format == nullptr) return;
    std::string end = chat::reasoning_end(*request.format);
    if (request.matcher != nullptr) {
      // What follows the end is the matcher's.
      const std::string& close = request.format->channels.reasoning_close;
      end = request.constrains_calls && !close.empty() ? close : chat::trimmed_right(end);
    }
    const tokenize::TextPiece piece{end, true};
    tokenizer.encode_to(std::span(&piece, 1), {.parse_special = true}, forced_);
  }

  std::optional<Token> next(const chat::AnswerReader& reader) {
    const bool is_full = reader.parser().is_reasoning() && tokens_max_ >= 0 &&
                         reader.reasoning_tokens() >= tokens_max_;
    if (given_ == 0 && !is_full) return std::nullopt;
    if (given_ == forced_.size()) return std::nullopt;
    return forced_[given_++];
  }

 private:
  int32_t tokens_max_;
  std::vector<Token> forced_;
  size_t given_ = 0;
};

// Where the matcher has a say. Reasoning is free, and so are headers that it does not know.
class Gate {
 public:
  Gate(const AnswerRequest& request, const chat::OutputParser& parser)
      : parser_(parser), frees_headers_(!request.constrains_calls), constraint_(request.matcher) {}

  // Before each token.
  void open() { is_free_ = parser_.is_reasoning() || (frees_headers_ && parser_.is_in_header()); }
  Result<Token> sample(Generator& generator, sample::Sampler& sampler) {
    return is_free_ ? generator.sample(sampler) : constraint_.sample(generator, sampler);
  }
  // Behind it, when the parser has read it.
  Status accept(Token token) {
    if (!is_free_) return constraint_.accept(token);
    return constraint_.accept(chat::trimmed_left(parser_.behind_reasoning()));
  }
  bool is_finished() const { return constraint_.is_finished(); }

 private:
  const chat::OutputParser& parser_;
  bool frees_headers_;
  bool is_free_ = false;
  Constraint constraint_;
};

Result<FinishReason> continue_prompt(const tokenize::Tokenizer& tokenizer, Generator& generator,
                                     sample::Sampler& sampler, const AnswerRequest& request,
                                     const AnswerHooks& hooks, Answer& answer,
                                     Clock::time_point start) {
  Teller teller(tokenizer, request, hooks, answer.text);
  ReasoningLimit limit(tokenizer, request);
  Gate gate(request, teller.reader().parser());
  for (const Token token : request.said) {
    gate.open();
    teller.take_up(token);
    CAIRN_TRY(gate.accept(token));
  }
  FinishReason finish = FinishReason::length;
  while (int64_t(answer.tokens.size()) != request.token_count_max) {
    if (wants_stop(hooks)) {
      finish = FinishReason::interrupted;
      break;
    }
    if (gate.is_finished()) {
      finish = FinishReason::stop;
      break;
    }
    gate.open();
    const std::optional<Token> forced = limit.next(teller.reader());
    Token token = forced.value_or(Token(-1));
    if (!forced) {
      CAIRN_TRY(token, gate.sample(generator, sampler));
    }
    if (answer.first_token_seconds == 0) answer.first_token_seconds = seconds_since(start);
    if (!tokenizer.holds(token)) {
      return fail(ErrorCode::invalid_data, "vocabulary: expected a token below {}, found {}",
                  tokenizer.token_count(), index_of(token));
    }
    if (tokenizer.is_end_of_generation(token)) {
      finish = FinishReason::stop;
      break;
    }
    answer.tokens.push_back(token);
    if (const int32_t count = sampler.params().probability_count; count > 0) {
      answer.probabilities.push_back(
          forced ? sample::log_probabilities(generator.logits(), token, size_t(count))
                 : sampler.probabilities());
    }
    teller.push(token);
    CAIRN_TRY(gate.accept(token));
    if (teller.reader().parser().has_stopped() || gate.is_finished()) {
      finish = FinishReason::stop;
      break;
    }
    if (int64_t(answer.tokens.size()) == request.token_count_max) break;
    if (generator.room() == 0) {
      finish = FinishReason::context;
      break;
    }
    CAIRN_TRY(generator.advance(token));
  }
  teller.finish(finish != FinishReason::stop);
  answer.message = teller.reader().message();
  answer.reasoning_tokens = teller.reader().reasoning_tokens();
  const bool has_calls = !answer.message.calls.empty();
  return finish == FinishReason::stop && has_calls ? FinishReason::tool_calls : finish;
}

}  // namespace

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::tool_calls:
      return "tool_calls";
    case FinishReason::length:
      return "length";
    case FinishReason::context:
      return "context";
    case FinishReason::interrupted:
      return "interrupted";
  }
  return "";
}

Result<Answer> make_answer(Engine& engine, Generator& generator, const AnswerRequest& request,
                           sample::Sampler& sampler, const AnswerHooks& hooks) {
  CHECK(engine.tokenizer() != nullptr);
  Answer answer;
  const Clock::time_point start = Clock::now();
  const auto on_progress = [&hooks](int32_t done, int32_t total) {
    if (hooks.on_prompt) hooks.on_prompt(done, total);
    return done == total || !wants_stop(hooks);
  };
  Result<PromptReport> report = generator.read(
      request.prompt, {.message_starts = request.message_starts, .on_progress = on_progress});
  answer.prompt_seconds = seconds_since(start);
  if (!report) {
    if (report.error().code != ErrorCode::cancelled) return std::move(report).error();
    answer.finish = FinishReason::interrupted;
    answer.message = {"assistant", "", {}};
    return answer;
  }
  answer.prompt = *report;
  CAIRN_TRY(answer.finish, continue_prompt(*engine.tokenizer(), generator, sampler, request, hooks,
                                           answer, start));
  answer.left_out_tokens = answer.prompt.left_out_tokens + generator.left_out_tokens();
  CAIRN_TRY(generator.finish_turn());
  answer.generation_seconds = seconds_since(start) - answer.prompt_seconds;
  return answer;
}

}  // namespace cairn::session
