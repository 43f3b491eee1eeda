// A round is what runs between two barriers. With few rows the ops of a stage run in one round;
// with many, fused ops that begin with producers are split into several rounds, in which each
// product and recurrence is cut as suits it best. Thread rule: as HostBackend's.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/host/kernel.h"
#include "device/plan.h"

namespace cairn::host {

// What is cut into tasks: an op, by its kernel; or some fused ops, by pieces.
struct Unit {
  int32_t first_op = 0, op_count = 1;
  int32_t fused = -1;
};

struct Round {
  int32_t first_unit = 0, unit_count = 0;
};

// The order of a unit's pieces: by rows, and within the same rows by columns.
struct PieceCut {
  int32_t row_count = 0, width = 0;  // Of all pieces.
  int32_t rows = 1, columns = 1;     // Of a piece.

  int32_t column_pieces() const { return (width + columns - 1) / columns; }
  int64_t count() const { return int64_t((row_count + rows - 1) / rows) * column_pieces(); }
  Piece piece(int64_t index) const;
};

class Rounds {
 public:
  Rounds(const Plan& plan, const std::vector<HostKernel>& kernels);

  const std::vector<Unit>& units() const { return units_; }
  // The rounds of a step, in order. Overwritten by the next call; allocates nothing.
  const std::vector<Round>& choose(const Step& step);
  // REQUIRES: the unit is of fused ops.
  static PieceCut cut(const Unit& unit, const Plan& plan, const std::vector<HostKernel>& kernels,
                      const Step& step);

 private:
  struct Forms {
    Round together;               // Exists unless unit_count is 0.
    bool needs_few_rows = false;  // For the form `together`.
    std::vector<Round> apart;
  };

  Round add_round(const std::vector<Unit>& units);

  std::vector<Unit> units_;
  std::vector<Forms> stages_;
  std::vector<Round> chosen_;
};

}  // namespace cairn::host
