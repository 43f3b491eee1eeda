// What a model would take, counted by the code that loads it and the code that keeps conversations,
// before any of it is taken: the weights may be zeros (gguf/hollow.h). Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine_options.h"
#include "gguf/gguf.h"
#include "measure/step_costs.h"
#include "memory/memory.h"

namespace cairn::measure {

struct PlanQuestion {
  EngineOptions engine;       // Its context_tokens: of each conversation; 0: the usual.
  int32_t conversations = 1;  // That compute at the same time.
};

struct ModelPlan {
  bool makes_text = true;  // Else vectors of texts, of which it keeps nothing.
  FixedBytes fixed;
  int32_t context_tokens = 0;  // As they took effect.
  // What one conversation holds that has so many tokens, in the midst of a step, by groups of
  // layers; the last message can be answered again without reading it.
  std::vector<memory::GroupUsage> groups;
  size_t conversation_bytes = 0;
  size_t place_bytes = 0;  // Of each further place to go back to.
  // A token of each conversation, all full of tokens; the same of one; a prompt's first rows.
  std::vector<TypeCosts> decode_all, decode_one, prompt;
  int32_t prompt_rows = 0;

  size_t conversations_bytes(int32_t count) const { return size_t(count) * conversation_bytes; }
};

// `file` may be hollow, and must live until this returns. Errors: those of Engine::load(), but
// nothing is too large.
Result<ModelPlan> plan_model(gguf::File file, const PlanQuestion& question);

}  // namespace cairn::measure
