// Calls become jobs and questions to the engine's thread.
#include "capi/conversation.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

#include "sample/sampler.h"
#include "session/sampling_choice.h"

namespace cairn::capi {

namespace {

// A signal handler can set a mark, and wake nobody.
constexpr std::chrono::milliseconds kLookAtMark(2);
constexpr std::chrono::hours kForEver(24);

std::shared_ptr<const AnswerTerms> suggested_terms(const Engine& engine) {
  AnswerTerms terms;
  Result<sample::SamplingParams> suggested =
      session::effective_sampling(engine.file().fields(), false, {});
  if (suggested) {
    terms.sampling = std::move(*suggested);
  } else {
    terms.sampling.seed = session::new_seed();
  }
  return std::make_shared<const AnswerTerms>(std::move(terms));
}

int32_t finish_of(session::FinishReason reason) {
  switch (reason) {
    case session::FinishReason::length:
      return CAIRN_FINISH_LENGTH;
    case session::FinishReason::context:
      return CAIRN_FINISH_CONTEXT;
    case session::FinishReason::memory:
      return CAIRN_FINISH_MEMORY;
    case session::FinishReason::stop:
    case session::FinishReason::tool_calls:
    case session::FinishReason::interrupted:
      return CAIRN_FINISH_STOP;
  }
  return CAIRN_FINISH_STOP;
}

Answer nothing_read() {
  return invalid("conversation: expected tokens that were read, found none");
}

}  // namespace

Result<std::shared_ptr<Conversation>> Conversation::open(std::shared_ptr<EngineObject> engine) {
  if (engine->engine->options().pooling) {
    return fail(ErrorCode::unsupported,
                "conversation: expected an engine that makes text, found one with pooling");
  }
  CAIRN_TRY(std::unique_ptr<Mailbox> mailbox, Mailbox::open());
  std::shared_ptr<Conversation> made(new Conversation(std::move(engine), std::move(mailbox)));
  made->engine_->service->ask(
      [&](Engine& asked) { made->timeline_ = std::make_unique<Timeline>(&asked); });
  made->terms_ = suggested_terms(*made->engine_->engine);
  return made;
}

Conversation::Conversation(std::shared_ptr<EngineObject> engine, std::unique_ptr<Mailbox> mailbox)
    : engine_(std::move(engine)), mailbox_(std::move(mailbox)) {}

Conversation::~Conversation() {
  while (!mailbox_->has_ended() && !cancel_job()) {
    mailbox_->wait_for_end(kLookAtMark);
  }
  while (!mailbox_->wait_for_end(kForEver)) {
  }
  const bool is_done = ask_surely(*engine_->service, [this](Engine&) {
    if (timeline_ != nullptr) timeline_->clear();
    timeline_.reset();
  });
  // What cannot be given back on the engine's thread stays.
  if (!is_done) (void)timeline_.release();
}

// Whether there was memory to say it.
bool Conversation::cancel_job() noexcept {
  try {
    engine_->service->cancel(job_);
    return true;
  } catch (...) {
    return false;
  }
}

std::unique_lock<std::mutex> Conversation::use(bool may_stream) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && is_streaming_ && !may_stream) lock.unlock();
  return lock;
}

void Conversation::ask(const std::function<void(Timeline&)>& question) {
  engine_->service->ask([&](Engine&) { question(*timeline_); });
}

Status Conversation::check(std::span<const cairn_token> tokens, size_t before) const {
  const Engine& engine = *engine_->engine;
  const size_t context = size_t(engine.options().context_tokens);
  if (before + tokens.size() > context) {
    return fail(ErrorCode::context_full, "context: {} tokens are needed, {} fit",
                before + tokens.size(), context);
  }
  const int32_t count = engine.size().vocabulary_count;
  for (const cairn_token token : tokens) {
    if (token < 0 || token >= count) {
      return fail(ErrorCode::invalid_argument, "tokens: expected ids below {}, found {}", count,
                  token);
    }
  }
  return Ok{};
}

