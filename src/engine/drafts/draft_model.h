// A second, smaller model that guesses how another model's answers go on (docs/speculation.md), or
// less of the same one. It has an engine of its own, whose memory and prefix cache hold what its
// drafters have read, and computes on the other engine's threads. Knows no answers. Thread rule:
// the other engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "engine/engine.h"
#include "gguf/gguf.h"

namespace cairn {

struct DraftModelOptions {
  // For what its drafters have read; 0: an eighth of the other engine's.
  size_t memory_budget = 0;
  DraftModelChoice choice;  // Its path is not looked at.
  std::string pack_cache;   // As EngineOptions has it.
};

class DraftModel {
 public:
  // `target` must outlive it: the model whose answers are to be guessed. Errors: those of
  // Engine::load(); invalid_argument where one of the two has no vocabulary, and their tokens are
  // not as many.
  static Result<std::unique_ptr<DraftModel>> load(gguf::File file, Engine& target,
                                                  const DraftModelOptions& options = {});
  // The target's own model, as the choice's program runs it, with the weights that it has packed.
  static Result<std::unique_ptr<DraftModel>> load_self(Engine& target,
                                                       const DraftModelOptions& options = {});

  Engine& engine() { return *engine_; }
  // The two models do not have the same tokens: only text means the same to both.
  bool drafts_by_text() const { return drafts_by_text_; }
  const tokenize::Tokenizer* target_tokenizer() const { return target_tokenizer_; }
  // Tokens of a text that a drafter can have in memory, with room for another one's beside it.
  int32_t window_tokens() const { return window_tokens_; }

 private:
  DraftModel(std::unique_ptr<Engine> engine, const Engine& target, bool drafts_by_text);

  std::unique_ptr<Engine> engine_;
  const tokenize::Tokenizer* target_tokenizer_ = nullptr;  // Null: it has none.
  bool drafts_by_text_ = false;
  int32_t window_tokens_ = 0;
};

}  // namespace cairn
