// Other runtimes behind cairn.h, and the contract that all are held to, the built-in engine too:
// whatever was rewound, forked, cancelled or failed, the logits are those of a new conversation,
// as far as the engine's facts claim it.
#include <cairn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <optional>
#include <random>
#include <thread>

#include "tests/capi/fake_backend.h"
#include "tests/capi/opened.h"

namespace cairn::backends_test {
namespace {

using runtimes::Exactness;
using runtimes::kRewinds;
using runtimes::kSnapshots;
using test::fake_settings;
using test::FakeSwitches;
using test::Opened;
using test::sized;

constexpr uint32_t kAllCapabilities[] = {0, kRewinds, kSnapshots, kRewinds | kSnapshots};

cairn_engine_params fake_params() {
  cairn_engine_params params = sized<cairn_engine_params>();
  params.options_json = R"({"backend": "fake"})";
  return params;
}

// An engine of the fake, made so.
struct Fake {
  explicit Fake(FakeSwitches switches) {
    fake_settings().switches = switches;
    opened.emplace(test::nano_path(), fake_params());
    runtime = fake_settings().last;
  }
  std::optional<Opened> opened;
  test::FakeRuntime* runtime;
};

// Tokens, and the ends of the calls that read them.
struct Read {
  std::vector<cairn_token> tokens;
  std::vector<size_t> ends;

