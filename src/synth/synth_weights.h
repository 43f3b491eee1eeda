// Made-up weights for a synthetic model: which type each parameter gets and its bytes, in any
// number of threads. Matrices are put together from pools of random runs of blocks that were
// encoded once for each type and scale, so that writing is bound by memory and disk.
// Thread rule: one thread calls; the pool's threads work inside a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/threads.h"
#include "models/model.h"
#include "quant/quant.h"

namespace cairn::synth {

struct SynthTensor {
  std::string name;
  std::vector<int64_t> dims;  // As in the file: inputs first.
  const quant::Type* type = nullptr;
  bool is_matrix = false;

  int64_t weight_count() const;
};

struct SynthTensors {
  std::vector<SynthTensor> tensors;
  std::vector<std::string> notes;  // Where the wanted type did not fit.
};

// All parameters that the model needs, and of the optional ones those that shape real models of its
// kind; `with_output`: also the output matrix that a model with tied embeddings lacks.
Result<SynthTensors> list_tensors(models::Model& model, const quant::Type& type, bool with_output);

class SynthWeights {
 public:
  SynthWeights(uint64_t seed, ThreadPool* threads) : seed_(seed), threads_(threads) {}

  // Gives all bytes of a tensor to `sink`, front to back. `index`: the tensor's in the file.
  Status write(const SynthTensor& tensor, uint64_t index,
               const std::function<Status(std::span<const std::byte>)>& sink);

 private:
  // Random runs of whole blocks of one type, for matrices with one number of inputs.
  struct RunPool {
    int32_t run_weights = 0;
    size_t run_bytes = 0;
    std::vector<std::byte> bytes;

    uint32_t run_count() const { return uint32_t(bytes.size() / run_bytes); }
  };
  using PoolKey = std::pair<const quant::Type*, int64_t>;  // Type and inputs.

  const RunPool& pool_for(const SynthTensor& tensor);
  void encode_runs(RunPool& pool, const quant::Type& type, int64_t inputs);
  Status write_matrix(const SynthTensor& tensor, uint64_t index,
                      const std::function<Status(std::span<const std::byte>)>& sink);

  uint64_t seed_;
  ThreadPool* threads_;
  std::map<PoolKey, RunPool> pools_;
  std::vector<std::byte> buffer_;
};

}  // namespace cairn::synth
