// A model's step as cairn records it, for a worker process: the ops as JSON, and all numbers that
// they read in one file in memory, decoded. So every architecture whose ops a worker knows is
// computed there without a line of its own, from weights of any format. Knows no runtime.
// Thread rule: functions; a RecordedModel belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/machine/descriptor.h"
#include "base/result.h"
#include "gguf/gguf.h"

namespace cairn::runtimes {

struct RecordedModel {
  std::string json;    // Members of an object: "planes", "ops", "weights_bytes".
  Descriptor weights;  // Sealed: nobody changes it any more.
  size_t weights_bytes = 0;
  int32_t vocabulary_count = 0;
  int32_t context_tokens = 0;
};

// Errors: unsupported: the model has an op that workers do not know, and its name; those of
// reading the model.
Status check_recordable(const gguf::File& file);

// Weights of half floats stay so, all others become f32. Errors: as above; io.
Result<RecordedModel> record_model(const gguf::File& file);

}  // namespace cairn::runtimes
