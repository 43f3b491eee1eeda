// Calls become work of a track.
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

std::shared_ptr<const AnswerTerms> suggested_terms(const EngineObject& engine) {
  AnswerTerms terms;
  Result<sample::SamplingParams> suggested =
      session::effective_sampling(*engine.traits().fields, false, {});
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
  if (engine->traits().makes_vectors) {
    return fail(ErrorCode::unsupported,
                "conversation: expected an engine that makes text, found one with pooling");
  }
  CAIRN_TRY(std::unique_ptr<Mailbox> mailbox, Mailbox::open());
  std::shared_ptr<Conversation> made(new Conversation(std::move(engine), std::move(mailbox)));
  CAIRN_TRY(made->track_, made->engine_->open_track(made->mailbox_.get()));
  made->terms_ = suggested_terms(*made->engine_);
  return made;
}

Conversation::Conversation(std::shared_ptr<EngineObject> engine, std::unique_ptr<Mailbox> mailbox)
    : engine_(std::move(engine)), mailbox_(std::move(mailbox)) {}

Conversation::~Conversation() {
  while (!mailbox_->has_ended() && !track_->cancel()) {
    mailbox_->wait_for_end(kLookAtMark);
  }
  while (!mailbox_->wait_for_end(kForEver)) {
  }
}

std::unique_lock<std::mutex> Conversation::use(bool may_stream) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && is_streaming_ && !may_stream) lock.unlock();
  return lock;
}

Status Conversation::check(std::span<const cairn_token> tokens, size_t before) const {
  const size_t context = size_t(engine_->traits().context_tokens);
  if (before + tokens.size() > context) {
    return fail(ErrorCode::context_full, "context: {} tokens are needed, {} fit",
                before + tokens.size(), context);
  }
  const int32_t count = engine_->traits().vocabulary_count;
  for (const cairn_token token : tokens) {
    if (token < 0 || token >= count) {
      return fail(ErrorCode::invalid_argument, "tokens: expected ids below {}, found {}", count,
                  token);
    }
  }
  return Ok{};
}

// A call that computes. A cancellation counts once.
template <class Call>
Answer Conversation::run(Call call) {
  if (handles::clear_mark(handle_)) return {CAIRN_CANCELLED, "cancelled"};
  Answer answer = call();
  if (answer.status == CAIRN_CANCELLED) handles::clear_mark(handle_);
  return answer;
}

Answer Conversation::take_outcome() {
  Answer answer = mailbox_->take_outcome();
  if (answer.status == CAIRN_CANCELLED) handles::clear_mark(handle_);
  return answer;
}

Answer Conversation::read(std::vector<Token> tokens, const SnapshotObject* from, cairn_plan& done) {
  if (tokens.empty()) {
    reset();
    return {};
  }
  waiting_.clear();
  return run_read(std::move(tokens), from, done);
}

Answer Conversation::run_read(std::vector<Token> tokens, const SnapshotObject* from,
                              cairn_plan& done) {
  const TrackState* const state = from != nullptr ? from->state.get() : nullptr;
  Answer answer = run([&] { return track_->read(tokens, state, done); });
  if (answer.status == CAIRN_OK) {
    tokens_ = std::move(tokens);
    given_logits_.clear();
  }
  return answer;
}

cairn_plan Conversation::plan(size_t position) {
  if (position == 0) return {};
  return track_->plan(std::span(tokens_).first(position));
}

void Conversation::reset() {
  track_->reset();
  mailbox_->clear();
  waiting_.clear();
  tokens_.clear();
  given_logits_.clear();
}

void Conversation::set_terms(std::shared_ptr<const AnswerTerms> terms) {
  track_->drop_answer();
  mailbox_->clear();
  waiting_.clear();
  terms_ = std::move(terms);
}

