// Rows, then a token, until so much is made.
#include "capi/runtime_track.h"

#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "capi/runtime_lane.h"
#include "runtimes/timeline.h"

namespace cairn::capi {

namespace {

// Of a runtime's state it is given back in a turn.
class RuntimeTrackState final : public TrackState {
 public:
  RuntimeTrackState(Turnstile* turns, std::shared_ptr<const runtimes::Snapshot> snapshot,
                    sample::SamplerState sampler)
      : turns_(turns), snapshot_(std::move(snapshot)), sampler_(std::move(sampler)) {}
  ~RuntimeTrackState() override {
    (void)try_surely([this] { turns_->discard(std::exchange(snapshot_, nullptr)); });
  }
  RuntimeTrackState(const RuntimeTrackState&) = delete;
  RuntimeTrackState& operator=(const RuntimeTrackState&) = delete;

  const std::shared_ptr<const runtimes::Snapshot>& snapshot() const { return snapshot_; }
  const sample::SamplerState& sampler() const { return sampler_; }

 private:
  Turnstile* turns_;
  std::shared_ptr<const runtimes::Snapshot> snapshot_;
  sample::SamplerState sampler_;
};

const RuntimeTrackState& state_in(const TrackState& state) {
  return static_cast<const RuntimeTrackState&>(state);
}

cairn_plan plan_of(const runtimes::Cost& cost) {
  cairn_plan plan{};
  plan.target = uint32_t(cost.target);
  plan.resume = uint32_t(cost.resume);
  plan.forward_tokens = uint32_t(cost.forward_tokens());
  plan.copy_bytes = cost.copy_bytes;
  plan.logits_ready = uint8_t(cost.is_ready);
  plan.replayed_by_cairn = uint8_t(cost.is_replayed);
  return plan;
}

Error cancelled() {
  return fail(ErrorCode::cancelled, "cancelled");
}

class RuntimeTrack final : public Track, public RuntimeEngine::Task, public Turnstile::User {
 public:
  RuntimeTrack(RuntimeEngine* engine, Mailbox* mailbox,
               std::unique_ptr<runtimes::Timeline> timeline)
      : engine_(engine),
        mailbox_(mailbox),
        timeline_(std::move(timeline)),
        lane_(timeline_.get(), engine->traits().context_tokens) {}
  ~RuntimeTrack() override {
    (void)try_surely([this] {
      const Turn turn(&engine_->turns());
      timeline_.reset();
    });
  }
  RuntimeTrack(const RuntimeTrack&) = delete;
  RuntimeTrack& operator=(const RuntimeTrack&) = delete;

  cairn_plan plan(std::span<const Token> tokens) override {
    const Turn turn(&engine_->turns());
    return plan_of(timeline_->cost_of_tokens(tokens));
  }
  Answer read(std::span<const Token> tokens, const TrackState* from, cairn_plan& done) override {
    mailbox_->begin();
    finish_job([&] { return read_now(tokens, from, done); });
    return mailbox_->take_outcome();
  }
  Answer make(MakeOrder order) override {
    mailbox_->begin();
    bool is_done = false;
    finish_job([&]() -> Status {
      while (!is_done) CAIRN_TRY(go_on(order, is_done));
      return Ok{};
    });
    return mailbox_->take_outcome();
  }
  void start(MakeOrder order) override {
    order_ = std::move(order);
    is_cancelled_ = false;
    engine_->add(this, [this] { mailbox_->begin(true); });
  }
  bool cancel() noexcept override {
    is_cancelled_ = true;
    return true;
  }

  RuntimeEngine::Progress go_on() override {
    if (mailbox_->is_full() && !is_cancelled()) return RuntimeEngine::Progress::blocked;
    bool is_done = false;
    Status done = Ok{};
    std::exception_ptr thrown;
    try {
      done = go_on(order_, is_done);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown == nullptr && done && !is_done) return RuntimeEngine::Progress::moved;
    finish_job([&]() -> Status {
      if (thrown != nullptr) std::rethrow_exception(thrown);
      return done;
    });
    return RuntimeEngine::Progress::ended;
  }

  bool is_cancelled() const override { return is_cancelled_ || handles::has_mark(handle_); }
  void end_soon() override { timeline_->cancel(); }