  void cut(size_t count) {
    tokens.resize(count);
    std::erase_if(ends, [&](size_t end) { return end >= count; });
    if (count > 0) ends.push_back(count);
  }
  void add(std::span<const cairn_token> more) {
    if (more.empty()) return;
    tokens.insert(tokens.end(), more.begin(), more.end());
    ends.push_back(tokens.size());
  }
};

class Program {
 public:
  Program(Opened* opened, uint32_t seed) : opened_(*opened), random_(seed) {}
  ~Program() {
    for (const Track& track : tracks_) cairn_conversation_close(track.handle);
    for (const Mark& mark : marks_) cairn_snapshot_release(mark.handle);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Whether all logits were those of new conversations, which read the same by the same calls, or
  // all at once.
  bool run(int step_count, bool at_once) {
    open();
    for (int count = 0; count < step_count; ++count) {
      Track& track = tracks_[below(tracks_.size())];
      step(track);
      if (track.read.tokens.empty()) continue;
      if (!test::same_bits(test::logits_of(track.handle), fresh(track.read, at_once))) return false;
    }
    return true;
  }

 private:
  struct Track {
    cairn_conversation* handle;
    Read read;
  };
  struct Mark {
    cairn_snapshot* handle;
    Read read;
  };

  size_t below(size_t count) { return random_() % count; }
  void check(cairn_status status) { EXPECT_EQ(status, CAIRN_OK) << error_.message; }

  void open() {
    tracks_.push_back({opened_.conversation(), {}});
    if (has_text_) set_sampling(tracks_.back().handle);
  }
  void set_sampling(cairn_conversation* c) {
    cairn_sampling sampling = sized<cairn_sampling>();
    cairn_sampling_init(opened_.model, &sampling, sizeof sampling);
    sampling.temperature = 0;
    sampling.flags = CAIRN_SAMPLING_IGNORE_END;
    check(cairn_set_sampling(c, &sampling, &error_));
  }
  std::vector<cairn_token> some() {
    std::vector<cairn_token> tokens(1 + below(9));
    for (cairn_token& token : tokens) token = cairn_token(below(3)) + first_;
    return tokens;
  }
  std::vector<float> fresh(const Read& read, bool at_once) {
    cairn_conversation* const c = opened_.conversation();
    size_t begin = 0;
    for (const size_t end : at_once ? std::vector{read.tokens.size()} : read.ends) {
      check(cairn_prefill(c, &read.tokens[begin], end - begin, nullptr, &error_));
      begin = end;
    }
    std::vector<float> row = test::logits_of(c);
    cairn_conversation_close(c);
    return row;
  }

  // What a call costs is what was planned.
  void check_plan(const cairn_plan& planned, const cairn_plan& done) {
    EXPECT_EQ(planned.target, done.target);
    EXPECT_EQ(planned.forward_tokens, done.forward_tokens);
    EXPECT_EQ(planned.replayed_by_cairn, done.replayed_by_cairn);
  }

  void step(Track& track) {
    cairn_plan planned = sized<cairn_plan>(), done = sized<cairn_plan>();
    Read& read = track.read;
    const size_t length = read.tokens.size();
    switch (below(8)) {
      case 0:
        if (length > 150) return;
        return answer(track);
      case 1: {
        if (length > 150) return;
        const auto more = some();
        check(cairn_prefill(track.handle, more.data(), more.size(), &done, &error_));
        EXPECT_EQ(done.target, length + more.size());
        return read.add(more);
      }
      case 2: {
        std::vector<cairn_token> tokens = read.tokens;
        tokens.resize(below(length + 1));
        const auto more = some();
        tokens.insert(tokens.end(), more.begin(), more.end());
        check(cairn_sync(track.handle, tokens.data(), tokens.size(), &done, &error_));
        const auto parted = std::ranges::mismatch(tokens, read.tokens).in1 - tokens.begin();
        read.cut(size_t(parted));
        return read.add(std::span(tokens).subspan(size_t(parted)));
      }
      case 3: {
        const size_t position = below(length + 1);
        check(cairn_plan_rewind(track.handle, uint32_t(position), &planned, &error_));
        check(cairn_rewind(track.handle, uint32_t(position), &done, &error_));
        if (position > 0) check_plan(planned, done);
        return read.cut(position);
      }
      case 4: {
        cairn_snapshot* made = nullptr;
        check(cairn_snapshot_take(track.handle, &made, &error_));
        EXPECT_EQ(cairn_snapshot_position(made), length);
        marks_.push_back({made, read});
        return;
      }
      case 5: {
        if (marks_.empty()) return;
        const size_t index = below(marks_.size());
        check(cairn_rewind_to(track.handle, marks_[index].handle, &done, &error_));
        read = marks_[index].read;
        if (below(3) > 0) return;
        cairn_snapshot_release(marks_[index].handle);
        marks_.erase(marks_.begin() + std::ptrdiff_t(index));
        return;
      }
      case 6: {
        cairn_conversation* made = nullptr;
        const bool has_mark = !marks_.empty() && below(2) == 0;
        const Read forked = has_mark ? marks_[0].read : read;
        check(cairn_fork(track.handle, has_mark ? marks_[0].handle : nullptr, &made, &error_));
        tracks_.push_back({made, forked});
        return;
      }
      default:
        if (below(4) > 0) return;
        check(cairn_reset(track.handle, &error_));
        read = {};
    }
  }

  void answer(Track& track) {
    if (track.read.tokens.empty() || !has_text_) return;
    cairn_event event = sized<cairn_event>();
    const size_t count = 1 + below(4);
    for (size_t index = 0; index < count; ++index) {
      check(cairn_next(track.handle, &event, &error_));
      track.read.add({event.tokens, event.token_count});
    }
  }

  Opened& opened_;
  std::mt19937 random_;
  const bool has_text_ = (opened_.facts().capabilities & CAIRN_CAP_TEXT) != 0;
  const cairn_token first_ = has_text_ ? 100 : 10;  // Of those that it reads.
  std::deque<Track> tracks_;                        // Which stay where they are.
  std::vector<Mark> marks_;
  cairn_error error_ = sized<cairn_error>();
};

// The highest promise that random programs find kept.
int32_t measured(Opened& opened, uint32_t program_count) {
  bool keeps_replay = true, keeps_bitwise = true;
  for (uint32_t seed = 0; seed < program_count && keeps_replay; ++seed) {
    keeps_replay = Program(&opened, seed).run(12, false);
    keeps_bitwise = keeps_bitwise && Program(&opened, seed).run(12, true);
  }
  if (!keeps_replay) return CAIRN_EXACT_NONE;
  return keeps_bitwise ? CAIRN_EXACT_BITWISE : CAIRN_EXACT_REPLAY;
}

TEST(Backends, ClaimsAreWhatRandomProgramsMeasure) {
  for (const uint32_t capabilities : kAllCapabilities) {
    for (const bool by_chunks : {true, false}) {
      SCOPED_TRACE(testing::Message() << capabilities << " " << by_chunks);
      Fake fake({.capabilities = capabilities,
                 .claimed = by_chunks ? Exactness::replay : Exactness::bitwise,
                 .depends_on_chunks = by_chunks});
      EXPECT_EQ(measured(*fake.opened, 250), fake.opened->facts().exactness);
    }
  }
  Opened built_in(test::nano_path());
  EXPECT_EQ(measured(built_in, 4), built_in.facts().exactness);
}

class FromPackages : public testing::TestWithParam<const char*> {};

TEST_P(FromPackages, ClaimNoMoreThanRandomProgramsMeasure) {
  const std::string available = fmt::format(R"({{"name":"{}","available":true)", GetParam());
  if (std::string(cairn_backends_json()).find(available) == std::string::npos) {
    GTEST_SKIP() << GetParam() << ": its packages are not here";
  }
  const std::string options = fmt::format(R"({{"backend": "{}"}})", GetParam());
  cairn_engine_params params = sized<cairn_engine_params>();
  params.options_json = options.c_str();
  Opened opened(test::golden_path("llama"), params);
  EXPECT_STREQ(opened.facts().backend, GetParam());
  EXPECT_GE(measured(opened, 3), opened.facts().exactness);
}

INSTANTIATE_TEST_SUITE_P(All, FromPackages, testing::Values("mlx", "openvino"),
                         [](const auto& given) { return std::string(given.param); });

TEST(Backends, ClaimsThatAreTooHighAreFound) {
  Fake fake({.claimed = Exactness::bitwise});
  EXPECT_LT(measured(*fake.opened, 250), fake.opened->facts().exactness);
}

TEST(Backends, FactsTellWhatTheyDoThemselves) {
  for (const uint32_t capabilities : kAllCapabilities) {
    Fake fake({.capabilities = capabilities});
    const cairn_engine_facts facts = fake.opened->facts();
    EXPECT_STREQ(facts.backend, "fake");
    EXPECT_STREQ(facts.numerics, "hashes");
    EXPECT_EQ(facts.capabilities,
              uint32_t(CAIRN_CAP_TEXT | CAIRN_CAP_LOGITS | CAIRN_CAP_REWIND | CAIRN_CAP_SNAPSHOT));
    EXPECT_EQ((facts.native_capabilities & CAIRN_CAP_REWIND) != 0, (capabilities & kRewinds) != 0);
    EXPECT_EQ((facts.native_capabilities & CAIRN_CAP_SNAPSHOT) != 0,
              (capabilities & kSnapshots) != 0);
  }
  Opened built_in(test::nano_path());
  EXPECT_STREQ(built_in.facts().backend, "cairn");
  EXPECT_EQ(built_in.facts().native_capabilities, built_in.facts().capabilities);
  // Callers that were built before there was the member.
  struct Older {
    cairn_engine_facts facts;
  } older{};
  older.facts.struct_size = offsetof(cairn_engine_facts, native_capabilities);
  older.facts.native_capabilities = 77;
  EXPECT_EQ(cairn_engine_get_facts(built_in.engine, &older.facts, nullptr), CAIRN_OK);
  EXPECT_STREQ(older.facts.backend, "cairn");
  EXPECT_EQ(older.facts.native_capabilities, 77u);
}

struct Opening {
  cairn_status status;
  std::string message, backend;
};

Opening open_with(cairn_engine_params params) {
  cairn_error error = sized<cairn_error>();
  cairn_model* model = nullptr;
  cairn_engine* engine = nullptr;
  EXPECT_EQ(cairn_model_open(test::nano_path().c_str(), &model, &error), CAIRN_OK);
  const cairn_status status = cairn_engine_open(model, &params, &engine, &error);
  cairn_engine_facts facts = sized<cairn_engine_facts>();
  cairn_engine_get_facts(engine, &facts, nullptr);
  cairn_engine_close(engine);
  cairn_model_close(model);
  return {status, error.message, facts.backend == nullptr ? "" : facts.backend};
}

TEST(Backends, WhatIsNamedIsNeverReplaced) {
  fake_settings().switches = {};
  cairn_engine_params params = sized<cairn_engine_params>();
  params.thread_count = 1;
  EXPECT_EQ(open_with(params).backend, "cairn");
  params.options_json = R"({"backend": "fak"})";
  Opening opening = open_with(params);
  EXPECT_EQ(opening.status, CAIRN_E_INVALID);
  EXPECT_EQ(opening.message,
            "backend: expected cairn, fake, mlx, openvino, found fak: did you mean fake?");
  setenv("CAIRN_BACKEND", "fake", 1);
  EXPECT_EQ(open_with(params).status, CAIRN_E_INVALID);
  params.options_json = R"({"backend": "cairn"})";
  EXPECT_EQ(open_with(params).backend, "cairn");
  params.options_json = nullptr;
  EXPECT_EQ(open_with(params).backend, "fake");
  params.memory_budget_bytes = 1 << 26;
  opening = open_with(params);
  EXPECT_EQ(opening.status, CAIRN_E_UNSUPPORTED);
  EXPECT_EQ(opening.message,
            "CAIRN_BACKEND: fake cannot be used: memory_budget_bytes is an option of the backend "
            "cairn alone; there are cairn, fake, mlx, openvino");
  unsetenv("CAIRN_BACKEND");
  params = fake_params();
  params.options_json = R"({"backend": "fake", "numerics": "fast-1"})";
  EXPECT_EQ(open_with(params).status, CAIRN_E_UNSUPPORTED);
  fake_settings().is_available = false;
  opening = open_with(fake_params());
  fake_settings().is_available = true;
  EXPECT_EQ(opening.status, CAIRN_E_UNSUPPORTED);
  EXPECT_EQ(opening.message,
            "backend: fake cannot be used: no such device; there are cairn, fake, mlx, openvino");
}

// Those from Python packages are there where the packages are.
TEST(Backends, AreListed) {
  const std::string listed = cairn_backends_json();
  const std::string ours =
      R"([{"name":"cairn","available":true,"rank":0,"capabilities":["rewind","snapshot"],)"
      R"("exactness":"bitwise","numerics":"exact-1","why_not":""},)"
      R"({"name":"fake","available":true,"rank":-1,"capabilities":["rewind","snapshot"],)"
      R"("exactness":"bitwise","numerics":"hashes","why_not":""},{"name":"mlx",)";
  EXPECT_EQ(listed.substr(0, ours.size()), ours);
  EXPECT_NE(listed.find(R"("rank":-10,"capabilities":["rewind","snapshot"],"exactness":"replay",)"
                        R"("numerics":"openvino, cpu, f32")"),
            std::string::npos);
}

TEST(Backends, SayWhatTheyCannotDo) {
  Fake fake({});
  cairn_conversation* const c = fake.opened->conversation();
  cairn_error& error = fake.opened->error;
  EXPECT_EQ(cairn_save(c, "name", &error), CAIRN_E_UNSUPPORTED);
  EXPECT_EQ(cairn_restore(c, "name", nullptr, &error), CAIRN_E_UNSUPPORTED);
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(fake.opened->model, &sampling, sizeof sampling);
  sampling.flags = CAIRN_SAMPLING_RECEIPT;
  EXPECT_EQ(cairn_set_sampling(c, &sampling, &error), CAIRN_E_UNSUPPORTED);
  const cairn_token token = 100;
  float vector = 0;
  size_t floats = 0;
  EXPECT_EQ(cairn_embed(fake.opened->engine, &token, 1, &vector, 1, &floats, &error),
            CAIRN_E_UNSUPPORTED);
  std::vector<cairn_token> many(257, 100);
  EXPECT_EQ(cairn_sync(c, many.data(), many.size(), nullptr, &error), CAIRN_E_NO_ROOM);
  cairn_conversation_close(c);
}

// The log-probabilities of a text are those of its rows.
TEST(Backends, Score) {
  Fake fake({});
  Opened& opened = *fake.opened;
  const std::vector<cairn_token> tokens = {100, 105, 101, 7};
  std::vector<float> found(3);
  std::vector<cairn_token> likeliest(3);
  ASSERT_EQ(cairn_score(opened.engine, tokens.data(), tokens.size(), found.data(), likeliest.data(),
                        3, &opened.error),
            CAIRN_OK)
      << opened.error.message;
  cairn_conversation* const c = opened.conversation();
  for (size_t index = 0; index < 3; ++index) {
    ASSERT_EQ(cairn_prefill(c, &tokens[index], 1, nullptr, nullptr), CAIRN_OK);
    const std::vector<float> row = test::logits_of(c);
    EXPECT_EQ(likeliest[index], std::ranges::max_element(row) - row.begin());
    const double largest = double(*std::ranges::max_element(row));
    double sum = 0;
    for (const float logit : row) sum += std::exp(double(logit) - largest);
    const double expected = double(row[size_t(tokens[index + 1])]) - largest - std::log(sum);
    EXPECT_NEAR(double(found[index]), expected, 1e-2);
  }
  cairn_conversation_close(c);
}

TEST(Backends, PlansTellWhatIsReadAgain) {
  const std::vector<cairn_token> tokens(30, 100);
  for (const uint32_t capabilities : {uint32_t(0), uint32_t(kRewinds)}) {
    Fake fake({.capabilities = capabilities});
    cairn_conversation* const c = fake.opened->conversation();
    cairn_plan plan = sized<cairn_plan>();
    for (int count = 0; count < 3; ++count) {
      ASSERT_EQ(cairn_prefill(c, tokens.data(), 10, &plan, nullptr), CAIRN_OK);
    }
    EXPECT_EQ(plan.replayed_by_cairn, 0);
    ASSERT_EQ(cairn_rewind(c, 20, &plan, nullptr), CAIRN_OK);
    EXPECT_EQ(plan.replayed_by_cairn, uint8_t(capabilities == 0));
    EXPECT_EQ(plan.forward_tokens, capabilities == 0 ? 20u : 10u);
    EXPECT_EQ(fake.runtime->token_count, 30u + plan.forward_tokens);
    cairn_conversation_close(c);
  }
}

// Greedy tokens to the answer's end; what is cancelled is asked for again.
std::vector<cairn_token> answer_of(cairn_conversation* c, bool in_background) {
  cairn_error error = sized<cairn_error>();
  cairn_event event = sized<cairn_event>();
  std::vector<cairn_token> tokens;
  cairn_status status = CAIRN_CANCELLED;
  bool has_begun = !in_background;
  while (status != CAIRN_DONE) {
    if (!has_begun) has_begun = cairn_start(c, &error) == CAIRN_OK;
    if (!has_begun) continue;
    status = cairn_next(c, &event, &error);
    if (status == CAIRN_CANCELLED) has_begun = !in_background;
    if (status < 0) return {};
    if (status == CAIRN_OK) tokens.insert(tokens.end(), event.tokens, event.tokens + 1);
  }
  return tokens;
}

void set_sampling(Opened& opened, cairn_conversation* c, int32_t max_tokens) {
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(opened.model, &sampling, sizeof sampling);
  sampling.temperature = 0;
  sampling.max_tokens = max_tokens;
  sampling.flags = CAIRN_SAMPLING_IGNORE_END;
  ASSERT_EQ(cairn_set_sampling(c, &sampling, nullptr), CAIRN_OK);
}

TEST(Backends, CancellationsAnywhereChangeNoToken) {
  const std::vector<cairn_token> prompt = {100, 101, 102};
  for (const uint32_t capabilities : kAllCapabilities) {
    for (const bool cancels_late : {false, true}) {
      SCOPED_TRACE(testing::Message() << capabilities << " " << cancels_late);
      Fake fake({.capabilities = capabilities, .cancels_late = cancels_late});
      cairn_conversation* const c = fake.opened->conversation();
      set_sampling(*fake.opened, c, 150);
      ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
      const std::vector<cairn_token> expected = answer_of(c, false);
      ASSERT_EQ(expected.size(), 150u);
      for (const bool in_background : {false, true}) {
        while (cairn_rewind(c, 3, nullptr, nullptr) != CAIRN_OK) {
        }
        std::atomic<bool> has_ended = false;
        std::thread canceller([&] {
          std::mt19937 random(7);
          while (!has_ended) {
            fake.runtime->is_slow = random() % 2 == 0;
            cairn_cancel(c);
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
            fake.runtime->is_slow = false;
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
          }
          fake.runtime->is_slow = false;
        });
        EXPECT_EQ(answer_of(c, in_background), expected);
        has_ended = true;
        canceller.join();
      }
      cairn_conversation_close(c);
    }
  }
}

// A call that computes for ever is ended by a mark alone.
TEST(Backends, CancelEndsWhatRuns) {
  Fake fake({});
  cairn_conversation* const c = fake.opened->conversation();
  const cairn_token token = 100;
  fake.runtime->is_slow = true;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cairn_cancel(c);
  });
  EXPECT_EQ(cairn_prefill(c, &token, 1, nullptr, nullptr), CAIRN_CANCELLED);
  canceller.join();
  // One that waits for its turn ends too.
  cairn_conversation* const other = fake.opened->conversation();
  std::thread first(
      [&] { EXPECT_EQ(cairn_prefill(c, &token, 1, nullptr, nullptr), CAIRN_CANCELLED); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::thread second(
      [&] { EXPECT_EQ(cairn_prefill(other, &token, 1, nullptr, nullptr), CAIRN_CANCELLED); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  cairn_cancel(other);
  second.join();
  cairn_cancel(c);
  first.join();
  fake.runtime->is_slow = false;
  EXPECT_EQ(cairn_prefill(c, &token, 1, nullptr, nullptr), CAIRN_OK);
  cairn_conversation_close(other);
  // Closing ends what is made in the background.
  fake.runtime->is_slow = true;
  ASSERT_EQ(cairn_prefill(c, &token, 0, nullptr, nullptr), CAIRN_OK);
  ASSERT_EQ(cairn_start(c, nullptr), CAIRN_OK);
  cairn_conversation_close(c);
}

TEST(Backends, FailuresLeaveConversationsAsTheyWere) {
  const std::vector<cairn_token> prompt = {100, 101, 102, 103, 104, 105};
  for (const uint32_t capabilities : kAllCapabilities) {
    for (const bool loses_all : {false, true}) {
      for (int fails_at = 2; fails_at < 8; ++fails_at) {
        SCOPED_TRACE(testing::Message() << capabilities << " " << loses_all << " " << fails_at);
        Fake fake({.capabilities = capabilities,
                   .fails_at = fails_at,
                   .loses_all_on_failure = loses_all});
        Opened& opened = *fake.opened;
        cairn_conversation* const c = opened.conversation();
        set_sampling(opened, c, -1);
        int failure_count = 0;
        Read read;
        const auto check = [&](cairn_status status) {
          if (status == CAIRN_OK) return true;
          EXPECT_EQ(status, CAIRN_E_IO);
          ++failure_count;
          size_t count = 0;
          const cairn_token* const tokens = cairn_tokens(c, &count);
          EXPECT_TRUE(std::ranges::equal(read.tokens, std::span(tokens, count)));
          return false;
        };
        const auto prefill = [&](std::span<const cairn_token> more) {
          if (check(cairn_prefill(c, more.data(), more.size(), nullptr, nullptr))) read.add(more);
        };
        prefill(prompt);
        prefill(std::span(prompt).first(2));
        cairn_event event = sized<cairn_event>();
        for (int count = 0; count < 3; ++count) {
          if (check(cairn_next(c, &event, nullptr))) read.add({event.tokens, 1});
        }
        if (check(cairn_rewind(c, 7, nullptr, nullptr))) read.cut(7);
        for (int count = 0; count < 3; ++count) prefill(prompt);
        EXPECT_EQ(failure_count, 1);
        cairn_conversation* const other = opened.conversation();
        size_t begin = 0;
        for (const size_t end : read.ends) {
          ASSERT_EQ(cairn_prefill(other, &read.tokens[begin], end - begin, nullptr, nullptr),
                    CAIRN_OK);
          begin = end;
        }
        EXPECT_TRUE(test::same_bits(test::logits_of(c), test::logits_of(other)));
        cairn_conversation_close(other);
        cairn_conversation_close(c);
      }
    }
  }
}

// Several answers in the background, each as it is alone; grammar and stop texts count.
TEST(Backends, ManyAnswersAtATime) {
  Fake fake({});
  Opened& opened = *fake.opened;
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(opened.model, &sampling, sizeof sampling);
  sampling.flags = CAIRN_SAMPLING_SEED;
  sampling.seed = 3;
  sampling.max_tokens = 100;
  sampling.grammar = "root ::= [a-z]+ \" \" [0-9]*";
  std::vector<std::string> expected;
  std::vector<cairn_conversation*> all;
  for (int index = 0; index < 8; ++index) {
    const std::vector<cairn_token> prompt(size_t(index) + 1, 100);
    all.push_back(opened.conversation());
    ASSERT_EQ(cairn_set_sampling(all.back(), &sampling, &opened.error), CAIRN_OK)
        << opened.error.message;
    ASSERT_EQ(cairn_sync(all.back(), prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
    cairn_snapshot* mark = nullptr;
    ASSERT_EQ(cairn_snapshot_take(all.back(), &mark, nullptr), CAIRN_OK);
    expected.push_back(test::answer_of(all.back()));
    EXPECT_TRUE(expected.back().find_first_not_of("abcdefghijklmnopqrstuvwxyz 0123456789") ==
                std::string::npos);
    ASSERT_EQ(cairn_rewind_to(all.back(), mark, nullptr, nullptr), CAIRN_OK);
    cairn_snapshot_release(mark);
  }
  for (cairn_conversation* c : all) ASSERT_EQ(cairn_start(c, nullptr), CAIRN_OK);
  for (size_t index = 0; index < all.size(); ++index) {
    EXPECT_EQ(test::answer_of(all[index]), expected[index]);
    cairn_conversation_close(all[index]);
  }
}

}  // namespace
}  // namespace cairn::backends_test
