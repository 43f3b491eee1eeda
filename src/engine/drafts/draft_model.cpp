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

// Ids must mean the same: a draft is a list of them.
Status check_tokens(const Engine& draft, const Engine& target) {
  const std::string& name = draft.file().name();
  const int32_t found = draft.size().vocabulary_count;
  const int32_t expected = target.size().vocabulary_count;
  if (found != expected) {
    return fail(ErrorCode::invalid_argument,
                "draft model {}: expected the {} tokens of {}, found {}", name, expected,
                target.file().name(), found);
  }
  if (target.tokenizer() == nullptr && draft.tokenizer() == nullptr) return Ok{};
  if (target.tokenizer() == nullptr || draft.tokenizer() == nullptr) {
    return fail(ErrorCode::invalid_argument,
                "draft model {}: expected a vocabulary in both files, found none in {}", name,
                target.tokenizer() == nullptr ? target.file().name() : name);
  }
  const uint64_t found_digest = draft.tokenizer()->digest();
  const uint64_t expected_digest = target.tokenizer()->digest();
  if (found_digest == expected_digest) return Ok{};
  return fail(ErrorCode::invalid_argument,
              "draft model {}: expected the vocabulary of {} (digest {:016x}), found another one "
              "(digest {:016x})",
              name, target.file().name(), expected_digest, found_digest);
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

}  // namespace

Result<std::unique_ptr<DraftModel>> DraftModel::load(gguf::File file, Engine& target,
                                                     const DraftModelOptions& options) {
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
  CAIRN_TRY(std::unique_ptr<Engine> engine, Engine::load(std::move(file), chosen));
  CAIRN_TRY(check_tokens(*engine, target));
  expect_smaller(*engine, target);
  std::unique_ptr<DraftModel> made(new DraftModel(std::move(engine)));
  made->window_tokens_ = count_window(*made->engine_);
  return made;
}

}  // namespace cairn
