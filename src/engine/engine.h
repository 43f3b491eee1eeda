// A loaded model, ready to compute: the file, its tokenizer and chat template, its weights in the
// backend's form, its memory, and the recorded plan. One Engine for a model; it owns everything
// below it. Not thread-safe but for its constant parts (tokenizer, template, metadata).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/machine/machine_memory.h"
#include "base/result.h"
#include "base/threads.h"
#include "device/numerics.h"
#include "engine/adapters.h"
#include "engine/drafts/predictor.h"
#include "engine/engine_options.h"
#include "engine/fingerprint.h"
#include "engine/known_fingerprints.h"
#include "engine/model_text.h"
#include "engine/pooling.h"
#include "engine/runner.h"
#include "engine/sequence_store.h"
#include "engine/step.h"
#include "gguf/gguf.h"
#include "memory/cache/prefix_cache.h"
#include "memory/memory.h"
#include "models/model.h"

namespace cairn {

class DraftModel;

class Engine {
 public:
  // Errors: what is missing or wrong in the file, by name; unsupported architectures, tokenizers,
  // types.
  static Result<std::unique_ptr<Engine>> load(gguf::File file, const EngineOptions& options);
  // The model of `whole`, which outlives it and is used on the same thread, with a program and a
  // memory of its own: file, text, threads, backend and packed weights serve both, whatever the
  // options say of these.
  static Result<std::unique_ptr<Engine>> load_beside(const Engine& whole,
                                                     const EngineOptions& options);
  ~Engine();

  const gguf::File& file() const { return *file_; }
  const std::string& architecture() const { return architecture_; }
  const models::ModelSize& size() const { return model_->size(); }
  // Whether attention is causal; else each text must fit into one step.
  bool is_causal() const { return model_->makes_text(); }
  const EngineOptions& options() const { return options_; }  // As they took effect.
  // The numerics id by which everything in memory() is computed. An engine has one; pages and
  // states that are stored outside of it must be stored with this id.
  Numerics numerics() const { return options_.numerics; }
  // Which of the model's layers run, and with how many experts.
  const models::Program& program() const { return program_; }
  int64_t parameter_count() const { return parameter_count_; }    // Of what runs.
  const FixedBytes& fixed_bytes() const { return fixed_bytes_; }  // Counted when it was loaded.

  // What the file says about text; any thread may read it.
  const ModelText& text() const { return *text_; }
  const tokenize::Tokenizer* tokenizer() const { return text_->tokenizer(); }
  const chat::ChatTemplate* chat_template() const { return text_->chat_template(); }
  const chat::ChatFormat& chat_format() const { return text_->chat_format(); }
  std::shared_ptr<const grammar::TokenTrie> token_trie() const { return text_->token_trie(); }

  memory::Memory& memory() { return *memory_; }
  // The prefix cache. Generators begin their transactions here, since it makes room.
  memory::PrefixCache& cache() { return *cache_; }
  // Computes; everything that is kept grows by it. See engine/step.h.
  Result<StepReport> step(std::span<const StepItem> items, StepAcceptor accept,
                          StepObserver observe = observe_nothing,
                          StepGivenUp is_given_up = std::nullopt);
  // The same, and all tokens become part of their sequences.
  Result<StepReport> step(std::span<const StepItem> items);
  Runner& runner() { return *runner_; }
  ThreadPool& threads() { return *threads_; }

  // The loaded adapters, with their default scales.
  std::span<const AdapterUse> adapters() const { return adapters_.loaded(); }
  // Looks in the store for what memory lacks of a prompt beyond `known` tokens. Null: no store.
  std::unique_ptr<StoredPrefix> look_up_stored(const Selection& selection,
                                               std::span<const Token> prompt, int32_t known);
  // Has a finished turn written to the disk, if there is a store.
  void store_behind(const Selection& selection, const memory::Sequence& sequence);
  // What of a prompt that was read, or of what somebody wants kept, others may want is sent to the
  // tier, if there is one.
  void offer_prompt(const Selection& selection, const memory::Sequence& sequence);
  void offer_kept(const memory::Sequence& sequence);
  // Null where none was to be loaded, or the file has none.
  Predictor* predictor() { return predictor_.get(); }
  DraftModel* draft_model() { return draft_model_.get(); }           // Null: there is none.
  SequenceStore* sequence_store() { return sequence_store_.get(); }  // Null: none.
  // What the store has of these tokens; nothing where there is none. Reads no file.
  store::StoredPart stored_part(const Selection& selection, std::span<const Token> tokens);