// Where there is no memory to submit it, it has ended.
void Conversation::submit(std::unique_ptr<Job> job) {
  struct Undo {
    Mailbox* mailbox;
    ~Undo() {
      if (mailbox != nullptr) mailbox->end(Ok{}, false);
    }
  };
  JobTerms terms{.client = std::to_string(handle_)};
  mailbox_->begin();
  Undo undo{mailbox_.get()};
  job_ = engine_->service->submit(std::move(job), std::move(terms));
  undo.mailbox = nullptr;
}

// Submits a job and waits for its end.
Answer Conversation::run(std::unique_ptr<Job> job) {
  if (handles::clear_mark(handle_)) return {CAIRN_CANCELLED, "cancelled"};
  submit(std::move(job));
  bool is_cancelled = false;
  while (!mailbox_->wait_for_end(kLookAtMark)) {
    if (is_cancelled || !handles::has_mark(handle_)) continue;
    is_cancelled = cancel_job();
  }
  return take_outcome();
}

Answer Conversation::take_outcome() {
  Answer answer = mailbox_->take_outcome();
  if (answer.status == CAIRN_CANCELLED) handles::clear_mark(handle_);
  return answer;
}

Answer Conversation::read(std::vector<Token> tokens, const SnapshotObject* from,
                          memory::ResumePlan& done) {
  if (tokens.empty()) {
    reset();
    return {};
  }
  waiting_.clear();
  return run_read(std::move(tokens), from, done);
}

Answer Conversation::run_read(std::vector<Token> tokens, const SnapshotObject* from,
                              memory::ResumePlan& done) {
  Answer answer =
      run(std::make_unique<ReadJob>(timeline_.get(), mailbox_.get(), tokens, from, &done));
  if (answer.status == CAIRN_OK) {
    tokens_ = std::move(tokens);
    given_logits_.clear();
  }
  return answer;
}

memory::ResumePlan Conversation::plan(size_t position) {
  memory::ResumePlan plan;
  if (position == 0) return plan;
  ask([&](Timeline& timeline) {
    plan = timeline.lane().plan_reading(std::span(tokens_).first(position));
  });
  return plan;
}

void Conversation::reset() {
  ask([](Timeline& timeline) {
    timeline.drop_answer();
    timeline.drop_receipt();
    timeline.clear();
    timeline.set_sampler({});
  });
  mailbox_->clear();
  waiting_.clear();
  tokens_.clear();
  given_logits_.clear();
}

void Conversation::set_terms(std::shared_ptr<const AnswerTerms> terms) {
  ask([](Timeline& timeline) { timeline.drop_answer(); });
  mailbox_->clear();
  waiting_.clear();
  terms_ = std::move(terms);
}

Answer Conversation::check_text() const {
  if (engine_->engine->tokenizer() == nullptr) {
    return {CAIRN_E_UNSUPPORTED, "answers: expected a model with a vocabulary, found one without"};
  }
  if (tokens_.empty()) return nothing_read();
  return {};
}

// A new answer begins behind the tokens, or that which there is goes on.
Answer Conversation::make(MakeJob::Extent extent) {
  MakeJob::Order order{.extent = extent, .handle = handle_};
  if (extent != MakeJob::Extent::rows) order.logits = given_logits_;
  if (!mailbox_->has_answer()) {
    order.prompt = tokens_;
    order.terms = terms_;
  }
  auto job = std::make_unique<MakeJob>(timeline_.get(), mailbox_.get(), std::move(order));
  if (extent != MakeJob::Extent::to_end) return run(std::move(job));
  if (handles::clear_mark(handle_)) return {CAIRN_CANCELLED, "cancelled"};
  submit(std::move(job));
  is_streaming_ = true;
  return {};
}

Answer Conversation::start() {
  if (Answer checked = check_text(); checked.status != CAIRN_OK) return checked;
  // What an answer's last token has left to be told is lost with a new answer.
  return make(MakeJob::Extent::to_end);
}

