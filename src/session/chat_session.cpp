// Turns of a conversation.
#include "session/chat_session.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sample/sampler.h"
#include "session/transcript.h"

namespace cairn::session {

namespace {

constexpr char kFirstBranch[] = "main";

bool is_answer(const Message& message) {
  return message.role == "assistant";
}

bool is_users(const Message& message) {
  return message.role == "user";
}

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
  CAIRN_TRY(calls_,
            make_call_matchers(*engine_, format(), tools_, options_.tool_choice, asked.end));
  return Ok{};
}

ChatSession::ChatSession(Engine* engine, ChatOptions options)
    : engine_(engine), options_(std::move(options)), lane_(engine) {
  branches_.push_back({.name = kFirstBranch});
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

// Answers the messages as they are now; `before` is what comes back where that fails. `continues`:
// the last message is the beginning of the answer.
Status ChatSession::begin_answer(std::vector<Message> before, bool continues) {
  completion_.reset();
  draft_.reset();
  const auto begin = [&]() -> Status {
    const size_t asked_count = messages().size() - (continues ? 1 : 0);
    const std::span<const Message> asking = std::span(messages()).first(asked_count);
    CAIRN_TRY(Prompt asked, prompt(asking));
    sample::Sampler sampler(options_.sampling, engine_->tokenizer());
    AnswerRequest wanted = request(asked, asking);
    if (continues) {
      Message& said = active().back();
      if (said.tokens.empty()) {
        said.tokens = engine_->tokenizer()->encode(said.content, {.goes_on = true});
      }
      asked.tokens.insert(asked.tokens.end(), said.tokens.begin(), said.tokens.end());
      wanted.prompt = asked.tokens;
      wanted.answer_prefix = said.tokens;
      sampler.set_state(branches_[active_].sampler);
    }
    if (options_.keeps_receipts) {
      draft_ = std::make_unique<ReceiptDraft>(*engine_, lane_.selection(), wanted, sampler,
                                              receipt_form(asks_with_results(asking)));
      wanted.choices = &draft_->choices;
    }
    CAIRN_TRY(completion_, Completion::begin(engine_, &lane_, wanted, std::move(sampler)));
    return Ok{};
  };
  Status begun = begin();
  if (!begun) active() = std::move(before);
  before_ = std::move(before);
  continues_ = continues;
  return begun;
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
    active() = std::move(before_);
    return answer;
  }
  if (draft_ != nullptr) receipt_ = std::move(*draft_).finish(answer->finish);
  branches_[active_].sampler = completion->sampler_state();
  if (continues_ && answer->tokens.empty()) return answer;
  if (continues_) active().pop_back();
  Message said = answer->message;
  name_calls(said, messages());
  active().push_back(std::move(said));
  ++change_count_;
  return answer;
}

Result<Answer> ChatSession::complete(const AnswerHooks& hooks) {
  return end_answer(drive(*engine_, completion(), hooks));
}

// A result is told apart by its call's id, so that none may be there twice.
void ChatSession::name_calls(Message& said, std::span<const Message> before) const {
  std::set<std::string> known;
  for (const Message& message : before) {
    for (const chat::ToolCall& call : message.calls) known.insert(call.id);
  }
  for (size_t call = 0; call < said.calls.size(); ++call) {
    std::string& id = said.calls[call].id;
    for (size_t place = before.size(); id.empty() || known.contains(id); ++place) {
      id = chat::make_call_id(format().call, place, call);
    }
    known.insert(id);
  }
}

Status ChatSession::say(std::string_view text) {
  std::vector<Message> before = messages();
  active().push_back({"user", std::string(text)});
  return begin_answer(std::move(before), false);
}

std::span<const chat::ToolCall> ChatSession::open_calls() const {
  if (messages().empty()) return {};
  return messages().back().calls;
}

Status ChatSession::give_results(std::span<const std::string> results) {
  const std::span<const chat::ToolCall> open = open_calls();
  if (open.empty() || results.size() != open.size()) {
    return fail(ErrorCode::invalid_argument, "tool results: expected {}, found {}", open.size(),
                results.size());
  }
  std::vector<Message> before = messages();
  const std::vector<chat::ToolCall> calls(open.begin(), open.end());
  for (size_t call = 0; call < calls.size(); ++call) {
    Message result{"tool", results[call]};
    result.call_id = calls[call].id;
    result.name = calls[call].name;
    active().push_back(std::move(result));
  }
  return begin_answer(std::move(before), false);
}

Status ChatSession::regenerate() {
  if (messages().empty()) {
    return fail(ErrorCode::invalid_argument, "expected an answer to make again, found none");
  }
  std::vector<Message> before = messages();
  if (is_answer(before.back())) active().pop_back();
  ++options_.sampling.seed;
  return begin_answer(std::move(before), false);
}

Status ChatSession::continue_answer() {
  if (messages().empty() || !is_answer(messages().back())) {
    return fail(ErrorCode::invalid_argument, "expected an answer to continue, found none");
  }
  return begin_answer(messages(), true);
}

Result<std::string> ChatSession::last_message() const {
  const auto found = std::find_if(messages().rbegin(), messages().rend(), is_users);
  if (found == messages().rend()) {
    return fail(ErrorCode::invalid_argument, "expected a message to change, found none");
  }
  return found->content;
}

Status ChatSession::edit(std::string_view text) {
  if (Result<std::string> last = last_message(); !last) return std::move(last).error();
  std::vector<Message> before = messages();
  while (!is_users(active().back())) active().pop_back();
  active().back() = {"user", std::string(text)};
  return begin_answer(std::move(before), false);
}

int32_t ChatSession::turn_count() const {
  return int32_t(std::count_if(messages().begin(), messages().end(), is_users));
}

// Where an answer is last, a message of the user follows: its start is where reading goes on. It is
// found by a message whose text does not matter. The prompt up to there; none where that is not
// known.
Result<std::optional<Prompt>> ChatSession::prompt_behind(std::span<const Message> messages) const {
  std::optional<Prompt> asked;
  if (messages.empty() || !is_answer(messages.back()) || options_.raw) return asked;
  std::vector<Message> followed(messages.begin(), messages.end());
  followed.push_back({"user", "x"});
  CAIRN_TRY(asked, prompt(followed));
  if (asked->message_starts.empty()) {
    asked.reset();
  } else {
    asked->tokens.resize(size_t(asked->message_starts.back()));
  }
  return asked;
}

Result<PromptBeginning> ChatSession::next_beginning() const {
  PromptBeginning beginning{.selection = lane_.selection()};
  CAIRN_TRY(std::optional<Prompt> behind, prompt_behind(messages()));
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

Result<memory::ResumePlan> ChatSession::plan_behind(size_t count) const {
  if (count == 0) return memory::ResumePlan{};
  const std::span<const Message> kept = std::span(messages()).first(count);
  CAIRN_TRY(const std::optional<Prompt> behind, prompt_behind(kept));
  if (behind) return lane_.plan(behind->tokens, behind->message_starts, false);
  CAIRN_TRY(const Prompt asked, prompt(kept));
  return lane_.plan(asked.tokens, asked.message_starts, !is_answer(kept.back()));
}

Status ChatSession::choose_adapters(std::span<const AdapterUse> uses) {
  CAIRN_TRY(Selection selection, engine_->select(uses));
  lane_.select(std::move(selection));
  return Ok{};
}

Result<memory::ResumePlan> ChatSession::rewind(int32_t turns) {
  if (turn_count() == 0) {
    return fail(ErrorCode::invalid_argument, "expected a turn to take back, found none");
  }
  if (turns < 1 || turns > turn_count()) {
    return fail(ErrorCode::invalid_argument, "expected 1 to {} turns, found {}", turn_count(),
                turns);
  }
  size_t kept = messages().size();
  for (int32_t turn = 0; turn < turns; ++turn) {
    while (!is_users(messages()[kept - 1])) --kept;
    --kept;
  }
  CAIRN_TRY(const memory::ResumePlan plan, plan_behind(kept));
  ++change_count_;
  active().resize(kept);
  branches_[active_].sampler = {};
  return plan;
}

Status ChatSession::fork(std::string_view name) {
  if (messages().empty()) {
    return fail(ErrorCode::invalid_argument, "expected a conversation, found no message");
  }
  for (const Branch& branch : branches_) {
    if (branch.name != name) continue;
    return fail(ErrorCode::invalid_argument, "expected a new name, found \"{}\" again", name);
  }
  Branch forked = branches_[active_];
  forked.name = name;
  branches_.push_back(std::move(forked));
  active_ = branches_.size() - 1;
  return Ok{};
}

Result<memory::ResumePlan> ChatSession::switch_to(std::string_view name) {
  std::string known;
  for (size_t branch = 0; branch < branches_.size(); ++branch) {
    if (branches_[branch].name == name) {
      const size_t left = std::exchange(active_, branch);
      Result<memory::ResumePlan> plan = plan_behind(messages().size());
      change_count_ += plan ? 1 : 0;
      if (!plan) active_ = left;
      return plan;
    }
    known += (branch == 0 ? "" : ", ") + branches_[branch].name;
  }
  return fail(ErrorCode::invalid_argument, "expected one of {}, found \"{}\"", known, name);
}

Status ChatSession::save(const std::string& path) const {
  std::vector<Message> all;
  if (!options_.system.empty()) all.push_back({"system", options_.system});
  all.insert(all.end(), messages().begin(), messages().end());
  return write_transcript(path, {.messages = std::move(all),
                                 .vocabulary = engine_->tokenizer()->digest(),
                                 .seed = seed(),
                                 .sampler = branches_[active_].sampler});
}

Status ChatSession::load(const std::string& path) {
  CAIRN_TRY(Transcript transcript, read_transcript(path));
  std::vector<Message>& loaded = transcript.messages;
  const tokenize::Tokenizer& tokenizer = *engine_->tokenizer();
  const bool knows_ids = transcript.vocabulary == tokenizer.digest();
  for (size_t index = 0; index < loaded.size(); ++index) {
    if (!knows_ids) loaded[index].tokens.clear();
    for (const Token token : loaded[index].tokens) {
      if (tokenizer.holds(token)) continue;
      return fail(ErrorCode::invalid_data,
                  "{}: messages[{}].token_ids: expected ids below {}, found {}", path, index,
                  tokenizer.token_count(), index_of(token));
    }
  }
  const bool has_system = !loaded.empty() && loaded.front().role == "system";
  options_.system = has_system ? loaded.front().content : "";
  if (has_system) loaded.erase(loaded.begin());
  active() = std::move(loaded);
  branches_[active_].sampler = knows_ids ? std::move(transcript.sampler) : sample::SamplerState();
  if (transcript.seed && !options_.keeps_seed) options_.sampling.seed = *transcript.seed;
  ++change_count_;
  return Ok{};
}

void ChatSession::clear() {
  ++change_count_;
  active().clear();
  branches_[active_].sampler = {};
}

}  // namespace cairn::session
