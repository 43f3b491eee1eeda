// The models of a server: which there are, which of them are in memory, and what requests have of
// them. One thread of its own loads them, one after the other, when requests ask for them, and
// unloads the one that was used longest ago where the budget has no room for another. No model is
// unloaded while somebody holds it. Thread-safe. Knows no routes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine/machine_memory.h"
#include "base/result.h"
#include "serve/models/loaded_model.h"
#include "serve/models/model_source.h"
#include "serve/refusal.h"
#include "serve/served_model.h"

namespace cairn::serve {

// A model in memory, which stays there as long as this is held.
using ModelHandle = std::shared_ptr<const ServedModel>;

struct RegistryOptions {
  // Bytes that all loaded models take together, as they are counted before they are loaded:
  // weights, steps, and what conversations may take at most. The room of 0 bytes: no limit.
  MemoryRoom budget;
  // How long a model stays that nobody asks for; below 0: until there is need of room.
  std::chrono::milliseconds idle_max{-1};
};

enum class ModelState : uint8_t { unloaded, loading, ready, unloading };

// Whoever waits for a model. Called on the registry's thread, which may be kept for a while.
class ModelWaiter {
 public:
  virtual ~ModelWaiter() = default;
  // `note`: "loading 42 %".
  virtual void add_progress(const std::string& note) = 0;
  // Once, as the last.
  virtual void end(Checked<ModelHandle> model) = 0;
};

// What clients are told of a model that cannot be loaded: the file's name, and not where it lies.
Refusal load_refusal(const ModelSource& source, const Error& error);

class ModelRegistry {
 public:
  using Clock = std::chrono::steady_clock;

  // Of models that are loaded on demand. REQUIRES: at least one. Errors: io, where the system gives
  // no thread; of the sampling options.
  static Result<std::unique_ptr<ModelRegistry>> start(std::vector<ModelSource> sources,
                                                      LoadTerms terms,
                                                      const RegistryOptions& options);
  // Of one that is loaded, which stays: every name means it. Its service must outlive the registry.
  static std::unique_ptr<ModelRegistry> of(ServedModel model);
  // Gives up what is being loaded, and waits for that. REQUIRES: nobody asks any more.
  ~ModelRegistry();

  // The one that stays; null: there are several, or it is loaded on demand.
  const ModelHandle& only() const { return only_; }
  // What holds where no model is meant.
  const sample::SamplingParams& sampling() const { return sampling_; }
  // What holds for the model of this source and its file.
  Result<sample::SamplingParams> sampling_of(const ModelSource& source,
                                             const gguf::File& file) const;
  // The file, to be read by somebody else. Errors: those of gguf::File::open().
  Result<gguf::File> open(const ModelSource& source) const;

  struct Entry;
  // By its name or an alias, with or without ":latest"; without a name the loaded one that was used
  // last, else the first one. Errors: 404, naming what there is.
  Checked<Entry*> find(std::string_view name) const;
  // Null where it is not in memory. `is_use`: it counts as asked for; else it is only looked at.
  ModelHandle ready(Entry* entry, bool is_use) const;
  // The same; where it is null the model will be loaded, and the waiter told, as long as somebody
  // else has it.
  ModelHandle ask(Entry* entry, const std::shared_ptr<ModelWaiter>& waiter);
  // How long it stays in memory when nobody uses it any more; below 0: as long as there is room.
  // Until the next request for it.
  void keep_for(const ServedModel& model, std::chrono::milliseconds time);
  // Nobody asked, but it may go.
  void unload(Entry* entry);

  struct Listed {
    Entry* entry = nullptr;
    const ModelSource* source = nullptr;
    ModelState state = ModelState::unloaded;
    ModelHandle model;                    // Where it is ready; not as a use.
    size_t counted_bytes = 0;             // Of what it takes, or will when it is loaded.
    std::chrono::milliseconds stays{-1};  // If nobody asks for it; below 0: until there is need.
  };
  Listed look(Entry* entry) const;
  // All, in the order in which they were named.
  std::vector<Listed> list() const;
  // By which the file is told from others (gguf::File::identity()), in hex; empty where it cannot
  // be read. The first call reads some of it.
  std::string digest_of(const Listed& listed) const;

 private:
  struct Core;
  explicit ModelRegistry(std::shared_ptr<Core> core);

  std::shared_ptr<Core> core_;  // Handles have it too.
  ModelHandle only_;
  sample::SamplingParams sampling_;
};

}  // namespace cairn::serve