Answer Conversation::next(bool may_wait) {
  event_ = {};
  if (std::optional<AnswerEvent> event = take_event()) return deliver(*std::move(event));
  if (!is_streaming_) {
    if (Answer checked = check_text(); checked.status != CAIRN_OK) return checked;
    if (Answer made = make(MakeJob::Extent::token); made.status != CAIRN_OK) return made;
  } else {
    if (may_wait) wait();
    if (handles::has_mark(handle_)) (void)cancel_job();
    std::optional<AnswerEvent> event = take_event();
    if (event) return deliver(*std::move(event));
    if (!mailbox_->has_ended()) return {CAIRN_AGAIN};
    is_streaming_ = false;
    if (Answer ended = take_outcome(); ended.status != CAIRN_OK) return ended;
  }
  std::optional<AnswerEvent> event = take_event();
  if (event) return deliver(*std::move(event));
  return {CAIRN_E_INTERNAL, "answers: expected an event of one that was made, found none"};
}

// For an event of what is made in the background, or its end.
Answer Conversation::wait() {
  bool is_cancelled = false;
  while (!mailbox_->wait(kLookAtMark)) {
    if (is_cancelled || !handles::has_mark(handle_)) continue;
    is_cancelled = cancel_job();
  }
  return {};
}

// Only where there is room for its tokens: what is taken is not lost.
std::optional<AnswerEvent> Conversation::take_event() {
  constexpr size_t kTokensMax = 64;
  if (tokens_.capacity() - tokens_.size() < kTokensMax) {
    tokens_.reserve(2 * tokens_.size() + kTokensMax);
  }
  if (waiting_.empty()) return mailbox_->take();
  AnswerEvent event = std::move(waiting_.front());
  waiting_.pop_front();
  return event;
}

Answer Conversation::deliver(AnswerEvent event) {
  tokens_.insert(tokens_.end(), event.tokens.begin(), event.tokens.end());
  given_logits_.clear();
  event_ = std::move(event);
  if (!event_.finish) return {};
  if (is_streaming_) (void)take_outcome();
  is_streaming_ = false;
  return {CAIRN_DONE};
}

void Conversation::show_event(cairn_event& out) const {
  static_assert(sizeof(Token) == sizeof(cairn_token));
  out.kind = event_.finish ? CAIRN_EVENT_END : CAIRN_EVENT_TOKENS;
  out.finish = event_.finish ? finish_of(*event_.finish) : CAIRN_FINISH_NONE;
  out.position = uint32_t(tokens_.size());
  out.token_count = uint32_t(event_.tokens.size());
  out.tokens = reinterpret_cast<const cairn_token*>(event_.tokens.data());
  out.logprobs = event_.log_probabilities.empty() ? nullptr : event_.log_probabilities.data();
  out.text = event_.text.c_str();
  out.text_bytes = event_.text.size();
}

// So that the timeline stands behind the last token.
Answer Conversation::compute_all() {
  if (tokens_.empty()) return nothing_read();
  bool is_there = false;
  ask([&](Timeline& timeline) { is_there = timeline.stands_at(tokens_.size()); });
  if (is_there) return {};
  if (mailbox_->has_answer()) return make(MakeJob::Extent::rows);
  while (std::optional<AnswerEvent> event = mailbox_->take()) {
    waiting_.push_back(*std::move(event));
  }
  memory::ResumePlan done;
  return run_read(tokens_, nullptr, done);
}

Answer Conversation::logits(std::vector<float>& row) {
  if (Answer computed = compute_all(); computed.status != CAIRN_OK) return computed;
  ask([&](Timeline& timeline) {
    const std::span<const float> logits = timeline.lane().logits();
    row.assign(logits.begin(), logits.end());
  });
  return {};
}

Answer Conversation::sample(std::span<const float> logits, Token& out) {
  std::vector<float> own;
  if (logits.empty()) {
    if (Answer found = this->logits(own); found.status != CAIRN_OK) return found;
    logits = own;
  }
  if (Answer checked = check_row(logits); checked.status != CAIRN_OK) return checked;
  const Engine& engine = *engine_->engine;
  if (sample::Sampler::needs_tokenizer(terms_->sampling) && engine.tokenizer() == nullptr) {
    return {CAIRN_E_UNSUPPORTED, "sampling: expected a model with a vocabulary, found one without"};
  }
  sample::Sampler sampler(terms_->sampling, engine.tokenizer());
  sample::SamplerState state;
  ask([&](Timeline& timeline) { state = timeline.sampler(); });
  sampler.set_state(std::move(state));
  Result<Token> token =
      sampler.sample({.logits = logits, .position = int32_t(tokens_.size()), .history = tokens_});
  if (!token) return invalid(token.error().message);
  out = *token;
  return {};
}

