// What can compute: a closed list of ops over rows in a workspace. Backends are handed out by name
// from a generated table, nobody includes them. A backend computes every op of the list; what it
// has no kernels of its own for may run on the reference's.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/threads.h"
#include "device/buffer.h"
#include "device/numerics.h"
#include "device/plan.h"
#include "device/step.h"

namespace cairn {

// Callbacks around each use of the file's bytes, so that the system can read them ahead and drop
// them afterwards. Called on any thread.
struct BlockAdvice {
  std::function<void(std::span<const std::byte> blocks)> before_reading;
  std::function<void(std::span<const std::byte> blocks)> after_reading;
};

// How weights are repacked, in backends that have a layout of their own.
struct PackOptions {
  bool is_off = false;        // Kernels read the file's blocks; no packed copy is kept.
  std::string cache_path;     // A file that caches packed weights; empty: none.
  uint64_t model_digest = 0;  // The model that the cache must belong to.
  // Asked meanwhile, often, by any thread: true ends it with the error `cancelled`, and must stay
  // true, since who has asked leaves out its part; none: nobody does.
  std::function<bool()> is_given_up = {};
};

struct BackendOptions {
  ThreadPool* threads = nullptr;  // Not owned; outlives the backend.
  std::string isa;                // The instruction set of kernels, by name; empty: the best.
  Numerics numerics = Numerics::exact_1;
  PackOptions pack;
  BlockAdvice advice;
  // Called while weights are prepared, with the bytes done and the bytes in all.
  std::function<void(size_t done_bytes, size_t total_bytes)> on_progress;
};

// One engine thread calls it; it uses the pool's threads inside a call.
class Backend {
 public:
  virtual ~Backend() = default;
  // Where workspaces and pools lie. What is allocated there must go before the backend does.
  virtual DeviceMemory& memory() = 0;
  virtual PageFormat page_format() const = 0;
  virtual PieceAlignment piece_alignment() const = 0;
  virtual std::string_view isa() const = 0;  // The instruction set that kernels use, by name.
  // Registers `weight`, and sets weight.packed if the backend will repack it. The packed form lives
  // as long as the backend, and serves all weights of the same blocks and shape; the blocks must
  // stay readable as long.
  virtual Status load(Weight& weight) = 0;
  // Whether op::Quantize rounds rows of prompts to bf16, in place of quantizing them.
  virtual bool rounds_prompts() const { return false; }
  // The bytes that prepare() would take for weights, beside those that it has taken for others.
  virtual size_t weight_bytes(const Plan& /*plan*/) const { return 0; }
  // Prepares what the plan needs: packed weights, and scratch for each thread. After it execute()
  // allocates nothing. Any number of plans may be prepared at a time; each must stay at its
  // address, unchanged, until it is released or the backend is destroyed.
  virtual Status prepare(const Plan& plan) = 0;
  // Forgets a plan; weights stay packed. Does nothing if it is not prepared.
  virtual void release(const Plan& plan) = 0;
  // False: it was given up, and what it was to write is worth nothing. REQUIRES: the plan is
  // prepared.
  virtual bool execute(const Plan& plan, const Step& step) = 0;
};

struct BackendType {
  std::string_view name;  // "cpu", "reference"
  // Errors: invalid_argument: no such instruction set; unsupported where the backend, or this
  // machine, does not have it, or does not compute by these numerics.
  Result<std::unique_ptr<Backend>> (*create)(const BackendOptions& options);
};

std::span<const BackendType* const> backend_types();

}  // namespace cairn
