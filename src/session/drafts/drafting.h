// The drafters of an engine's answers: which kinds there are, which of them an answer has, and what
// they share: how often each was right, and what was said before, by tenant (docs/speculation.md).
// Thread rule: the engine's thread; a choice is read on any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "draft/calibration.h"
#include "draft/corpus.h"
#include "draft/speculator.h"
#include "engine/drafts/row_reader.h"
#include "engine/engine.h"
#include "sample/sampler.h"
#include "session/constraint.h"
#include "tokenize/tokenizer.h"

namespace cairn::session {

// Who drafts.
struct DraftChoice {
  bool is_off = false;
  std::vector<std::string_view> kinds = {};  // Of draft_kinds(); none: those that usually pay.
};

// "auto", "off", or kinds with commas between them. Errors: invalid_argument, with the kinds that
// there are.
Result<DraftChoice> parse_draft_choice(std::string_view text);
// Names, in the order of their rank.
std::vector<std::string_view> draft_kinds();
// Into the options of an engine, with what it has to load for that. Errors: those of
// parse_draft_choice().
Status set_drafts(std::string_view text, EngineOptions& options);

// What a request says of drafts.
struct DraftOrder {
  std::optional<DraftChoice> choice = std::nullopt;  // None: the engine's options'.
  std::optional<int32_t> count_max = std::nullopt;   // Of a draft; likewise.
  std::vector<Token> prediction = {};  // What the answer may be like; empty: nobody has said.
};

// What drafters see of an answer. The pointers lead to what outlives them; the prompt is looked at
// while they are made.
struct DraftedText {
  const ConstraintState* constraint;
  const tokenize::Tokenizer* tokenizer;
  std::span<const Token> prompt;
  size_t answer_begin =
      0;  // Where in the prompt the answer begins, whose first tokens may be there.
  const sample::Sampler* sampler = nullptr;  // The answer's.
  uint64_t tenant = 0;
};

struct Drafters {
  std::unique_ptr<draft::Speculator> speculator;  // Null where nothing is to be drafted.
  std::vector<RowReader*> row_readers = {};  // Those of the drafters which are some.
};

class Drafting {
 public:
  // The engine must outlive it, and it the speculators. REQUIRES: the engine's options name kinds
  // that there are.
  explicit Drafting(Engine* engine);
  Drafting(const Drafting&) = delete;
  Drafting& operator=(const Drafting&) = delete;

  // Of a draft, at most.
  int32_t count_max(const DraftOrder& order) const;
  // For one answer.
  Drafters drafters(const DraftOrder& order, const DraftedText& text);
  // The tenant's next drafts may be from this text: a prompt with an answer, from position 0 on.
  void remember(uint64_t tenant, std::span<const Token> text);
  // Reads one of the texts that the engine's store has of earlier runs, the newest ones, the older
  // of them first: to be called while nothing else is to be done.
  enum class Recall : uint8_t {
    done,   // There is none left.
    later,  // The store's folder is not read yet.
    more,
  };
  Recall recall();
  static std::vector<std::string_view> kind_names();

 private:
  struct Kind;
  std::shared_ptr<draft::Knowledge> knowledge(uint64_t tenant);
  static std::span<const Kind> kinds();

  Engine* engine_;
  DraftChoice choice_;
  draft::Calibrations calibrations_;
  draft::Corpora corpora_{{}};
  bool has_listed_ = false;
  std::vector<store::IndexEntry> to_recall_;  // The next one last.
};

}  // namespace cairn::session
