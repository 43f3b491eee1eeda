// What drafting costs: following a text and looking for what follows it, for each token, beside a
// corpus of a million tokens; appending to a corpus, and how much memory a token takes there; and
// choosing rows. Texts as languages make them: words by Zipf's law, and phrases that come again.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "bench/figures.h"
#include "draft/corpus.h"
#include "draft/lookup_drafter.h"
#include "draft/recycle_drafter.h"
#include "draft/row_choice.h"
#include "draft/speculator.h"

namespace cairn::draft {
namespace {

using Text = std::vector<Token>;

constexpr int32_t kVocabulary = 50000;

double microseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

// Half of it is phrases that were said before.
Text language(std::mt19937& random, size_t count) {
  Text text;
  const auto word = [&random] {
    const double part = double(random()) / 4294967296.0;
    return Token(int32_t(std::pow(double(kVocabulary), part)) - 1);
  };
  while (text.size() < count) {
    const bool is_known = text.size() > 100 && random() % 2 == 0;
    const size_t length = 5 + random() % 30;
    const size_t from = is_known ? random() % (text.size() - 50) : 0;
    for (size_t i = 0; i < length; ++i) text.push_back(is_known ? text[from + i] : word());
  }
  text.resize(count);
  return text;
}

void report(const char* name, std::vector<double> times) {
  fmt::print("{:<44} {:>8.2f} {:>8.2f} {:>8.2f} {:>9.2f}\n", name, bench::quantile(times, .5),
             bench::quantile(times, .99), bench::quantile(times, .999), bench::quantile(times, 1));
}

// An answer of which each step brings a token.
template <class Propose>
std::vector<double> step_times(std::span<const Token> text, size_t prompt_count, Propose propose) {
  std::vector<double> times;
  for (size_t end = prompt_count; end < text.size(); ++end) {
    const double begin = microseconds();
    propose(text.first(end));
    times.push_back(microseconds() - begin);
  }
  return times;
}

void measure_drafters(const std::shared_ptr<Knowledge>& knowledge, const Text& text) {
  constexpr size_t kPrompt = 2000;
  const auto drafter_times = [&](Drafter& drafter) {
    Draft draft;
    auto times = step_times(text, kPrompt, [&](std::span<const Token> seen) {
      draft.clear();
      drafter.propose({.text = seen, .count_max = 64}, draft);
    });
    return times;
  };
  LookupDrafter own({}), both({.knowledge = knowledge});
  report("lookup, the text alone", drafter_times(own));
  report("lookup, the text and the corpus", drafter_times(both));
  const std::shared_ptr<RecycleTable> table(knowledge, &knowledge->successors);
  RecycleDrafter recycle(table);
  report("recycle", drafter_times(recycle));

  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(
      std::make_unique<LookupDrafter>(LookupDrafter::Options{.knowledge = knowledge}));
  drafters.push_back(std::make_unique<RecycleDrafter>(table));
  Calibrations calibrations;
  Speculator speculator(std::move(drafters), kVocabulary, {.calibrations = &calibrations});
  auto times = step_times(text, kPrompt, [&](std::span<const Token> seen) {
    const auto proposal = speculator.propose({.text = seen, .count_max = 16});
    const auto seconds = [](int32_t rows) { return 1 + 0.1 * double(rows); };
    int32_t count = 0;
    choose_counts({&proposal.reach, 1}, 17, seconds, {&count, 1});
    // Nothing is checked: the text comes token by token.
    speculator.take({}, .02, .02, seen);
  });
  report("a whole step: both, calibrated, rows chosen", times);
}

void measure_prompt(const Text& text) {
  LookupDrafter drafter({});
  Draft draft;
  std::vector<double> times;
  // Until all of it was followed, a part in each step.
  for (int step = 0; step < 31; ++step) {
    const double begin = microseconds();
    draft.clear();
    drafter.propose({.text = std::span(text).first(65536), .count_max = 64}, draft);
    times.push_back((microseconds() - begin) / 2048);
  }
  report("a prompt of 65536 tokens, each of them", times);
}

void measure_rows() {
  for (const size_t sequences : {size_t(1), size_t(16), size_t(64)}) {
    std::vector<std::vector<float>> values(sequences, std::vector<float>(16));
    for (auto& reach : values) {
      float left = 1;
      for (float& value : reach) value = left *= .9f;
    }
    const std::vector<std::span<const float>> reach(values.begin(), values.end());
    std::vector<int32_t> counts(sequences);
    std::vector<double> times;
    for (int round = 0; round < 2000; ++round) {
      const double begin = microseconds();
      const auto seconds = [](int32_t rows) { return 1 + 0.01 * double(rows); };
      choose_counts(reach, int32_t(sequences) + 64, seconds, counts);
      times.push_back(microseconds() - begin);
    }
    report(fmt::format("choosing rows for {} sequences", sequences).c_str(), times);
  }
}

}  // namespace
}  // namespace cairn::draft

int main(int argc, char** argv) {
  using namespace cairn;
  using namespace cairn::draft;
  const size_t count = argc > 1 ? size_t(std::atoll(argv[1])) : 1000000;
  std::mt19937 random(1);
  const Text said = language(random, count);
  // Room for all of it, twice: in one generation.
  const auto knowledge = std::make_shared<Knowledge>(std::max(count * 400, size_t(1) << 20));
  fmt::print("microseconds                                   median     99 %   99.9 %     worst\n");
  std::vector<double> times;
  constexpr size_t kTurn = 500;
  for (size_t end = kTurn; end <= count; end += kTurn) {
    const double begin = microseconds();
    knowledge->said.append(std::span(said).first(end), end - kTurn);
    times.push_back((microseconds() - begin) / double(kTurn));
  }
  report("appending a token to the corpus", times);
  const double begin = microseconds();
  const size_t known = knowledge->said.known_count(said);
  fmt::print("{:<44} {:>8.2f}\n", "finding a token that is known",
             (microseconds() - begin) / double(std::max(known, size_t(1))));
  fmt::print("a corpus of {} tokens: {:.1f} bytes a token\n", known,
             double(knowledge->bytes()) / double(count));
  // Half of the answer quotes what was said.
  Text answer = language(random, 12000);
  for (size_t at = 3000; at + 60 < answer.size(); at += 120) {
    std::copy_n(said.begin() + std::ptrdiff_t(random() % (count - 60)), 60,
                answer.begin() + std::ptrdiff_t(at));
  }
  measure_drafters(knowledge, answer);
  if (count >= 65536) measure_prompt(said);
  measure_rows();

  Knowledge limited(Corpora::Budget{}.tenant_bytes);
  size_t most = 0;
  for (size_t end = kTurn; end <= count; end += kTurn) {
    limited.said.append(std::span(said).first(end), end - kTurn);
    most = std::max(most, limited.said.bytes());
  }
  fmt::print("the default budget, {} bytes: at most {} were allocated\n",
             Corpora::Budget{}.tenant_bytes, most);
  return 0;
}
