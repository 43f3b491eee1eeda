// Computing the answer of a receipt again: the same request by the same code, so that every
// difference is one of bits, of the model, or of the receipt itself. Thread rule: the engine's
// thread.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "session/answer_job.h"
#include "session/grammar_cache.h"
#include "session/receipt.h"

namespace cairn::session {

// The engine options that the receipt's bits depend on, in place of those that are there: numerics,
// types of the KV cache, and the context, whose length decides where it is shifted.
void take_options(const Receipt& receipt, EngineOptions& options);

// The adapters among the engine's whose digests the receipt has, with the receipt's scales. Those
// that are not loaded are left out, and difference_of() names them. Thread-safe.
std::vector<AdapterUse> adapters_of(const Engine& engine, const ReceiptSources& sources);

// The order for the same answer, of which everything is computed again and which brings a receipt.
// Thread-safe. REQUIRES and errors: those of replay(). `compiled`: as make_matcher() has it.
Result<AnswerOrder> make_replay_order(const Engine& engine, const Receipt& receipt,
                                      const TenantGrammars& compiled = {});

// The receipt of the same request, computed now. Where the sources differ nothing is computed: only
// the sources are there. `on_token`: told how many tokens there are so far. REQUIRES: the engine
// has a tokenizer. Errors: invalid_argument and invalid_data, naming what of the receipt this model
// cannot take; those of Completion.
Result<Receipt> replay(Engine& engine, const Receipt& receipt,
                       const std::function<void(int32_t tokens)>& on_token = {});

}  // namespace cairn::session