Answer Conversation::check_text() const {
  if (engine_->tokenizer() == nullptr) {
    return {CAIRN_E_UNSUPPORTED, "answers: expected a model with a vocabulary, found one without"};
  }
  if (tokens_.empty()) return nothing_read();
  return {};
}

// A new answer begins behind the tokens, or that which there is goes on.
Answer Conversation::make(MakeOrder::Extent extent) {
  MakeOrder order{.extent = extent};
  if (extent != MakeOrder::Extent::rows) order.logits = given_logits_;
  if (!mailbox_->has_answer()) {
    order.prompt = tokens_;
    order.terms = terms_;
  }
  if (extent != MakeOrder::Extent::to_end) {
    return run([&] { return track_->make(std::move(order)); });
  }
  if (handles::clear_mark(handle_)) return {CAIRN_CANCELLED, "cancelled"};
  track_->start(std::move(order));
  is_streaming_ = true;
  return {};
}

Answer Conversation::start() {
  if (Answer checked = check_text(); checked.status != CAIRN_OK) return checked;
  // What an answer's last token has left to be told is lost with a new answer: its end would be
  // taken for that of the new one, which still runs.
  waiting_.clear();
  return make(MakeOrder::Extent::to_end);
}

Answer Conversation::next(bool may_wait) {
  event_.clear();
  if (take_event()) return deliver();
  if (!is_streaming_) {
    if (Answer checked = check_text(); checked.status != CAIRN_OK) return checked;
    if (Answer made = make(MakeOrder::Extent::token); made.status != CAIRN_OK) return made;
  } else {
    if (may_wait) wait();
    if (handles::has_mark(handle_)) (void)track_->cancel();
    if (take_event()) return deliver();
    if (!mailbox_->has_ended()) return {CAIRN_AGAIN};
    is_streaming_ = false;
    if (Answer ended = take_outcome(); ended.status != CAIRN_OK) return ended;
  }
  if (take_event()) return deliver();
  return {CAIRN_E_INTERNAL, "answers: expected an event of one that was made, found none"};
}

// For an event of what is made in the background, or its end.
void Conversation::wait() {
  bool is_cancelled = false;
  while (!mailbox_->wait(kLookAtMark)) {
    if (is_cancelled || !handles::has_mark(handle_)) continue;
    is_cancelled = track_->cancel();
  }
}

// Only where there is room for its tokens: what is taken is not lost.
bool Conversation::take_event() {
  constexpr size_t kTokensMax = Lane::kDraftsMax + 2;
  if (tokens_.capacity() - tokens_.size() < kTokensMax) {
    tokens_.reserve(2 * tokens_.size() + kTokensMax);
  }
  if (waiting_.empty()) return mailbox_->take(event_);
  event_ = std::move(waiting_.front());
  waiting_.pop_front();
  return true;
}

Answer Conversation::deliver() {
  tokens_.insert(tokens_.end(), event_.tokens.begin(), event_.tokens.end());
  given_logits_.clear();
  if (!event_.end) return {};
  if (is_streaming_) (void)take_outcome();
  is_streaming_ = false;
  return {CAIRN_DONE};
}

void Conversation::show_event(cairn_event& out) const {
  static_assert(sizeof(Token) == sizeof(cairn_token));
  out.kind = event_.end ? CAIRN_EVENT_END : CAIRN_EVENT_TOKENS;
  out.finish = event_.end ? finish_of(event_.end->finish) : CAIRN_FINISH_NONE;
  out.position = uint32_t(tokens_.size());
  out.token_count = uint32_t(event_.tokens.size());
  out.tokens = reinterpret_cast<const cairn_token*>(event_.tokens.data());
  out.logprobs = event_.log_probabilities.empty() ? nullptr : event_.log_probabilities.data();
  out.text = event_.text.c_str();
  out.text_bytes = event_.text.size();
  out.drafted = event_.end ? uint32_t(event_.end->drafted) : 0;
  out.accepted = event_.end ? uint32_t(event_.end->accepted) : 0;
}

