// Log-probabilities of a model over a text, kept so that another model can be compared with it. The
// file is llama.cpp's (llama-perplexity --kl-divergence-base), so that either program can read what
// the other wrote:
//   "_logits_" | u32 context | i32 vocabulary | i32 chunks | i32 tokens[chunks * context]
//   and for each row: f32 scale | f32 lowest | u16 codes[vocabulary, made even]
// where the log-probability of token i is scale * code + lowest, at least about 16 below the best.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "base/result.h"

namespace cairn::measure {

struct LogitsShape {
  int32_t context = 0;
  int32_t vocabulary = 0;
  int32_t chunk_count = 0;

  // Rows of a chunk: its second half but for the last token, which nothing follows.
  int32_t first_row() const { return context / 2; }
  int32_t row_count() const { return context - 1 - first_row(); }
};

struct SavedRow {
  float scale;
  float lowest;
  std::span<const uint16_t> codes;

  float log_probability(size_t token) const { return scale * float(codes[token]) + lowest; }
};

class LogitsWriter {
 public:
  static Result<LogitsWriter> open(OutputFile file, const LogitsShape& shape,
                                   std::span<const Token> tokens);
  // The next row. `log_total`: the logarithm of the sum of all e^logit.
  Status append(std::span<const float> logits, double log_total);
  Status commit() { return file_.commit(); }

 private:
  explicit LogitsWriter(OutputFile file) : file_(std::move(file)) {}
  OutputFile file_;
  std::vector<std::byte> row_;
};

// Rows in memory, coded as those of a file are.
class KeptLogits {
 public:
  explicit KeptLogits(int32_t vocabulary) : vocabulary_(vocabulary) {}
  void clear() { bytes_.clear(); }
  void append(std::span<const float> logits, double log_total);
  int64_t row_count() const;
  SavedRow row(int64_t index) const;

 private:
  int32_t vocabulary_;
  std::vector<std::byte> bytes_;
};

class SavedLogits {
 public:
  // Errors: io, invalid_data where the file is not what its head says.
  static Result<SavedLogits> open(const std::string& path);
  const LogitsShape& shape() const { return shape_; }
  const std::vector<Token>& tokens() const { return tokens_; }
  // Rows are counted over all chunks.
  SavedRow row(int64_t index) const;

 private:
  SavedLogits(MappedFile file, LogitsShape shape) : file_(std::move(file)), shape_(shape) {}
  MappedFile file_;
  LogitsShape shape_;
  std::vector<Token> tokens_;
  size_t rows_offset_ = 0;
};

}  // namespace cairn::measure
