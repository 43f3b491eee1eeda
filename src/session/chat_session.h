// A conversation with a model: branches of messages, and the lane with the cache of the active
// branch; those of the others are in the engine's prefix cache. The longest cached prefix of a turn
// is not computed again. Knows no terminal. Thread rule: the engine's thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "grammar/matcher.h"
#include "sample/params.h"
#include "session/answer.h"
#include "session/completion.h"
#include "session/constraint.h"
#include "session/conversation.h"
#include "session/dialogue.h"
#include "session/drafts/drafting.h"
#include "session/read_ahead.h"
#include "session/receipt.h"

namespace cairn::session {

struct ChatOptions {
  std::string system;
  sample::SamplingParams sampling;
  int32_t token_count_max = -1;  // Of an answer; negative: as many as the model likes.
  // What answers must look like; null: anything. Outlives the session.
  grammar::Matcher* matcher = nullptr;
  bool raw = false;        // No template: the prompt is the text of all turns.
  std::string tools = {};  // A JSON list in OpenAI's form; what may be called.
  // auto, none, required or a tool's name: calls fit the tools' schemas; empty: as the model likes.
  std::string tool_choice = {};
  chat::ReasoningMode reasoning = chat::ReasoningMode::automatic;
  int32_t reasoning_tokens_max = -1;   // Negative: as many as the model likes.
  std::vector<std::string> stop = {};  // Texts that end an answer.
  bool keeps_receipts = false;         // For ChatSession::receipt().
  bool keeps_seed = false;             // load() leaves the seed as it is, whatever was saved.
  ConstraintChoice constraint = {};    // What `matcher` was made of; for receipts.
};

class ChatSession {
 public:
  // `engine` must outlive the session. Errors: unsupported, if the model has no vocabulary or no
  // form for the tools' calls; invalid_data, where the tools are none.
  static Result<ChatSession> start(Engine* engine, ChatOptions options);

  // Each of these begins an answer, which completion() is driven to the end of; end_answer() takes
  // it into the conversation. An answer that was interrupted stays as far as it went. Errors: those
  // of the template and of Completion::begin(); the conversation is as before then.
  //
  // Adds a message of the user.
  Status say(std::string_view text);
  // Adds the results of the last answer's calls, in their order. Errors: invalid_argument: not as
  // many results as calls.
  Status give_results(std::span<const std::string> results);
  // Answers the last message again, with the next seed. Errors: invalid_argument: nothing to
  // answer.
  Status regenerate();
  // Goes on with an answer that was interrupted or reached its limit; the same seed says what it
  // would have said. Errors: invalid_argument: no answer.
  Status continue_answer();
  // Puts `text` in place of the user's last message. Errors: invalid_argument: none.
  Status edit(std::string_view text);

  // The answer that is being made. REQUIRES: one was begun, and has not been ended.
  Completion& completion() { return *completion_; }
  // Of a completion that is done, or, with an error of driving it, of one that cannot be: then the
  // conversation is as it was before, and the error comes back.
  Result<Answer> end_answer(Status driven = Ok{});
  // Drives the answer alone, and ends it.
  Result<Answer> complete(const AnswerHooks& hooks = {});

  // What the prompt behind the last answer will begin with, whatever is said next. Empty where that
  // is not known, or is in memory.
  Result<PromptBeginning> next_beginning() const;

  // Of the last answer that has ended; nothing before it, or where receipts are not asked for.
  const std::optional<Receipt>& receipt() const { return receipt_; }

  // The calls of the last message that have no result yet.
  std::span<const chat::ToolCall> open_calls() const { return dialogue_.open_calls(); }
  // The user's last message. Errors: invalid_argument: none.
  Result<std::string> last_message() const { return dialogue_.last_message(); }

  // Takes the last turns back: a message and its answer each. Errors: invalid_argument: there are
  // fewer.
  Result<memory::ResumePlan> rewind(int32_t turns);
  int32_t turn_count() const { return dialogue_.turn_count(); }

  // A branch that starts with the same messages, and goes on there. Errors: invalid_argument: the
  // name is taken, or nothing was said yet.
  Status fork(std::string_view name) { return dialogue_.fork(name); }
  // Errors: invalid_argument, with the names that there are.
  Result<memory::ResumePlan> switch_to(std::string_view name);
  const std::vector<Branch>& branches() const { return dialogue_.branches(); }
  size_t active_branch() const { return dialogue_.active_branch(); }

  // The messages as {"messages": [{"role", "content"}, …]}, the form that chat clients send, with
  // the answers' token ids, which a session of the same vocabulary takes up again, and the seed and
  // the sampler's state, by which continue_answer() goes on as if nothing had been.
  // Errors: io; load: also invalid_data. After an error nothing has changed.
  Status save(const std::string& path) const;
  Status load(const std::string& path);

  // Forgets all turns of the branch; the system message stays.
  void clear();
  void set_system(std::string_view text) {
    ++change_count_;
    options_.system = text;
  }
  // From the next answer on by these, and all that was said is read by them too. Errors: those of
  // Engine::select(); nothing has changed then.
  Status choose_adapters(std::span<const AdapterUse> uses);

  // Grows with every change of what save() would write.
  int64_t change_count() const { return change_count_; }

  const Dialogue& dialogue() const { return dialogue_; }
  // Of the active branch: turns of user and assistant.
  const MessageList& messages() const { return dialogue_.messages(); }
  bool is_raw() const { return options_.raw; }  // Asked for, or the model has no template.
  const std::string& system() const { return options_.system; }
  const chat::ChatFormat& format() const;
  // For what is answered from now on.
  sample::SamplingParams& sampling() { return options_.sampling; }
  ChatOptions& options() { return options_; }
  uint64_t seed() const { return options_.sampling.seed; }
  const Lane& lane() const { return lane_; }

 private:
  ChatSession(Engine* engine, ChatOptions options);
  Result<Prompt> prompt(std::span<const Message> messages) const;
  Result<std::optional<Prompt>> prompt_behind(std::span<const Message> messages) const;
  // What going on behind these messages costs, as far as the sequences tell.
  Result<memory::ResumePlan> plan_behind(const MessageList& messages) const;
  Result<memory::ResumePlan> go_to(Dialogue dialogue);
  chat::PromptOptions prompt_options() const;
  // `messages`: those that the prompt was made of.
  AnswerRequest request(const Prompt& asked, std::span<const Message> messages) const;
  Status constrain_calls();
  ReceiptForm receipt_form(bool is_to_results) const;
  Status begin_answer(Dialogue asked, bool continues);
  void recall();

  Engine* engine_;
  ChatOptions options_;
  std::vector<chat::Tool> tools_;
  CallMatchers calls_;
  std::string calls_end_;  // The prompt's last bytes where calls are constrained.
  Lane lane_;
  std::unique_ptr<Drafting> drafting_;
  Dialogue dialogue_;
  std::unique_ptr<Completion> completion_;
  Dialogue before_;         // Where the answer that is made fails.
  bool continues_ = false;  // It goes on with the last message.
  int64_t change_count_ = 0;
  std::unique_ptr<ReceiptDraft> draft_;  // Of the answer that is made.
  std::optional<Receipt> receipt_;
};

}  // namespace cairn::session
