// How an engine is loaded: what computes, what is kept and where, and how much memory that may
// take. Knows no engine. Thread-safe: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/machine/machine_memory.h"
#include "base/result.h"
#include "base/threads.h"
#include "device/numerics.h"
#include "device/page_format.h"
#include "engine/adapter.h"
#include "engine/pooling.h"
#include "gguf/gguf.h"
#include "models/program.h"
#include "store/shared_tier.h"

namespace cairn {

class Trace;
struct Plans;
namespace store {
class FileCalls;
}
namespace memory {
struct Layout;
}

// What happens when a context is full.
enum class ContextPolicy : uint8_t {
  stop,   // An error that says how many tokens are needed.
  shift,  // The first tokens and the newer half of the others are computed again.
};

// What an engine takes beside the memory of conversations. Steps touch as much of the workspace as
// they have rows and outputs, which is rarely all of it.
struct FixedBytes {
  size_t weights = 0;  // Packed, beside those of the file; mapped where there is a pack cache.
  size_t plans = 0;
  size_t workspace = 0;

  size_t total() const { return weights + plans + workspace; }
  FixedBytes& operator+=(const FixedBytes& other) {
    weights += other.weights;
    plans += other.plans;
    workspace += other.workspace;
    return *this;
  }
};

// All that an engine would take, before it takes any of it.
struct Counted {
  const FixedBytes& fixed;
  size_t conversations = 0;  // What these would get at most: the memory budget.
  const Plans& plans;
  const memory::Layout& layout;
  int32_t context_tokens = 0;
};

// A second model that drafts (engine/drafts/draft_model.h), or less of the same one.
struct DraftModelChoice {
  std::string path;  // "self": the engine's own file; empty: there is none.
  models::ProgramChoice program;
  // As EngineOptions has it.
  std::function<Result<std::vector<int32_t>>(const gguf::File& file)> find_skipped_layers;
};

struct EngineOptions {
  std::string backend = "cpu";
  int32_t thread_count = 0;  // 0: one for each physical core.
  // Those of another engine, which outlives this one and is used on the same thread: two teams
  // would fight for the same cores. Null: threads of its own, `thread_count` of them.
  ThreadPool* threads = nullptr;
  std::string isa;  // The instruction set, by name; empty: the best that there is.
  // fast_1 is an error if the machine has no instructions that make it faster.
  Numerics numerics = Numerics::exact_1;
  KvType key_type = KvType::f16, value_type = KvType::f16;
  int32_t context_tokens = 0;  // 0: the model's, kDefaultContextMax at most.
  // Bytes for pages and states; 0: half of what is left of the memory beside the weights.
  size_t memory_budget = 0;
  // What this process may take in all; none: what the machine and its limits say.
  std::optional<MemoryRoom> memory_room;
  ContextPolicy context_policy = ContextPolicy::stop;
  int32_t shift_keep = 0;  // Tokens at the beginning that every shift keeps.
  // Keeps window pages of all positions, so that any position can be resumed without computing
  // tokens again; else only those from the last user's message on.
  bool keeps_all_windows = false;
  int32_t log_step = 0;         // See memory::Options: the most steps that replay a state …
  int32_t log_tokens_max = 0;   // … and how far back from an answer's end that is possible.
  int32_t row_count_max = 512;  // Tokens of a step.
  // A folder that caches packed weights, which the next start maps; empty: none. Its files are
  // trusted: who can write there can change what the model computes.
  std::string pack_cache;
  // Weights stay in the file and are repacked in every step that needs it: for models that are
  // larger than memory.
  bool is_unpacked = false;
  // If set, the engine computes embeddings or scores (engine/embedder.h) instead of logits.
  std::optional<Pooling> pooling;
  // Who drafts tokens of answers, where a request does not say: "auto", "off", or kinds
  // (session/drafts/drafting.h reads it); and how many at most at a time.
  std::string drafts = "auto";
  int32_t draft_tokens_max = 64;
  // Loads the layer that predicts further tokens, too, where the file has one.
  bool loads_predictor = false;
  DraftModelChoice draft_model;
  // The layers that run and the experts that each token uses, where that is not the model itself.
  models::ProgramChoice program;
  // Asked once, where it is set, which other layers the program leaves out of a file.
  std::function<Result<std::vector<int32_t>>(const gguf::File& file)> find_skipped_layers;
  // LoRA adapters that requests may select; these scales are the default.
  std::vector<AdapterChoice> adapters;
  // A folder where finished turns survive the process (docs/store.md); empty: none. Made where it
  // is missing. `cache_disk_budget`: bytes at most; 0: a tenth of the disk, and 20 GiB at most
  // where it is not lent to other machines.
  std::string cache_dir;
  uint64_t cache_disk_budget = 0;
  bool is_cache_lent = false;
  // A store that several machines share (docs/tier.md); null: none.
  store::OpenTier open_tier;
  // Of about so many sequences that are loaded from there one is computed again while the engine is
  // idle, and compared; 1: each, 0: none.
  int32_t cache_audit_interval = 1000;
  store::FileCalls* cache_calls = nullptr;  // How its files are reached; null: as the system does.
  // Is told of loading, steps and the store's work; outlives the engine; null: nobody is.
  Trace* trace = nullptr;
  // Asked often while it is loaded, by any thread; one true ends that with the error `cancelled`.
  std::function<bool()> is_given_up;
  // Called while weights are prepared, with the bytes done and the bytes in all.
  std::function<void(size_t done_bytes, size_t total_bytes)> on_progress;
  // Called once, when everything is counted and before any of it is taken. Returns what
  // conversations get; its error ends the loading. None: as it was counted.
  std::function<Result<size_t>(const Counted& counted)> on_counted;
};

}  // namespace cairn
