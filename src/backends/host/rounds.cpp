// How stages are divided into rounds, and fused ops into pieces.
#include "backends/host/rounds.h"

#include <algorithm>

namespace cairn::host {
namespace {

// With so many rows, a product's weights are still read once, and a recurrence of a piece's columns
// can follow the product that made them: all rows are one piece.
constexpr int32_t kFewRows = 8;

// Elements of a piece of light ops: a few microseconds of arithmetic. Rows alone are cut into
// columns that are worth handing to another thread.
constexpr int32_t kPieceElements = 4096, kPieceColumns = 2048;

// The index of the fused ops that begin at `op`; -1: none do.
int32_t fused_at(const Plan& plan, int32_t op) {
  const auto at =
      std::lower_bound(plan.fused_ops.begin(), plan.fused_ops.end(), op,
                       [](const FusedOps& fused, int32_t first) { return fused.first_op < first; });
  if (at == plan.fused_ops.end() || at->first_op != op) return -1;
  return int32_t(at - plan.fused_ops.begin());
}

// A stage's ops in both forms.
struct Parts {
  std::vector<Unit> together;
  bool can_be_together = true;
  bool needs_few_rows = false;
  std::vector<std::vector<Unit>> apart;  // By round.

  void add_apart(size_t round, const Unit& unit) {
    if (apart.size() <= round) apart.resize(round + 1);
    apart[round].push_back(unit);
  }
};

// In the form `apart`, producers and single ops run first; then the other fused ops, as one unit if
// their kernels can compute pieces.
Parts parts_of(const Plan& plan, const Stage& stage, const std::vector<HostKernel>& kernels) {
  Parts parts;
  const auto have_pieces = [&kernels](int32_t first, int32_t end) {
    return std::all_of(kernels.begin() + first, kernels.begin() + end,
                       [](const HostKernel& kernel) { return kernel.run_piece != nullptr; });
  };
  for (int32_t op = stage.first_op; op < stage.first_op + stage.op_count;) {
    const int32_t index = fused_at(plan, op);
    if (index < 0) {
      parts.together.push_back({.first_op = op});
      parts.add_apart(0, {.first_op = op});
      ++op;
      continue;
    }
    const FusedOps& fused = plan.fused_ops[size_t(index)];
    const int32_t followers = op + fused.producer_count, end = op + fused.op_count;
    parts.together.push_back({op, fused.op_count, index});
    parts.needs_few_rows = parts.needs_few_rows || fused.producer_count > 0;
    parts.can_be_together = parts.can_be_together && have_pieces(op, end);
    for (; op < followers; ++op) parts.add_apart(0, {.first_op = op});
    size_t round = fused.producer_count > 0 ? 1 : 0;
    if (op < end && have_pieces(op, end)) {
      parts.add_apart(round, {op, end - op, index});
      op = end;
    }
    for (; op < end; ++op) parts.add_apart(round++, {.first_op = op});
  }
  return parts;
}

}  // namespace

Piece PieceCut::piece(int64_t index) const {
  const int32_t first_row = int32_t(index / column_pieces()) * rows;
  const int32_t first_column = int32_t(index % column_pieces()) * columns;
  return {first_row, std::min(row_count, first_row + rows), first_column,
          std::min(width, first_column + columns)};
}

Rounds::Rounds(const Plan& plan, const std::vector<HostKernel>& kernels) {
  size_t round_count_max = 0;
  for (const Stage& stage : plan.stages) {
    const Parts parts = parts_of(plan, stage, kernels);
    Forms& forms = stages_.emplace_back();
    forms.needs_few_rows = parts.needs_few_rows;
    if (parts.can_be_together) forms.together = add_round(parts.together);
    for (const std::vector<Unit>& round : parts.apart) forms.apart.push_back(add_round(round));
    round_count_max += forms.apart.size();
  }
  chosen_.reserve(round_count_max);
}

Round Rounds::add_round(const std::vector<Unit>& units) {
  units_.insert(units_.end(), units.begin(), units.end());
  return {int32_t(units_.size() - units.size()), int32_t(units.size())};
}

const std::vector<Round>& Rounds::choose(const Step& step) {
  chosen_.clear();
  const bool few =
      step.row_count(RowSet::tokens) <= kFewRows && step.row_count(RowSet::outputs) <= kFewRows;
  for (const Forms& forms : stages_) {
    if (forms.together.unit_count > 0 && (few || !forms.needs_few_rows)) {
      chosen_.push_back(forms.together);
    } else {
      chosen_.insert(chosen_.end(), forms.apart.begin(), forms.apart.end());
    }
  }
  return chosen_;
}

PieceCut Rounds::cut(const Unit& unit, const Plan& plan, const std::vector<HostKernel>& kernels,
                     const Step& step) {
  const FusedOps& fused = plan.fused_ops[size_t(unit.fused)];
  const bool is_producer = unit.first_op < fused.first_op + fused.producer_count;
  PieceCut cut{.row_count = step.row_count(fused.set), .width = fused.width};
  cut.columns = fused.width;
  cut.rows = is_producer ? std::max(1, cut.row_count) : std::max(1, kPieceElements / fused.width);
  if (fused.alignment == fused.width || (!is_producer && cut.row_count > kFewRows)) return cut;
  if (!is_producer) cut.rows = 1;
  int32_t columns = 0;  // Of a good piece.
  for (int32_t op = unit.first_op; op < unit.first_op + unit.op_count; ++op) {
    const HostKernel& kernel = kernels[size_t(op)];
    if (kernel.piece_columns == nullptr) continue;
    const int32_t good = kernel.piece_columns(plan.ops[size_t(op)], step);
    columns = columns == 0 ? good : std::min(columns, good);
  }
  if (columns == 0) columns = kPieceColumns;
  const int32_t multiple = std::max(1, (columns + fused.alignment / 2) / fused.alignment);
  cut.columns = std::min(fused.width, multiple * fused.alignment);
  return cut;
}

}  // namespace cairn::host
