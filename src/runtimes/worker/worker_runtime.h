// A runtime whose engine computes in a worker process (runtimes/worker/worker_link.h): what all of
// these share, which is everything but a name, a rank, claims and a text in Python. Thread rule: as
// runtimes; snapshots are let go of on any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "runtimes/runtime.h"

namespace cairn::runtimes {

struct WorkerType {
  std::string_view name;
  std::string_view python;  // Its text, behind that of all workers.
  Claims claims;
  // For an answer, or for a sign of life: a part of a chunk is less than this on any machine.
  std::chrono::milliseconds limit = std::chrono::seconds(120);
  std::chrono::milliseconds load_limit = std::chrono::seconds(600);
};

// Whether the interpreter has the packages. Errors: unsupported, with what to install; those of
// WorkerLink.
Status check_worker(const WorkerType& type);
// Errors: unsupported, with what of the model is not computed.
Status check_worker_model(const ModelProbe& probe);
Result<std::unique_ptr<LoadedRuntime>> load_worker(const WorkerType& type, const ModelProbe& probe,
                                                   const RuntimeOptions& options);

}  // namespace cairn::runtimes
