// Where sampling parameters come from, the later the stronger: the table's defaults, what the model
// file suggests (general.sampling.*), what the user said. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gguf/fields.h"
#include "sample/params.h"

namespace cairn::session {

struct SamplingChoice {
  std::vector<std::pair<const sample::SamplingField*, double>> said;
  std::vector<std::pair<const sample::SamplingList*, std::vector<std::string>>> lists;
  std::optional<uint64_t> seed;  // Absent: a new one.
  bool tells_seed = false;       // A new one was asked for, so that it has to be told.
};

// A random seed.
uint64_t new_seed();

// `is_builtin`: the built-in model is greedy unless the user says otherwise, since these are the
// answers that it was trained to give.
// Errors: invalid_argument and invalid_data, naming the option or the file's key.
Result<sample::SamplingParams> effective_sampling(const gguf::Fields& fields, bool is_builtin,
                                                  const SamplingChoice& choice);

}  // namespace cairn::session
