// The table of drafters, and choices from it.
#include "session/drafts/drafting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "draft/lookup_drafter.h"
#include "draft/prediction_drafter.h"
#include "draft/recycle_drafter.h"
#include "engine/drafts/draft_model.h"
#include "engine/drafts/lookahead_drafter.h"
#include "engine/drafts/predictor_drafter.h"
#include "engine/drafts/text_drafter.h"
#include "session/drafts/forced_drafter.h"

namespace cairn::session {

namespace {

using Tokens = std::vector<Token>;
using Made = std::unique_ptr<draft::Drafter>;
using RowReaders = std::vector<RowReader*>;

constexpr size_t kShownBytesMax = 64;  // Of a name that is none.
// Of texts from the store: what half of a corpus holds.
constexpr int64_t kRecalledTokensMax = 150000;

}  // namespace

struct Drafting::Kind {
  std::string_view name;
  bool is_usual;  // Where nobody has chosen.
  // Null where such a drafter has nothing to go by.
  std::unique_ptr<draft::Drafter> (*make)(Drafting& shared, const DraftOrder& order,
                                          const DraftedText& text, RowReaders& readers);
};

// Of equal drafts the first one's is taken.
std::span<const Drafting::Kind> Drafting::kinds() {
  static constexpr std::array kKinds = {
      Kind{"forced", true,
           [](Drafting&, const DraftOrder&, const DraftedText& text, RowReaders&) -> Made {
             if (!text.constraint->has_matcher()) return nullptr;
             return std::make_unique<ForcedDrafter>(text.constraint, text.tokenizer);
           }},
      Kind{"prediction", true,
           [](Drafting&, const DraftOrder& order, const DraftedText& text, RowReaders&) -> Made {
             if (order.prediction.empty()) return nullptr;
             return std::make_unique<draft::PredictionDrafter>(order.prediction, text.answer_begin);
           }},
      Kind{"lookup", true,
           [](Drafting& shared, const DraftOrder&, const DraftedText& text, RowReaders&) -> Made {
             draft::LookupDrafter::Options options;
             options.knowledge = shared.knowledge(text.tenant);
             options.known_count = options.knowledge->said.known_count(text.prompt);
             return std::make_unique<draft::LookupDrafter>(std::move(options));
           }},
      Kind{"recycle", true,
           [](Drafting& shared, const DraftOrder&, const DraftedText& text, RowReaders&) -> Made {
             const std::shared_ptr<draft::Knowledge> knowledge = shared.knowledge(text.tenant);
             return std::make_unique<draft::RecycleDrafter>(
                 std::shared_ptr<draft::RecycleTable>(knowledge, &knowledge->successors));
           }},
      Kind{"mtp", true,
           [](Drafting& shared, const DraftOrder&, const DraftedText& text,
              RowReaders& readers) -> Made {
             Predictor* const predictor = shared.engine_->predictor();
             if (predictor == nullptr) return nullptr;
             auto made =
                 std::make_unique<PredictorDrafter>(predictor, text.sampler, text.tokenizer);
             readers.push_back(made.get());
             return made;
           }},
      Kind{"draft", true,
           [](Drafting& shared, const DraftOrder&, const DraftedText& text, RowReaders&) -> Made {
             DraftModel* const model = shared.engine_->draft_model();
             if (model == nullptr) return nullptr;
             return make_model_drafter(model, text.sampler, text.tenant);
           }},
      Kind{"lookahead", false,
           [](Drafting&, const DraftOrder&, const DraftedText&, RowReaders& readers) -> Made {
             auto made = std::make_unique<LookaheadDrafter>();
             readers.push_back(made.get());
             return made;
           }},
  };
  return kKinds;
}

std::shared_ptr<draft::Knowledge> Drafting::knowledge(uint64_t tenant) {
  return corpora_.of(fmt::to_string(tenant));
}

void Drafting::remember(uint64_t tenant, std::span<const Token> text) {
  knowledge(tenant)->said.append(text);
  corpora_.trim();
}

Drafting::Recall Drafting::recall() {
  SequenceStore* const store = engine_->sequence_store();
  if (store == nullptr || choice_.is_off) return Recall::done;
  if (!has_listed_) {
    if (!store->is_ready()) return Recall::later;
    has_listed_ = true;
    int64_t token_count = 0;
    std::vector<store::IndexEntry> entries = store->entries();
    while (!entries.empty() && token_count < kRecalledTokensMax) {
      if (engine_->is_own(entries.back())) {
        token_count += entries.back().length;
        to_recall_.push_back(std::move(entries.back()));
      }
      entries.pop_back();
    }
  }
  if (to_recall_.empty()) return Recall::done;
  const store::IndexEntry entry = std::move(to_recall_.back());
  to_recall_.pop_back();
  // What has gone, or is damaged, is not there to be drafted.
  if (Result<Tokens> text = store->tokens_of(entry.name)) remember(entry.tenant, *text);
  return Recall::more;
}

std::vector<std::string_view> draft_kinds() {
  return Drafting::kind_names();
}

std::vector<std::string_view> Drafting::kind_names() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  return names;
}

Result<DraftChoice> parse_draft_choice(std::string_view text) {
  if (text == "auto") return DraftChoice{};
  if (text == "off") return DraftChoice{.is_off = true};
  const std::vector<std::string_view> known = draft_kinds();
  DraftChoice choice;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view wanted = text.substr(begin, end - begin);
    const auto kind = std::find(known.begin(), known.end(), wanted);
    if (kind == known.end()) {
      return fail(ErrorCode::invalid_argument,
                  "draft: expected auto, off, or some of {} with commas between them, found \"{}\"",
                  fmt::join(known, ", "), wanted.substr(0, kShownBytesMax));
    }
    choice.kinds.push_back(*kind);
    begin = end + 1;
  }
  return choice;
}

Status set_drafts(std::string_view text, EngineOptions& options) {
  CAIRN_TRY(const DraftChoice choice, parse_draft_choice(text));
  options.drafts = text;
  options.loads_predictor = std::ranges::find(choice.kinds, "mtp") != choice.kinds.end();
  return Ok{};
}

Drafting::Drafting(Engine* engine) : engine_(engine) {
  Result<DraftChoice> choice = parse_draft_choice(engine->options().drafts);
  CHECK(choice);
  choice_ = std::move(choice).value();
}

int32_t Drafting::count_max(const DraftOrder& order) const {
  return order.count_max.value_or(engine_->options().draft_tokens_max);
}

Drafters Drafting::drafters(const DraftOrder& order, const DraftedText& text) {
  const DraftChoice& choice = order.choice ? *order.choice : choice_;
  if (choice.is_off) return {};
  Drafters made;
  std::vector<Made> all;
  for (const Kind& kind : kinds()) {
    const bool is_chosen =
        choice.kinds.empty()
            ? kind.is_usual
            : std::find(choice.kinds.begin(), choice.kinds.end(), kind.name) != choice.kinds.end();
    if (!is_chosen) continue;
    if (Made drafter = kind.make(*this, order, text, made.row_readers)) {
      all.push_back(std::move(drafter));
    }
  }
  if (all.empty()) return {};
  made.speculator =
      std::make_unique<draft::Speculator>(std::move(all), int32_t(engine_->size().vocabulary_count),
                                          draft::SpeculatorOptions{.calibrations = &calibrations_});
  return made;
}

}  // namespace cairn::session
