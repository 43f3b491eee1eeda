// What cairn.h costs for a token: answers of a million tokens over the fake runtime. "next" is on
// the caller's thread, "start" in the background. What the fake and the sampler take of it, which
// are not the interface's, is told beside it, and the rest.
//   build/bench/capi_bench [TOKENS]
#include <cairn.h>
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/model_text.h"
#include "gguf/gguf.h"
#include "sample/sampler.h"
#include "tests/capi/fake_backend.h"

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point begin, int64_t count) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / double(count);
}

void check(cairn_status status, const cairn_error& error) {
  if (status >= 0) return;
  fmt::print(stderr, "{}\n", error.message);
  std::exit(1);
}

// The fake's and the sampler's microseconds for a token of the same answers.
double measure_others(const char* path, int64_t count) {
  auto file = cairn::gguf::File::open(path);
  auto text = cairn::ModelText::load(*file);
  cairn::test::FakeRuntime fake(
      {.vocabulary_count = cairn::test::fake_settings().last->vocabulary_count(),
       .context_tokens = int32_t(count) + 16});
  auto session = fake.open_session();
  cairn::Token token = cairn::Token(100);
  Clock::time_point begin = Clock::now();
  for (int64_t index = 0; index < count; ++index) {
    (void)(*session)->append(std::span(&token, 1));
  }
  const double fakes = microseconds_since(begin, count);
  cairn::sample::Sampler sampler({.temperature = 0, .ignore_eos = true}, (*text)->tokenizer());
  begin = Clock::now();
  for (int64_t index = 0; index < count; ++index) {
    auto row = (*session)->append(std::span(&token, 1));
    auto chosen = sampler.sample(*row, int32_t(index));
    token = *chosen;
  }
  const double both = microseconds_since(begin, count);
  fmt::print("{:10} {:8.3f} us\n{:10} {:8.3f} us\n", "the fake", fakes, "sampling", both - fakes);
  return both;
}

void measure(const char* path, int64_t count) {
  cairn_error error{};
  error.struct_size = sizeof error;
  cairn_model* model = nullptr;
  check(cairn_model_open(path, &model, &error), error);
  cairn_engine_params params{};
  params.struct_size = sizeof params;
  params.context_tokens = uint32_t(count) + 16;
  params.options_json = R"({"backend": "fake"})";
  cairn_engine* engine = nullptr;
  check(cairn_engine_open(model, &params, &engine, &error), error);
  cairn_sampling sampling{};
  cairn_sampling_init(model, &sampling, sizeof sampling);
  sampling.temperature = 0;
  sampling.max_tokens = int32_t(count);
  sampling.flags = CAIRN_SAMPLING_IGNORE_END;
  cairn_event event{};
  event.struct_size = sizeof event;
  double next = 0;
  for (const bool in_background : {false, true}) {
    cairn_conversation* c = nullptr;
    check(cairn_conversation_open(engine, &c, &error), error);
    check(cairn_set_sampling(c, &sampling, &error), error);
    const cairn_token prompt = 100;
    check(cairn_sync(c, &prompt, 1, nullptr, &error), error);
    const Clock::time_point begin = Clock::now();
    if (in_background) check(cairn_start(c, &error), error);
    cairn_status status = CAIRN_OK;
    while (status == CAIRN_OK) {
      status = cairn_next(c, &event, &error);
      check(status, error);
    }
    const double time = microseconds_since(begin, count);
    if (!in_background) next = time;
    fmt::print("{:10} {:8.3f} us for a token\n", in_background ? "start" : "next", time);
    cairn_conversation_close(c);
  }
  const double others = measure_others(path, count);
  fmt::print("{:10} {:8.3f} us: what next takes itself\n", "", next - others);
  cairn_engine_close(engine);
  cairn_model_close(model);
}

}  // namespace

int main(int argument_count, char** arguments) {
  measure(CAIRN_SOURCE "/assets/nano.gguf",
          argument_count > 1 ? std::atoll(arguments[1]) : 1000000);
}