Answer Conversation::check_row(std::span<const float> logits) const {
  const size_t count = size_t(engine_->engine->size().vocabulary_count);
  if (logits.size() == count) return {};
  return invalid(fmt::format("logits: expected {} floats, found {}", count, logits.size()));
}

Answer Conversation::give_logits(std::span<const float> logits) {
  if (Answer checked = check_row(logits); checked.status != CAIRN_OK) return checked;
  if (Answer computed = compute_all(); computed.status != CAIRN_OK) return computed;
  // A cancellation may have come between a choice and its token.
  bool has_choice = false;
  ask([&](Timeline& timeline) {
    has_choice = timeline.completion() != nullptr && timeline.completion()->has_choice();
  });
  if (has_choice) return invalid("logits: expected a token that is not chosen yet, found one");
  given_logits_.assign(logits.begin(), logits.end());
  return {};
}

std::shared_ptr<const session::Receipt> Conversation::receipt() {
  std::shared_ptr<const session::Receipt> found;
  ask([&](Timeline& timeline) { found = timeline.receipt(); });
  return found;
}

std::shared_ptr<SnapshotObject> Conversation::snapshot() {
  auto made = std::make_shared<SnapshotObject>(engine_);
  made->tokens = tokens_;
  ask([&](Timeline& timeline) {
    *made->sequence = timeline.lane().sequence();
    made->sampler = timeline.sampler();
  });
  return made;
}

Result<std::shared_ptr<Conversation>> Conversation::fork(const SnapshotObject* from) {
  std::shared_ptr<SnapshotObject> here;
  if (from == nullptr) {
    here = snapshot();
    from = here.get();
  }
  CAIRN_TRY(std::shared_ptr<Conversation> made, open(engine_));
  made->tokens_ = from->tokens;
  made->terms_ = terms_;
  made->ask([&](Timeline& timeline) {
    timeline.go_to(*from->sequence);
    timeline.set_sampler(from->sampler);
  });
  return made;
}

Answer Conversation::save(const std::string& name) {
  if (Answer computed = compute_all(); computed.status != CAIRN_OK) return computed;
  Status saved = Ok{};
  ask([&](Timeline& timeline) {
    Engine& engine = timeline.engine();
    const Fingerprint fingerprint = engine.fingerprint(timeline.lane().selection());
    saved = engine.sequence_store()->save(name, timeline.lane().sequence(), fingerprint.digest(),
                                          timeline.sampler());
  });
  return saved;
}

Answer Conversation::restore(const std::string& name, memory::ResumePlan& done) {
  std::vector<Token> tokens;
  sample::SamplerState sampler;
  Status restored = Ok{};
  ask([&](Timeline& timeline) {
    Engine& engine = timeline.engine();
    const Selection& selection = timeline.lane().selection();
    Result<SequenceStore::Restored> found =
        engine.sequence_store()->restore(name, engine.fingerprint(selection).digest(), selection);
    if (!found) {
      restored = std::move(found).error();
      return;
    }
    tokens = std::move(found->tokens);
    sampler = std::move(found->sampler);
  });
  if (!restored && restored.error().code == ErrorCode::unsupported) {
    return {CAIRN_E_MISMATCH, restored.error().message};
  }
  if (!restored) return restored;
  const auto* const ids = reinterpret_cast<const cairn_token*>(tokens.data());
  if (Status checked = check({ids, tokens.size()}, 0); !checked) return checked;
  Answer answer = read(std::move(tokens), nullptr, done);
  if (answer.status != CAIRN_OK) return answer;
  ask([&](Timeline& timeline) { timeline.set_sampler(std::move(sampler)); });
  return answer;
}

}  // namespace cairn::capi
