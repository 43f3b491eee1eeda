// The layer of a model that predicts the token after the next one, ready to compute: weights of the
// model's file in the model's backend, a plan, and a memory of its own. Nothing of it is part of
// the model's memory. Knows no answers. Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/backend.h"
#include "engine/engine_options.h"
#include "engine/runner.h"
#include "engine/step.h"
#include "gguf/gguf.h"
#include "memory/cache/prefix_cache.h"
#include "memory/memory.h"
#include "models/model.h"

namespace cairn {

class Predictor {
 public:
  // `model` has its parameters; model, file and backend outlive it. `options`: the model's, as they
  // took effect. Null where the file has no such layer, or the model cannot compute it. Errors: a
  // layer that lacks something, memory_full, those of the backend.
  static Result<std::unique_ptr<Predictor>> load(models::Model* model, const gguf::File* file,
                                                 Backend* backend, const EngineOptions& options);

  // Computes the rows of items whose sequences are of memory(): token t + 1 beside the hidden row
  // of token t gives the logits of token t + 2.
  Result<StepReport> step(std::span<const StepItem> items, StepAcceptor accept) {
    return stepper_->step(items, accept);
  }
  int32_t row_count_max() const { return runner_->row_count_max(); }
  // What it takes beside its memory.
  const FixedBytes& fixed_bytes() const { return fixed_bytes_; }
  memory::Memory& memory() { return *memory_; }
  // How a hidden row is handed in, [width]: one of the model's, or one of its own outputs.
  int32_t width() const { return model_->size().width; }
  enum class Origin : uint8_t { model, own };
  void prepare(std::span<float> row, Origin origin) const;

 private:
  Predictor() = default;
  Status load_weights(const gguf::File& file, Backend& backend);
  Status prepare_memory(Backend& backend, const EngineOptions& options);

  models::Model* model_ = nullptr;
  models::PredictorInput input_;
  FixedBytes fixed_bytes_;
  std::vector<std::vector<float>> vectors_;
  std::unique_ptr<memory::Memory> memory_;
  std::optional<memory::PrefixCache> cache_;  // Makes room for steps; nothing is kept in it.
  std::unique_ptr<Runner> runner_;
  std::optional<Stepper> stepper_;
};

}  // namespace cairn
