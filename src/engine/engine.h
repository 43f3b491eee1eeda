// A loaded model, ready to compute: the file, its tokenizer and chat template, its weights in the
// backend's form, its memory, and the recorded plan. One Engine for a model; it owns everything
// below it. Not thread-safe but for its constant parts (tokenizer, template, metadata).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/threads.h"
#include "device/numerics.h"
#include "engine/adapters.h"
#include "engine/model_text.h"
#include "engine/pooling.h"
#include "engine/runner.h"
#include "engine/step.h"
#include "gguf/gguf.h"
#include "memory/memory.h"
#include "memory/prefix_cache.h"
#include "models/model.h"

namespace cairn {

// What happens when a context is full.
enum class ContextPolicy : uint8_t {
  stop,   // Nothing more fits: an error that says how many tokens are needed.
  shift,  // The first tokens and the newer half of the others are read anew.
};

struct EngineOptions {
  std::string backend = "cpu";
  int32_t thread_count = 0;  // 0: one for each physical core.
  std::string isa;           // The instruction set, by name; empty: the best that there is.
  // fast_1 is refused where the machine has nothing that it would be faster with.
  Numerics numerics = Numerics::exact_1;
  KvType key_type = KvType::f16;
  KvType value_type = KvType::f16;
  int32_t context_tokens = 0;  // 0: the model's, or what the budget holds if that is less.
  size_t memory_budget = 0;    // Bytes for pages and states; 0: half of the free memory.
  ContextPolicy context_policy = ContextPolicy::stop;
  int32_t shift_keep = 0;  // Tokens at the beginning that no shift leaves out.
  // Windows are kept from the last user's message on; or of all positions, so that going back far
  // costs memory instead of reading.
  bool keeps_all_windows = false;
  int32_t log_step = 0;         // See memory::Options: how many steps derive a state at most …
  int32_t log_tokens_max = 0;   // … and how far back at an answer's end that is possible.
  int32_t row_count_max = 512;  // Tokens of a step.
  // A folder where packed weights are left for the next start, which maps them; empty: none.
  // Whoever may write there decides what the model computes.
  std::string pack_cache;
  // Weights are read from the file as they are needed, and packed each time: for models that are
  // larger than the memory.
  bool is_unpacked = false;
  // Set: the engine makes vectors of texts, or scores (engine/embedder.h), instead of logits.
  std::optional<Pooling> pooling;
  // Changes of the model that requests may choose; with these scales, unless they say something.
  std::vector<AdapterChoice> adapters;
  // Told while weights are made ready: bytes done and bytes in all.
  std::function<void(size_t done_bytes, size_t total_bytes)> on_progress;
};

class Engine {
 public:
  // Errors: what the file lacks or has wrong, named; unsupported architectures, tokenizers, types.
  static Result<std::unique_ptr<Engine>> load(gguf::File file, const EngineOptions& options);
  ~Engine();

  const gguf::File& file() const { return file_; }
  const std::string& architecture() const { return architecture_; }
  const models::ModelSize& size() const { return model_->size(); }
  // Else it sees whole texts at once, and a step must hold each of them.
  bool is_causal() const { return model_->makes_text(); }
  const EngineOptions& options() const { return options_; }  // As they took effect.
  // The rules by which everything in memory() was and will be computed: an engine has one id, and
  // whatever names its pages and states outside of it must name this too.
  Numerics numerics() const { return options_.numerics; }
  int64_t parameter_count() const { return parameter_count_; }

  // What the file says about text; any thread may read it.
  const ModelText& text() const { return *text_; }
  const tokenize::Tokenizer* tokenizer() const { return text_->tokenizer(); }
  const chat::ChatTemplate* chat_template() const { return text_->chat_template(); }
  const chat::ChatFormat& chat_format() const { return text_->chat_format(); }
  std::shared_ptr<const grammar::TokenTrie> token_trie() const { return text_->token_trie(); }

  memory::Memory& memory() { return *memory_; }
  // Timelines that no generator uses just now; and the place to begin steps, since it makes room.
  memory::PrefixCache& cache() { return *cache_; }
  // Computes; everything that is kept grows by it. See engine/step.h.
  Result<StepReport> step(std::span<const StepItem> items, StepAcceptor accept) {
    return stepper_->step(items, accept);
  }
  // The same, and all tokens become part of their sequences.
  Result<StepReport> step(std::span<const StepItem> items);
  Runner& runner() { return *runner_; }

  // The adapters that there are, with their scales where nobody says another.
  std::span<const AdapterUse> adapters() const { return adapters_.loaded(); }
  // What sequences and generators compute with unless they are told.
  const Selection& usual_selection() const { return usual_; }
  // Makes ready to compute with these adapters and no others; what is ready stays so for a while.
  // Errors: invalid_argument: unknown names, scales that are not finite; no_room.
  Result<Selection> select(std::span<const AdapterUse> uses);

 private:
  Engine(gguf::File file, const EngineOptions& options);
  Status load_model();
  Result<BackendOptions> backend_options() const;
  Status choose_context();
  Status expect_purpose() const;
  void choose_step();
  Status load_weights();
  Status prepare_memory();
  Status prepare_adapters();
  Result<Plans> record(const memory::Layout& layout, std::span<const LowRank> changes) const;
  void drop_idle_selection();

  gguf::File file_;
  EngineOptions options_;
  std::string architecture_;
  int64_t parameter_count_ = 0;
  std::unique_ptr<ModelText> text_;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<models::Model> model_;
  std::vector<Weight*> matrices_;  // The model's.
  std::vector<std::vector<float>> vectors_;
  Adapters adapters_;
  std::unique_ptr<memory::Memory> memory_;
  std::optional<memory::PrefixCache> cache_;
  std::unique_ptr<Runner> runner_;
  std::optional<Stepper> stepper_;
  std::vector<Selection> ready_;  // The runner has their plans; the last used one last.
  Selection usual_;
};

}  // namespace cairn
