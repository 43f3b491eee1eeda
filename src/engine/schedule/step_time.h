// How long a step takes, learned from the steps that were made: so many rows of prompts fit into a
// given time beside the rows that continue answers. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace cairn {

class StepTime {
 public:
  // A step of `decode_rows` rows, each of another sequence, and `prompt_rows` rows of prompts took
  // so long.
  void learn(int32_t decode_rows, int32_t prompt_rows, double seconds);
  // Of a row of a prompt beside many others; 0 if nothing is known.
  double prompt_row_seconds() const { return prompt_row_seconds_; }
  // Of a step without rows of prompts; 0 if nothing is known.
  double decode_seconds(int32_t decode_rows) const;
  // How many rows of prompts fit into `seconds` beside these rows, from `least` to `most`. Where
  // nothing is known, as few as that; as many, if nobody waits for other rows.
  int32_t prompt_rows(int32_t decode_rows, double seconds, int32_t least, int32_t most) const;

 private:
  static constexpr size_t kSizes = 12;  // Powers of two of decode_rows.

  static size_t size_of(int32_t rows);

  std::array<double, kSizes> decode_seconds_{};  // 0: not known.
  double prompt_row_seconds_ = 0;                // Likewise.
};

}  // namespace cairn
