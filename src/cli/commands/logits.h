// `cairn logits`: the logits of every token of given sequences, as raw f32 rows, for checks from
// outside. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"

namespace cairn::cli {

struct LogitsOptions {
  std::string model_path;
  std::string tokens_path;
  std::string out_path;
  int32_t batch = 512;  // Tokens of a step.
  EngineOptions engine;
};

// Sequences of ids, one a line, separated by blanks or commas; empty lines do not count.
// Errors: invalid_data, with the line's number, for what is not an id below `vocabulary_count`;
// and when there is no sequence at all.
Result<std::vector<std::vector<Token>>> parse_sequences(std::string_view text,
                                                        int32_t vocabulary_count);

// Writes [tokens of all sequences][vocabulary] f32, little-endian; the file appears when it is
// whole. Returns the number of rows.
Result<int64_t> write_logits(const LogitsOptions& options);

}  // namespace cairn::cli
