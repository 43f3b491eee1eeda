// Turns of a conversation.
#include "session/chat_session.h"

#include <chrono>
#include <utility>

#include "sample/sampler.h"
#include "session/transcript.h"

namespace cairn::session {

namespace {

bool asks_with_results(std::span<const Message> messages) {
  return !messages.empty() && messages.back().role == "tool";
}

}  // namespace

Result<ChatSession> ChatSession::start(Engine* engine, ChatOptions options) {
  if (engine->tokenizer() == nullptr) {
    return fail(ErrorCode::unsupported,
                "tokenizer.ggml.model: expected a vocabulary, found none: this model cannot chat");
  }
  options.raw = options.raw || engine->chat_template() == nullptr;
  ChatSession session(engine, std::move(options));
  if (session.options_.tools.empty()) {
    if (session.options_.tool_choice.empty()) return session;
    return fail(ErrorCode::invalid_argument, "tool choice: expected tools, found none");
  }
  CAIRN_TRY(session.tools_, chat::read_tools(session.options_.tools));
  if (session.format().call.shape == chat::CallShape::none) {
    return fail(ErrorCode::unsupported,
                "tokenizer.chat_template: expected a form for tool calls, found none");
  }
  CAIRN_TRY(session.constrain_calls());
  return session;
}

Status ChatSession::constrain_calls() {
  if (options_.tool_choice.empty()) return Ok{};
  if (options_.matcher != nullptr) {
    return fail(ErrorCode::invalid_argument,
                "expected a tool choice or what the answer looks like, found both");
  }
  const Message question{"user", "x"};
  CAIRN_TRY(const Prompt asked, prompt(std::span(&question, 1)));
  calls_end_ = asked.end;
  CAIRN_TRY(calls_, make_call_matchers(*engine_, format(), tools_,
                                       {.choice = options_.tool_choice, .prompt_end = asked.end}));
  return Ok{};
}

ChatSession::ChatSession(Engine* engine, ChatOptions options)
    : engine_(engine),
      options_(std::move(options)),
      lane_(engine),
      drafting_(std::make_unique<Drafting>(engine)) {}

// What earlier runs have said, as far as that takes no time that anybody notices.
void ChatSession::recall() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(20);
  while (drafting_->recall() == Drafting::Recall::more && Clock::now() < end) {
  }
}

Result<Prompt> ChatSession::prompt(std::span<const Message> messages) const {
  if (options_.raw) return encode_raw(*engine_, options_.system, messages);
  std::vector<Message> all;
  if (!options_.system.empty()) all.push_back({"system", options_.system});
  all.insert(all.end(), messages.begin(), messages.end());
  return encode_conversation(*engine_, all, &format(), prompt_options());
}

chat::PromptOptions ChatSession::prompt_options() const {
  chat::PromptOptions prompt{.tools = options_.tools};
  chat::set_reasoning(format(), options_.reasoning, prompt);
  return prompt;
}

AnswerRequest ChatSession::request(const Prompt& asked, std::span<const Message> messages) const {
  const bool is_to_results = asks_with_results(messages);
  grammar::Matcher* const calls = calls_.matcher(is_to_results);
  return {.prompt = asked.tokens,
          .message_starts = asked.message_starts,
          .answer_prefix = {},
          .token_count_max = options_.token_count_max,
          .matcher = calls != nullptr ? calls : options_.matcher,
          .constrains_calls = calls != nullptr,
          .format = options_.raw ? nullptr : &format(),
          .tools = tools_,
          .stop = options_.stop,
          .prompt_end = asked.end,
          .reasoning_tokens_max = options_.reasoning_tokens_max};
}

ReceiptForm ChatSession::receipt_form(bool is_to_results) const {
  return {.constraint = options_.constraint,
          .tools = options_.tools,
          .tool_choice = options_.tool_choice,
          .calls_end = calls_end_,
          .is_to_results = is_to_results};
}

// The format in which all is text where there is no template, or none is wanted.
const chat::ChatFormat& ChatSession::format() const {
  static const chat::ChatFormat plain;
  return options_.raw ? plain : engine_->chat_format();
}

// Answers the messages as `asked` has them. `continues`: the last one is the beginning of the
// answer.
Status ChatSession::begin_answer(Dialogue asked, bool continues) {
  completion_.reset();
  draft_.reset();
  const std::vector<Message> asking =
      asked.messages().copy(asked.messages().size() - (continues ? 1 : 0));
  CAIRN_TRY(Prompt made, prompt(asking));
  sample::Sampler sampler(options_.sampling, engine_->tokenizer());
  AnswerRequest wanted = request(made, asking);
  std::vector<Token> prefix;
  if (continues) {
    const Message& said = asked.messages().back();
    prefix = said.tokens;
    if (prefix.empty()) prefix = engine_->tokenizer()->encode(said.content, {.goes_on = true});
    made.tokens.insert(made.tokens.end(), prefix.begin(), prefix.end());
    wanted.prompt = made.tokens;
    wanted.answer_prefix = prefix;
    sampler.set_state(asked.sampler());
  }
  if (options_.keeps_receipts) {
    draft_ = std::make_unique<ReceiptDraft>(*engine_, lane_.selection(), wanted, sampler,
                                            receipt_form(asks_with_results(asking)));
    wanted.choices = &draft_->choices;
  }
  CAIRN_TRY(completion_,
            Completion::begin(engine_->tokenizer(), &lane_, wanted, std::move(sampler)));
  recall();
  completion_->draft(&lane_, *drafting_, {}, wanted, 0);
  before_ = std::exchange(dialogue_, std::move(asked));
  continues_ = continues;
  return Ok{};
}

