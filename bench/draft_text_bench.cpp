// What drafts gain on recorded texts where steps take given times: the real drafters, their
// calibration and the choice of rows, without a model. A second for all of it.
//   draft_text_bench VOCABULARY FILE…
// FILE: a text, or a transcript (*.json), whose answers are said.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/transcript.h"
#include "draft/lookup_drafter.h"
#include "draft/recycle_drafter.h"
#include "draft/row_choice.h"
#include "draft/speculator.h"
#include "engine/model_text.h"

namespace {

using namespace cairn;

// The second one: Qwen 3.5 0.8B Q4_K behind 4,000 tokens.
const std::array kCurves = {
    bench::kLlamaCurve,
    bench::StepCurve{
        "Qwen 3.5, deep", {{1, 12.4}, {4, 21}, {5, 26.8}, {6, 28.2}, {8, 35.9}, {16, 73.6}}},
};
constexpr double kPlainSeconds = 0.02;
constexpr size_t kCorpusBytes = size_t(32) << 20;
constexpr int32_t kRowsMost = 64;

struct Figures {
  double tokens = 0, steps = 0, seconds = 0, drafted = 0, accepted = 0;
};

// One tenant, one conversation after the other.
class Replay {
 public:
  Replay(const bench::StepCurve& curve, int32_t vocabulary_count)
      : curve_(curve), vocabulary_count_(vocabulary_count) {}

  void answer(const bench::Turn& turn) {
    text_.insert(text_.end(), turn.asked.begin(), turn.asked.end());
    draft::Speculator speculator = new_speculator();
    for (std::span<const Token> rest = turn.answered; !rest.empty();) {
      rest = rest.subspan(step(speculator, rest));
    }
    knowledge_->said.append(text_);
  }
  const Figures& figures() const { return figures_; }

 private:
  draft::Speculator new_speculator() {
    std::vector<std::unique_ptr<draft::Drafter>> drafters;
    drafters.push_back(std::make_unique<draft::LookupDrafter>(draft::LookupDrafter::Options{
        .knowledge = knowledge_, .known_count = knowledge_->said.known_count(text_)}));
    drafters.push_back(std::make_unique<draft::RecycleDrafter>(
        std::shared_ptr<draft::RecycleTable>(knowledge_, &knowledge_->successors)));
    return draft::Speculator(
        std::move(drafters), vocabulary_count_,
        {.calibrations = &calibrations_, .clock = [this] { return figures_.seconds; }});
  }

  // Returns how many tokens of the rest were said.
  size_t step(draft::Speculator& speculator, std::span<const Token> rest) {
    const auto seconds = [this](int32_t rows) { return kPlainSeconds * curve_.at(size_t(rows)); };
    const int32_t count_max = std::min(kRowsMost, int32_t(rest.size())) - 1;
    const draft::Speculator::Proposal proposal =
        speculator.propose({.text = text_, .count_max = count_max});
    int32_t checked = 0;
    draft::choose_counts({&proposal.reach, 1}, kRowsMost, seconds, {&checked, 1});
    const auto tokens = proposal.tokens.first(size_t(checked));
    const size_t accepted =
        size_t(std::ranges::mismatch(tokens, rest.first(tokens.size())).in1 - tokens.begin());
    text_.insert(text_.end(), rest.begin(), rest.begin() + std::ptrdiff_t(accepted) + 1);
    const double taken = seconds(checked + 1);
    speculator.take({.checked = checked, .accepted = int32_t(accepted)}, taken, kPlainSeconds,
                    text_);
    figures_.tokens += double(accepted) + 1;
    figures_.steps += 1;
    figures_.seconds += taken;
    figures_.drafted += double(checked);
    figures_.accepted += double(accepted);
    return accepted + 1;
  }

  const bench::StepCurve& curve_;
  int32_t vocabulary_count_;
  std::shared_ptr<draft::Knowledge> knowledge_ = std::make_shared<draft::Knowledge>(kCorpusBytes);
  draft::Calibrations calibrations_;
  std::vector<Token> text_;
  Figures figures_;
};

Status replay(const std::string& vocabulary, std::span<const std::string> paths) {
  CAIRN_TRY(const gguf::File file, gguf::File::open(vocabulary));
  CAIRN_TRY(const std::unique_ptr<ModelText> text, ModelText::load(file));
  fmt::print("{:24} {:16} {:>9} {:>8} {:>13} {:>20}\n", "text", "rows cost as", "tokens", "gain",
             "tokens a step", "drafted ones right");
  for (const std::string& path : paths) {
    CAIRN_TRY(const std::vector<bench::Turn> turns, bench::read_turns(path, *text->tokenizer()));
    for (const bench::StepCurve& curve : kCurves) {
      Replay replay(curve, int32_t(text->tokenizer()->token_count()));
      for (const bench::Turn& turn : turns) replay.answer(turn);
      const Figures& all = replay.figures();
      fmt::print("{:24} {:16} {:9} {:6.2f} x {:13.2f} {:8} of {:8}\n",
                 path.substr(path.rfind('/') + 1), curve.name, all.tokens,
                 all.tokens * kPlainSeconds / all.seconds, all.tokens / all.steps, all.accepted,
                 all.drafted);
    }
  }
  return Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "draft_text_bench VOCABULARY FILE...\n");
    return 2;
  }
  const std::vector<std::string> paths(argv + 2, argv + argc);
  if (const Status replayed = replay(argv[1], paths); !replayed) {
    fmt::print(stderr, "draft_text_bench: {}\n", replayed.error().message);
    return 1;
  }
  return 0;
}
