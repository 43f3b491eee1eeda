// Loading a draft model, and whether it fits.
#include "engine/drafts/draft_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/quantities.h"

namespace cairn {

namespace {

// Rows of a step: a slice of a text that is read while an answer waits.
constexpr int32_t kRowsMax = 64;

// Ids must mean the same where a draft is a list of them; else it is a text.
Result<bool> needs_text(const Engine& draft, const Engine& target) {
  const std::string& name = draft.file().name();
  const std::string& other = target.file().name();
  const int32_t found = draft.size().vocabulary_count;
  const int32_t expected = target.size().vocabulary_count;
  if (target.tokenizer() == nullptr || draft.tokenizer() == nullptr) {
    const bool is_lacking_both = target.tokenizer() == draft.tokenizer();
    if (is_lacking_both && found == expected) return false;
    if (is_lacking_both) {
      return fail(ErrorCode::invalid_argument,
                  "draft model {}: expected the {} tokens of {}, or vocabularies in both files, "
                  "found {} and none",
                  name, expected, other, found);
    }
    return fail(ErrorCode::invalid_argument,
                "draft model {}: expected a vocabulary in both files, found none in {}", name,
                target.tokenizer() == nullptr ? other : name);
  }
  const uint64_t found_digest = draft.tokenizer()->digest();
  const uint64_t expected_digest = target.tokenizer()->digest();
  if (found == expected && found_digest == expected_digest) return false;
  log::warning(
      "draft model {}: has another vocabulary ({} tokens, digest {:016x}) than {} ({} tokens, "
      "digest {:016x}): it drafts by text, what it finds likeliest",
      name, found, found_digest, other, expected, expected_digest);
  return true;
}

// One that takes as long as the target gains nothing, however often it is right.
void expect_smaller(const Engine& draft, const Engine& target) {
  if (!draft.program().is_default()) return;
  const uint64_t found = draft.file().file_bytes(), other = target.file().file_bytes();
  if (found < other / 2) return;
  log::warning(
      "draft model {}: expected a file much smaller than the {} of {}, found {}: drafts "
      "will hardly save time",
      draft.file().name(), show_bytes(other), target.file().name(), show_bytes(found));
}

// The most tokens, by halves of the context, of which two texts have room.
int32_t count_window(Engine& engine) {
  const memory::Sequence empty = engine.memory().new_sequence();
  int32_t tokens = engine.options().context_tokens;
  while (tokens > 1 &&
         2 * engine.memory().plan(empty, tokens).new_bytes > engine.options().memory_budget) {
    tokens /= 2;
  }
  return tokens;
}

EngineOptions engine_options(Engine& target, const DraftModelOptions& options) {
  const EngineOptions& other = target.options();
  EngineOptions chosen{.backend = other.backend,
                       .threads = &target.threads(),
                       .isa = other.isa,
                       .numerics = other.numerics};
  chosen.key_type = other.key_type;
  chosen.value_type = other.value_type;
  chosen.memory_budget =
      options.memory_budget > 0 ? options.memory_budget : other.memory_budget / 8;
  chosen.memory_room = other.memory_room;
  chosen.row_count_max = kRowsMax;
  chosen.pack_cache = options.pack_cache;
  chosen.is_unpacked = other.is_unpacked;
  chosen.program = options.choice.program;
  chosen.find_skipped_layers = options.choice.find_skipped_layers;
  return chosen;
}

}  // namespace

DraftModel::DraftModel(std::unique_ptr<Engine> engine, const Engine& target, bool drafts_by_text)
    : engine_(std::move(engine)),
      target_tokenizer_(target.tokenizer()),
      drafts_by_text_(drafts_by_text),
      window_tokens_(count_window(*engine_)) {
  expect_smaller(*engine_, target);
}

Result<std::unique_ptr<DraftModel>> DraftModel::load(gguf::File file, Engine& target,
                                                     const DraftModelOptions& options) {
  CAIRN_TRY(std::unique_ptr<Engine> engine,
            Engine::load(std::move(file), engine_options(target, options)));
  CAIRN_TRY(const bool drafts_by_text, needs_text(*engine, target));
  return std::unique_ptr<DraftModel>(new DraftModel(std::move(engine), target, drafts_by_text));
}

Result<std::unique_ptr<DraftModel>> DraftModel::load_self(Engine& target,
                                                          const DraftModelOptions& options) {
  CAIRN_TRY(std::unique_ptr<Engine> engine,
            Engine::load_beside(target, engine_options(target, options)));
  return std::unique_ptr<DraftModel>(new DraftModel(std::move(engine), target, false));
}

}  // namespace cairn