  // What decides the bits of all that is computed with these adapters.
  Fingerprint fingerprint(const Selection& selection) const;
  // Whether a sequence of the store was computed by this model, without adapters, for its tenant.
  bool is_own(const store::IndexEntry& stored);
  // The adapters' part of it. REQUIRES: their names are known.
  std::vector<AdapterSource> adapter_sources(std::span<const AdapterUse> uses) const {
    return adapters_.sources(uses);
  }
  // The adapters that sequences and generators use by default.
  const Selection& default_selection() const { return default_selection_; }
  // Prepares the plans for exactly these adapters; they are cached for a while. Those of a few
  // selections were counted at load; what more of them are held at a time take of the memory's
  // budget. Errors: invalid_argument: unknown names, scales that are not finite; memory_full.
  Result<Selection> select(std::span<const AdapterUse> uses);
  // The same selection without plans, for who computes nothing yet. Errors: invalid_argument.
  Result<Selection> resolve(std::span<const AdapterUse> uses) const {
    return adapters_.select(uses);
  }
  bool has_plans(const Selection& selection) const { return has_plans(selection.variant()); }
  // What select() takes of the memory's budget for a variant, at most; and what plans of selections
  // that nobody holds would give back to it.
  size_t new_plan_bytes(memory::Variant variant) const;
  size_t idle_plan_bytes() const;

 private:
  Engine(std::shared_ptr<const gguf::File> file, const EngineOptions& options);
  Status load_all();
  Status load_model();
  Status start_threads();
  Status create_model();
  Status load_draft_model();
  MemoryRoom memory_room() const;
  Result<BackendOptions> backend_options() const;
  Status choose_context();
  Status expect_purpose() const;
  void choose_step();
  Status choose_budget(const FixedBytes& fixed, const Plans& plans, const memory::Layout& layout);
  Result<FixedBytes> count_fixed(const Plans& plans, const memory::Layout& layout);
  Status load_weights();
  Status prepare_memory();
  Status prepare_adapters();
  Status open_store();
  void demote(const memory::Sequence& sequence);
  const Sha256Digest& stored_fingerprint(const Selection& selection);
  Result<Plans> record(const memory::Layout& layout, std::span<const LowRank> changes) const;
  std::vector<LowRank> all_changes() const;
  struct Ready {
    Selection selection;
    size_t bytes = 0;  // Of its plans.
  };
  bool has_plans(memory::Variant variant) const;
  Status add_plans(const Selection& selection);
  bool take_plan_room();
  size_t beyond_counted(size_t plan_bytes) const;
  void give_back_plan_room();
  bool drop_idle_plans();

  // Shared with engines of the same model beside this one, as text and backend are.
  std::shared_ptr<const gguf::File> file_;
  EngineOptions options_;
  std::string architecture_;
  models::Program program_;
  int64_t parameter_count_ = 0;
  FixedBytes fixed_bytes_;
  std::shared_ptr<const ModelText> text_;
  std::unique_ptr<ThreadPool> own_threads_;  // Null: they are another engine's.
  ThreadPool* threads_ = nullptr;
  std::shared_ptr<Backend> backend_;
  std::unique_ptr<models::Model> model_;
  std::vector<Weight*> matrices_;  // The model's.
  std::vector<std::vector<float>> vectors_;
  Adapters adapters_;
  std::unique_ptr<memory::Memory> memory_;
  std::optional<memory::PrefixCache> cache_;
  std::unique_ptr<SequenceStore> sequence_store_;
  KnownFingerprints fingerprints_;  // As the store has them: with the tenant.
  std::unique_ptr<Runner> runner_;
  std::optional<Stepper> stepper_;
  std::unique_ptr<Predictor> predictor_;
  std::unique_ptr<DraftModel> draft_model_;
  std::vector<Ready> ready_;   // Those whose plans the runner has; least recently used first.
  size_t plan_bytes_max_ = 0;  // Of a selection: with all adapters.
  size_t ready_bytes_ = 0;     // Of all plans of these.
  size_t taken_bytes_ = 0;     // Of that, what is within the memory's budget.
  Selection default_selection_;
};

}  // namespace cairn