  bool stands_at(size_t token_count) override {
    return timeline_->history().tokens.size() == token_count && !timeline_->logits().empty();
  }
  void copy_logits(std::vector<float>& row) override {
    row.assign(timeline_->logits().begin(), timeline_->logits().end());
  }
  bool has_choice() override { return maker_.has_choice(); }
  sample::SamplerState sampler() override { return maker_.sampler(); }
  void set_sampler(sample::SamplerState sampler) override {
    maker_.set_sampler(std::move(sampler));
  }
  void drop_answer() override { maker_.drop(); }
  void reset() override {
    maker_.drop();
    maker_.set_sampler({});
    timeline_->clear();
  }
  std::shared_ptr<const session::Receipt> receipt() override { return nullptr; }

  Result<std::unique_ptr<TrackState>> snapshot(std::span<const Token> tokens) override {
    const Turn turn(&engine_->turns());
    timeline_->aim(tokens);
    CAIRN_TRY(std::shared_ptr<const runtimes::Snapshot> made, timeline_->snapshot());
    return std::unique_ptr<TrackState>(
        std::make_unique<RuntimeTrackState>(&engine_->turns(), std::move(made), maker_.sampler()));
  }
  Status go_to(const TrackState& state) override {
    timeline_->adopt(state_in(state).snapshot());
    maker_.set_sampler(state_in(state).sampler());
    return Ok{};
  }
  Answer save(const std::string& /*name*/) override { return no_store(); }
  Answer find_saved(const std::string& /*name*/, std::vector<Token>& /*tokens*/,
                    sample::SamplerState& /*sampler*/) override {
    return no_store();
  }

 private:
  static Answer no_store() {
    return {CAIRN_E_UNSUPPORTED, "store: expected the backend cairn, found another"};
  }

  Status read_now(std::span<const Token> tokens, const TrackState* from, cairn_plan& done) {
    const Turn turn(&engine_->turns(), this);
    if (!turn) return cancelled();
    maker_.drop();
    CAIRN_TRY(const runtimes::Cost cost, from != nullptr
                                             ? timeline_->restore(state_in(*from).snapshot())
                                             : timeline_->become(tokens));
    done = plan_of(cost);
    return Ok{};
  }

  // Rows where some are wanted, then a token where there is to be one.
  Status go_on(MakeOrder& order, bool& is_done) {
    const Turn turn(&engine_->turns(), this);
    if (!turn || is_cancelled()) return cancelled();
    if (!order.prompt.empty()) {
      maker_.drop();
      CAIRN_TRY(maker_.begin(engine_->tokenizer(), &lane_, order.prompt, std::move(order.terms),
                             nullptr));
      order.prompt.clear();
    }
    const bool is_rows = order.extent == MakeOrder::Extent::rows;
    session::Completion& completion = *maker_.completion();
    if (lane_.wants_rows()) {
      Result<runtimes::Cost> computed = timeline_->compute();
      Status stepped = computed ? Status(Ok{}) : Status(std::move(computed).error());
      CAIRN_TRY(is_rows ? std::move(stepped) : completion.take_step(std::move(stepped)));
    }
    if (!is_rows && !completion.is_done()) {
      if (is_cancelled()) return cancelled();
      maker_.give_logits(order.logits);
      CAIRN_TRY(maker_.advance(*mailbox_));
    }
    is_done = completion.is_done() || order.extent != MakeOrder::Extent::to_end;
    return Ok{};
  }

  // The mailbox's job ends; this may be gone then.
  template <class Work>
  void finish_job(Work work) {
    try {
      Status done = work();
      const auto end = maker_.pause(done, *mailbox_);
      mailbox_->end(done, maker_.completion() != nullptr, end);
    } catch (...) {
      maker_.abandon();
      mailbox_->end(caught(), false);
    }
  }

  RuntimeEngine* engine_;
  Mailbox* mailbox_;
  std::unique_ptr<runtimes::Timeline> timeline_;
  RuntimeLane lane_;
  AnswerMaker maker_;
  MakeOrder order_;  // What is made in the background.
  std::atomic<bool> is_cancelled_ = false;
};

}  // namespace

Result<std::unique_ptr<Track>> open_runtime_track(RuntimeEngine* engine, Mailbox* mailbox) {
  const Turn turn(&engine->turns());
  CAIRN_TRY(std::unique_ptr<runtimes::Timeline> timeline,
            runtimes::Timeline::open(&engine->runtime()));
  return std::unique_ptr<Track>(
      std::make_unique<RuntimeTrack>(engine, mailbox, std::move(timeline)));
}

}  // namespace cairn::capi