Result<Answer> ChatSession::end_answer(Status driven) {
  CHECK(completion_ != nullptr);
  const std::unique_ptr<Completion> completion = std::move(completion_);
  const auto end = [&]() -> Result<Answer> {
    CAIRN_TRY(std::move(driven));
    return completion->finish();
  };
  Result<Answer> answer = end();
  if (!answer) {
    dialogue_ = std::move(before_);
    return answer;
  }
  if (!lane_.is_reading()) drafting_->remember(0, lane_.whole_text());
  if (draft_ != nullptr) receipt_ = std::move(*draft_).finish(answer->finish);
  if (continues_ && answer->tokens.empty()) return answer;
  dialogue_.add_answer(answer->message, continues_, format().call, completion->sampler_state());
  ++change_count_;
  return answer;
}

Result<Answer> ChatSession::complete(const AnswerHooks& hooks) {
  return end_answer(drive(*engine_, lane_, completion(), hooks));
}

Status ChatSession::say(std::string_view text) {
  Dialogue asked = dialogue_;
  asked.add({"user", std::string(text)});
  return begin_answer(std::move(asked), false);
}

Status ChatSession::give_results(std::span<const std::string> results) {
  Dialogue asked = dialogue_;
  CAIRN_TRY(asked.give_results(results));
  return begin_answer(std::move(asked), false);
}

Status ChatSession::regenerate() {
  Dialogue asked = dialogue_;
  CAIRN_TRY(asked.drop_answer());
  ++options_.sampling.seed;
  return begin_answer(std::move(asked), false);
}

Status ChatSession::continue_answer() {
  CAIRN_TRY(dialogue_.check_continues());
  return begin_answer(dialogue_, true);
}

Status ChatSession::edit(std::string_view text) {
  Dialogue asked = dialogue_;
  CAIRN_TRY(asked.edit(text));
  return begin_answer(std::move(asked), false);
}

Result<std::optional<Prompt>> ChatSession::prompt_behind(std::span<const Message> messages) const {
  if (options_.raw) return std::optional<Prompt>();
  return session::prompt_behind(messages,
                                [this](std::span<const Message> all) { return prompt(all); });
}

Result<PromptBeginning> ChatSession::next_beginning() const {
  PromptBeginning beginning{.selection = lane_.selection()};
  CAIRN_TRY(std::optional<Prompt> behind, prompt_behind(messages().copy()));
  const int32_t context = engine_->options().context_tokens;
  if (!behind || behind->tokens.empty() || int64_t(behind->tokens.size()) >= context) {
    return beginning;
  }
  if (lane_.plan_reading(behind->tokens, behind->message_starts, false).forward_tokens == 0) {
    return beginning;
  }
  beginning.tokens = std::move(behind->tokens);
  beginning.message_starts = std::move(behind->message_starts);
  return beginning;
}

Result<memory::ResumePlan> ChatSession::plan_behind(const MessageList& messages) const {
  if (messages.empty()) return memory::ResumePlan{};
  const std::vector<Message> kept = messages.copy();
  CAIRN_TRY(const std::optional<Prompt> behind, prompt_behind(kept));
  if (behind) return lane_.plan(behind->tokens, behind->message_starts, false);
  CAIRN_TRY(const Prompt asked, prompt(kept));
  return lane_.plan(asked.tokens, asked.message_starts, kept.back().role != "assistant");
}

Status ChatSession::choose_adapters(std::span<const AdapterUse> uses) {
  CAIRN_TRY(Selection selection, engine_->select(uses));
  lane_.select(std::move(selection));
  return Ok{};
}

Result<memory::ResumePlan> ChatSession::rewind(int32_t turns) {
  Dialogue rewound = dialogue_;
  CAIRN_TRY(rewound.rewind(turns));
  return go_to(std::move(rewound));
}

Result<memory::ResumePlan> ChatSession::switch_to(std::string_view name) {
  Dialogue switched = dialogue_;
  CAIRN_TRY(switched.switch_to(name));
  return go_to(std::move(switched));
}

// What going on there costs. After an error nothing has changed.
Result<memory::ResumePlan> ChatSession::go_to(Dialogue dialogue) {
  CAIRN_TRY(memory::ResumePlan plan, plan_behind(dialogue.messages()));
  dialogue_ = std::move(dialogue);
  ++change_count_;
  return plan;
}

Status ChatSession::save(const std::string& path) const {
  std::vector<Message> all;
  if (!options_.system.empty()) all.push_back({"system", options_.system});
  all.insert(all.end(), messages().begin(), messages().end());
  return write_transcript(path, {.messages = std::move(all),
                                 .vocabulary = engine_->tokenizer()->digest(),
                                 .seed = seed(),
                                 .sampler = dialogue_.sampler()});
}

Status ChatSession::load(const std::string& path) {
  CAIRN_TRY(Transcript transcript, read_transcript(path));
  std::vector<Message>& loaded = transcript.messages;
  const tokenize::Tokenizer& tokenizer = *engine_->tokenizer();
  const bool knows_ids = transcript.vocabulary == tokenizer.digest();
  CAIRN_TRY(take_tokens(loaded, transcript.vocabulary, tokenizer, path));
  const bool has_system = !loaded.empty() && loaded.front().role == "system";
  options_.system = has_system ? loaded.front().content : "";
  if (has_system) loaded.erase(loaded.begin());
  dialogue_.replace(MessageList(std::move(loaded)),
                    knows_ids ? std::move(transcript.sampler) : sample::SamplerState());
  if (transcript.seed && !options_.keeps_seed) options_.sampling.seed = *transcript.seed;
  ++change_count_;
  return Ok{};
}

void ChatSession::clear() {
  ++change_count_;
  dialogue_.replace({});
}

}  // namespace cairn::session
