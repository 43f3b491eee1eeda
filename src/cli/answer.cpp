// The loop of sampling and advancing.
#include "cli/answer.h"

#include <chrono>

#include "cli/constraint.h"
#include "text/detokenizer.h"

namespace cairn::cli {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The text of an answer, kept and handed out at the same time.
class TextKeeper {
 public:
  TextKeeper(std::string& text, const AnswerHooks& hooks) : text_(text), hooks_(hooks) {}
  void add(std::string_view piece) {
    if (piece.empty()) return;
    text_ += piece;
    if (hooks_.on_text) hooks_.on_text(piece);
  }

 private:
  std::string& text_;
  const AnswerHooks& hooks_;
};

bool wants_stop(const AnswerHooks& hooks) {
  return hooks.wants_stop && hooks.wants_stop();
}

Result<FinishReason> continue_prompt(const text::Tokenizer& tokenizer, Generator& generator,
                                     sample::Sampler& sampler, const AnswerRequest& request,
                                     const AnswerHooks& hooks, Answer& answer,
                                     Clock::time_point start) {
  text::Detokenizer detokenizer(tokenizer);
  for (const Token token : request.said) detokenizer.push(token);
  CAIRN_TRY(Constraint constraint, Constraint::after(request.matcher, request.said));
  TextKeeper keeper(answer.text, hooks);
  FinishReason finish = FinishReason::length;
  while (int64_t(answer.tokens.size()) != request.token_count_max) {
    if (wants_stop(hooks)) {
      finish = FinishReason::interrupted;
      break;
    }
    if (constraint.is_finished()) {
      finish = FinishReason::stop;
      break;
    }
    CAIRN_TRY(const Token token, constraint.sample(generator, sampler));
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
    keeper.add(detokenizer.push(token));
    CAIRN_TRY(constraint.accept(token));
    if (constraint.is_finished()) {
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
  keeper.add(detokenizer.flush());
  return finish;
}

}  // namespace

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
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

}  // namespace cairn::cli
