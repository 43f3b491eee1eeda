// The generation of one answer. It is driven by its caller: while its source wants rows, the caller
// has them computed; then advance() samples the next token. So many answers can share steps. Knows
// neither what computes nor terminals nor conversations. Thread rule: that of its source.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/answer_reader.h"
#include "chat/output_event.h"
#include "draft/speculator.h"
#include "engine/drafted_answer.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/token_source.h"
#include "sample/sampler.h"
#include "session/answer.h"
#include "session/constraint.h"
#include "session/drafts/drafting.h"

namespace cairn::session {

class Completion final : public DraftedAnswer {
 public:
  // Takes up the prompt where the fewest of its tokens have to be read. The source is used by
  // nobody else until the answer has ended. Both pointers outlive it; never null. Errors: those of
  // TokenSource::start(); invalid_argument where the answer's prefix does not fit what the answer
  // must look like.
  static Result<std::unique_ptr<Completion>> begin(const tokenize::Tokenizer* tokenizer,
                                                   TokenSource* source,
                                                   const AnswerRequest& request,
                                                   sample::Sampler sampler);
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  bool is_done() const { return is_done_; }
  // The prompt's rows are computed: the next ones are the answer's.
  bool has_prompt() const { return has_prompt_; }
  // Tokens of the prompt that are in memory, and of the whole prompt.
  int32_t prompt_tokens_done() const { return source_->length(); }
  int32_t prompt_tokens() const { return answer_.prompt.prompt_tokens; }
  // What is reused of the prompt, computed and left out: known before anything is computed.
  const PromptReport& prompt() const { return answer_.prompt; }

  // Chooses the token that follows from these logits, [vocabulary], in place of the source's. In
  // the receipt it is one that was given. REQUIRES: it is not chosen yet.
  void give_logits(std::vector<float> logits);
  // The token that follows is chosen, and advance() takes it.
  bool has_choice() const { return chosen_.has_value(); }
  // From now on what follows is drafted. `lane`: the source. `request`: that which the answer was
  // begun with. Both and `drafting` outlive this.
  void draft(Lane* lane, Drafting& drafting, const DraftOrder& order, const AnswerRequest& request,
             uint64_t tenant);
  void draft_by(Lane* lane, Drafters drafters, int32_t count_max) {
    lane_ = lane;
    speculator_ = std::move(drafters.speculator);
    row_readers_ = std::move(drafters.row_readers);
    draft_count_max_ = count_max;
  }
  bool has_drafters() const { return speculator_ != nullptr; }
  std::span<const float> propose(int32_t count_max) override;
  void check(int32_t count) override;
  int32_t take(const StepOutputs& outputs) override;
  void see(const StepOutputs& outputs) override;
  void learn(double step_seconds, double plain_seconds) override;

  // Chooses the token that follows, unless that was done or the answer has ended. Completions of
  // different lanes may do this side by side, on any thread, but those that share a matcher.
  // REQUIRES: the source wants no rows.
  void choose();
  bool has_matcher() const { return constraint_.has_matcher(); }
  // Chooses the token that follows, and either adds it to the source or ends the answer.
  // REQUIRES: those of choose(); !is_done(). Errors: those of the sampler, of the matcher and of
  // TokenSource::push(); the answer cannot be gone on with then.
  Status advance();
  // What the computing of rows said. A memory budget that gets full while an answer is made ends
  // the answer; its text stays. Errors: all others.
  Status take_step(Status stepped);
  // Ends the answer where it stands.
  void stop() { end(FinishReason::interrupted); }

  // What became of the tokens since the last call, in order: pieces of text (whole characters), of
  // reasoning and of calls.
  std::vector<chat::OutputEvent> take_events();
  // The same into a list, whose memory the next ones have.
  void take_events(std::vector<chat::OutputEvent>& events);
  // Those of the tokens since the last call, one for each; none where the sampler's parameters ask
  // for none.
  std::vector<sample::LogProbabilities> take_probabilities();
  // Instead, for who tells them beside the text: without those of tokens whose text is held back,
  // which may turn out to be a stop text's. The answer keeps them too.
  std::vector<sample::LogProbabilities> take_settled_probabilities();
  // Those since the last call; valid until the next one is chosen.
  std::span<const Token> take_tokens();
  // The whole answer. What was computed for it is kept for whoever goes on from there.
  // REQUIRES: is_done(). Errors: those of TokenSource::finish_turn().
  Result<Answer> finish();
  const sample::Sampler& sampler() const { return sampler_; }
  // What the sampler's stages remember, for going on with the answer.
  const sample::SamplerState& sampler_state() const { return sampler_.state(); }

 private:
  using Clock = std::chrono::steady_clock;
  // The end of reasoning that has had its tokens, chosen in the model's place.
  class ReasoningLimit {
   public:
    ReasoningLimit(const tokenize::Tokenizer& tokenizer, const AnswerRequest& request);
    std::optional<Token> next(const chat::AnswerReader& reader);

   private:
    int32_t tokens_max_;
    std::vector<Token> forced_;
    size_t given_count_ = 0;
  };

  Completion(const tokenize::Tokenizer& tokenizer, TokenSource* source,
             const AnswerRequest& request, sample::Sampler sampler);
  Status take_prefix(std::span<const Token> prefix);
  bool is_full() const { return int64_t(answer_.tokens.size()) == token_count_max_; }
  Status add(Token token);  // To the answer, which it may end; not to the source.
  void keep(size_t first_event);
  size_t settled_count() const;
  std::vector<sample::LogProbabilities> take_probabilities_to(size_t end);
  void end_full();
  void end(FinishReason reason, std::string cut_by = {});
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - begin_time_).count();
  }

  const tokenize::Tokenizer& tokenizer_;
  TokenSource* source_;
  Lane* lane_ = nullptr;  // The source where tokens are drafted.
  sample::Sampler sampler_;
  ChoiceLog* choices_;  // Null: nobody wants to know.
  int32_t token_count_max_;
  chat::AnswerReader reader_;
  ConstraintState constraint_;
  ReasoningLimit reasoning_limit_;
  std::unique_ptr<draft::Speculator> speculator_;  // Null: nothing is drafted.
  std::vector<RowReader*> row_readers_;            // Some of its drafters.
  draft::Speculator::Proposal proposal_;
  int32_t draft_count_max_ = 0;
  Answer answer_;
  // The token that follows, once it is chosen, and what was asked to be known of it.
  std::optional<Result<Token>> chosen_;
  std::vector<float> given_logits_;  // Of the token that follows; empty: the source's.
  sample::LogProbabilities chosen_probabilities_;
  std::vector<chat::OutputEvent> events_;
  size_t prefix_tokens_ = 0;                         // That were read before the answer's.
  size_t told_probabilities_ = 0, told_tokens_ = 0;  // Of the answer's.
  Clock::time_point begin_time_;
  bool has_prompt_ = false, is_done_ = false;
};

struct AnswerHooks {
  std::function<void(std::string_view)> on_text;               // Complete characters.
  std::function<void(const chat::OutputEvent&)> on_other;      // Reasoning and calls.
  std::function<void(int32_t done, int32_t total)> on_prompt;  // Tokens of the prompt.
  std::function<bool()> wants_stop;                            // Asked between steps.
};

// Drives an answer of this lane alone until it is done, with drafts if it has any. Errors: those of
// Completion::advance() and take_step().
Status drive(Engine& engine, Lane& lane, Completion& completion, const AnswerHooks& hooks);

}  // namespace cairn::session
