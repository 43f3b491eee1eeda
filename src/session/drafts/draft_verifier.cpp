// Answers with and without drafts, side by side.
#include "session/drafts/draft_verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "draft/adversary.h"
#include "engine/lane_batch.h"
#include "session/completion.h"
#include "session/receipt.h"

namespace cairn::session {

namespace {

constexpr std::string_view kSchema =
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},)"
    R"( "place": {"enum": ["here", "there"]}}, "required": ["name", "place"],)"
    R"( "additionalProperties": false})";

struct Asked {
  std::vector<Token> prompt;
  sample::SamplingParams sampling;
  ConstraintChoice form;
};

struct MadeAnswer {
  Receipt receipt;
  std::vector<Token> text;  // All that memory holds.
  std::vector<float> next;  // The logits behind it and one token more, [vocabulary].
  int64_t drafted = 0, accepted = 0;
};

class DraftVerifier {
 public:
  DraftVerifier(Engine& engine, const DraftVerifyOptions& options)
      : engine_(engine), options_(options), random_(options.seed) {}

  Result<std::vector<DraftVerifyRow>> run() {
    std::vector<DraftVerifyRow> rows;
    for (const std::string_view name : draft::kHabitNames)
      rows.push_back({.drafter = std::string(name)});
    rows.push_back({.drafter = "the engine's own"});
    const int32_t total = options_.program_count * int32_t(rows.size() + 1);
    int32_t done = 0;
    const auto goes_on = [&]() -> Status {
      if (!options_.on_progress || options_.on_progress(++done, total)) return Ok{};
      return fail(ErrorCode::cancelled, "verify: interrupted");
    };
    for (int32_t program = 0; program < options_.program_count; ++program) {
      const Asked asked = random_answer(program);
      CAIRN_TRY(const MadeAnswer plain, answer(asked, {}, nullptr));
      CAIRN_TRY(goes_on());
      for (size_t index = 0; index < rows.size(); ++index) {
        CAIRN_TRY(const MadeAnswer made,
                  index < draft::kHabits.size()
                      ? answer(asked, adversary(draft::kHabits[index], plain), nullptr)
                      : answer(asked, {}, &drafting_));
        compare(plain, made, program, rows[index]);
        CAIRN_TRY(goes_on());
      }
    }
    return rows;
  }

 private:
  int32_t pick(int32_t count) { return int32_t(random_() % uint64_t(std::max(1, count))); }

  // Prompts that repeat themselves, so that something of them is to be drafted.
  Asked random_answer(int32_t program) {
    Asked asked;
    const int32_t context = engine_.options().context_tokens;
    const int32_t most = std::max(1, std::min(200, context - options_.token_count - 4));
    const int32_t length = 1 + pick(most);
    const int32_t period = 1 + pick(length);
    for (int32_t i = 0; i < length; ++i) {
      const bool repeats = i >= period && pick(16) > 0;
      asked.prompt.push_back(repeats ? asked.prompt[size_t(i - period)]
                                     : Token(pick(int32_t(engine_.size().vocabulary_count))));
    }
    asked.sampling.seed = random_();
    asked.sampling.temperature = float(program % 2);
    asked.sampling.ignore_eos = program % 4 < 2;
    if (program % 4 == 2) asked.sampling.repeat_penalty = 1.2f;
    if (program % 4 == 3) asked.sampling.mirostat = 2;
    if (program % 3 == 1) asked.form.json_schema = std::string(kSchema);
    return asked;
  }

  std::unique_ptr<draft::Speculator> adversary(draft::Habit habit, const MadeAnswer& plain) {
    const int32_t vocabulary_count = int32_t(engine_.size().vocabulary_count);
    std::vector<std::unique_ptr<draft::Drafter>> drafters;
    drafters.push_back(
        std::make_unique<draft::Adversary>(habit, plain.text, vocabulary_count, random_()));
    return std::make_unique<draft::Speculator>(std::move(drafters), vocabulary_count,
                                               draft::SpeculatorOptions{.is_free = true});
  }

  // All drafts are checked, whether they pay or not.
  Result<MadeAnswer> answer(const Asked& asked, std::unique_ptr<draft::Speculator> speculator,
                            Drafting* drafting) {
    engine_.cache().clear();
    CAIRN_TRY(const auto matcher, make_matcher(asked.form, engine_.text()));
    Lane lane(&engine_);
    AnswerRequest request{.prompt = asked.prompt,
                          .message_starts = {},
                          .answer_prefix = {},
                          .token_count_max = options_.token_count,
                          .matcher = matcher.get()};
    sample::Sampler sampler(asked.sampling, engine_.tokenizer());
    ReceiptDraft receipt(engine_, lane.selection(), request, sampler, {});
    request.choices = &receipt.choices;
    CAIRN_TRY(const auto completion,
              Completion::begin(engine_.tokenizer(), &lane, request, std::move(sampler)));
    if (drafting != nullptr) {
      completion->draft(&lane, *drafting, {}, request, 0);
    } else {
      completion->draft_by(&lane, {std::move(speculator)}, Lane::kDraftsMax);
    }
    LaneBatch batch(&engine_, true);
    while (!completion->is_done()) {
      if (!lane.wants_rows()) {
        CAIRN_TRY(completion->advance());
        continue;
      }
      const bool is_drafted = completion->has_drafters() && !lane.is_reading();
      CAIRN_TRY(
          completion->take_step(is_drafted ? batch.step(lane, *completion) : batch.step(lane)));
    }
    CAIRN_TRY(const Answer made, completion->finish());
    MadeAnswer out{.receipt = std::move(receipt).finish(made.finish)};
    if (made.drafts) {
      out.drafted = made.drafts->drafted();
      out.accepted = made.drafts->accepted();
    }
    const std::span<const Token> text = lane.whole_text();
    out.text.assign(text.begin(), text.end());
    CAIRN_TRY(out.next, logits_behind(out.text));
    return out;
  }

  // By going on from what the answer has left in memory.
  Result<std::vector<float>> logits_behind(std::vector<Token> text) {
    text.push_back(Token(0));
    Lane lane(&engine_);
    LaneBatch batch(&engine_);
    CAIRN_TRY(lane.start(text));
    while (lane.wants_rows()) CAIRN_TRY(batch.step(lane));
    return std::vector<float>(lane.logits().begin(), lane.logits().end());
  }

  static void compare(const MadeAnswer& plain, const MadeAnswer& made, int32_t program,
                      DraftVerifyRow& row) {
    ++row.answers;
    row.drafted += made.drafted;
    row.accepted += made.accepted;
    std::string what;
    if (const auto found = difference_of(plain.receipt, made.receipt)) {
      what = fmt::format("{} of token {}", found->field, found->token);
    } else if (plain.text != made.text) {
      what = "what memory holds";
    } else if (plain.next.size() != made.next.size() ||
               std::memcmp(plain.next.data(), made.next.data(),
                           plain.next.size() * sizeof(float)) != 0) {
      what = "the next logits";
    }
    if (what.empty()) return;
    ++row.differing;
    if (row.first_difference.empty()) {
      row.first_difference = fmt::format("answer {}: {}", program, what);
    }
  }

  Engine& engine_;
  const DraftVerifyOptions& options_;
  std::mt19937_64 random_;
  Drafting drafting_{&engine_};
};

}  // namespace

Result<std::vector<DraftVerifyRow>> verify_drafts(Engine& engine,
                                                  const DraftVerifyOptions& options) {
  return DraftVerifier(engine, options).run();
}

}  // namespace cairn::session