// So that the timeline stands behind the last token.
Answer Conversation::compute_all() {
  if (tokens_.empty()) return nothing_read();
  if (track_->stands_at(tokens_.size())) return {};
  if (mailbox_->has_answer()) return make(MakeOrder::Extent::rows);
  for (AnswerEvent event; mailbox_->take(event); event.clear()) waiting_.push_back(event);
  cairn_plan done{};
  return run_read(tokens_, nullptr, done);
}

Answer Conversation::logits(std::vector<float>& row) {
  if (Answer computed = compute_all(); computed.status != CAIRN_OK) return computed;
  track_->copy_logits(row);
  return {};
}

Answer Conversation::sample(std::span<const float> logits, Token& out) {
  std::vector<float> own;
  if (logits.empty()) {
    if (Answer found = this->logits(own); found.status != CAIRN_OK) return found;
    logits = own;
  }
  if (Answer checked = check_row(logits); checked.status != CAIRN_OK) return checked;
  if (sample::Sampler::needs_tokenizer(terms_->sampling) && engine_->tokenizer() == nullptr) {
    return {CAIRN_E_UNSUPPORTED, "sampling: expected a model with a vocabulary, found one without"};
  }
  sample::Sampler sampler(terms_->sampling, engine_->tokenizer());
  sampler.set_state(track_->sampler());
  Result<Token> token =
      sampler.sample({.logits = logits, .position = int32_t(tokens_.size()), .history = tokens_});
  if (!token) return invalid(token.error().message);
  out = *token;
  return {};
}

Answer Conversation::check_row(std::span<const float> logits) const {
  const size_t count = size_t(engine_->traits().vocabulary_count);
  if (logits.size() == count) return {};
  return invalid(fmt::format("logits: expected {} floats, found {}", count, logits.size()));
}

Answer Conversation::give_logits(std::span<const float> logits) {
  if (Answer checked = check_row(logits); checked.status != CAIRN_OK) return checked;
  if (Answer computed = compute_all(); computed.status != CAIRN_OK) return computed;
  // A cancellation may have come between a choice and its token.
  if (track_->has_choice()) {
    return invalid("logits: expected a token that is not chosen yet, found one");
  }
  given_logits_.assign(logits.begin(), logits.end());
  return {};
}

std::shared_ptr<const session::Receipt> Conversation::receipt() {
  return track_->receipt();
}

Result<std::shared_ptr<SnapshotObject>> Conversation::snapshot() {
  auto made = std::make_shared<SnapshotObject>(engine_);
  made->tokens = tokens_;
  CAIRN_TRY(made->state, track_->snapshot(tokens_));
  return made;
}

Result<std::shared_ptr<Conversation>> Conversation::fork(const SnapshotObject* from) {
  std::shared_ptr<SnapshotObject> here;
  if (from == nullptr) {
    CAIRN_TRY(here, snapshot());
    from = here.get();
  }
  CAIRN_TRY(std::shared_ptr<Conversation> made, open(engine_));
  made->tokens_ = from->tokens;
  made->terms_ = terms_;
  CAIRN_TRY(made->track_->go_to(*from->state));
  return made;
}

Answer Conversation::save(const std::string& name) {
  if (Answer computed = compute_all(); computed.status != CAIRN_OK) return computed;
  return track_->save(name);
}

Answer Conversation::restore(const std::string& name, cairn_plan& done) {
  std::vector<Token> tokens;
  sample::SamplerState sampler;
  Answer found = track_->find_saved(name, tokens, sampler);
  if (found.status != CAIRN_OK) return found;
  const auto* const ids = reinterpret_cast<const cairn_token*>(tokens.data());
  if (Status checked = check({ids, tokens.size()}, 0); !checked) return checked;
  Answer answer = read(std::move(tokens), nullptr, done);
  if (answer.status == CAIRN_OK) track_->set_sampler(std::move(sampler));
  return answer;
}

}  // namespace cairn::capi
