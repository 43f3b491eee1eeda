// Records a model's forward pass as a plan of ops, in execution order. Values are rows of f32, one
// for each token, or after outputs() one for each token whose logits are wanted. finish() makes
// three plans: a whole step, the head alone, and the recurrence alone. Knows the ops and the
// memory's layout, not the models. One thread; used once.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "device/plan.h"
#include "graph/low_rank.h"
#include "graph/parameters.h"
#include "graph/planner.h"
#include "graph/specs.h"
#include "graph/tensor.h"
#include "memory/layout.h"

namespace cairn {

// What the forward pass computes.
enum class OutputKind : uint8_t {
  logits,   // Of the next token.
  vectors,  // The last hidden row: [width].
  scores,   // Of a classifier.
};

struct GraphOptions {
  OutputKind output_kind = OutputKind::logits;
  // Products of quantized weights also get the f32 rows, for programs that multiply these.
  bool keeps_plain_rows = false;
  bool rounds_prompts = false;   // As the backend that computes says.
  PieceAlignment alignment = {};  // Of the backend that computes.
  // LoRA adapters, valid until finish(); what they point to must live as long as the plans.
  std::span<const LowRank> low_ranks;
};

class Graph {
 public:
  explicit Graph(const memory::Layout& layout, const GraphOptions& options = {})
      : layout_(layout), options_(options) {}

  OutputKind output_kind() const { return options_.output_kind; }
  // Marks x as what the pass computes, in models without logits.
  Tensor set_output(Tensor x);
  bool is_output(Tensor x) const { return x.exists() && output_.value == x.value; }
  // Whether this adapter's matrix is part of what was recorded.
  bool uses(const LowRank& change) const { return used_low_ranks_.contains(&change); }

  Tensor embed(const Weight& table, float scale = 1.0f);
  // The table's row for the position of each token. The table has as many as the model reads.
  Tensor embed_positions(const Weight& table);
  Tensor given(int32_t width);  // The row that is handed in beside each token.
  Tensor embed_row(const Weight& table, int32_t row);  // The same one for each token.
  Tensor matmul(const Weight& weight, Tensor x, const Vector& bias = {});
  // Normalises each run of `group` columns by itself; 0 means the whole row. The gain has one
  // entry for each column of a group, or for each column of the row.
  Tensor rms_norm(Tensor x, const Vector& gain, float epsilon, int32_t group = 0);
  Tensor layer_norm(Tensor x, const Vector& gain, const Vector& bias, float epsilon,
                    int32_t group = 0);
  Tensor add(Tensor a, Tensor b, float scale = 1.0f);  // a + b * scale
  Tensor scale(Tensor x, float factor);
  // Each column by its own factor; the first column's is the one at `first`.
  Tensor scale_columns(Tensor x, const Vector& factors, int32_t first = 0);
  Tensor clamp(Tensor x, float limit);  // Within [-limit, limit].
  Tensor activate(Tensor x, Activation activation);
  Tensor gate(Tensor gate, Tensor x, Activation activation);  // activation(gate) * x
  // The same where x holds both sides: runs of `run` columns, one of the gate and one of x in turn.
  Tensor gate_runs(Tensor x, int32_t run, Activation activation);
  Tensor rope(Tensor x, int32_t head_dim, const RopeSpec& spec);
  Tensor scale_by_position(Tensor x, double factor, int32_t original_context, int32_t offset = 0);
  // `v` is none where the layer's values are the beginnings of its keys.
  Tensor attend(int32_t layer, Tensor q, Tensor k, Tensor v, const AttentionSpec& spec);
  // For a layer whose state is shared: reads what the other layer has stored in this step.
  Tensor attend_shared(int32_t layer, Tensor q, const AttentionSpec& spec);
  // `state` says which of the layer's recurrent tensors.
  Tensor short_conv(int32_t layer, Tensor x, const Vector& weight, const Vector& bias,
                    int32_t kernel, bool silu = true, int32_t state = 0);
  // In both scans the layer's second recurrent tensor holds the state (the first is the
  // convolution's tail).
  Tensor mamba_scan(int32_t layer, Tensor x, Tensor b, Tensor c, Tensor dt, const Vector& a,
                    const Vector& d);
  Tensor mamba2_scan(int32_t layer, Tensor x, Tensor b, Tensor c, Tensor dt,
                     const Mamba2Spec& spec);
  // As mamba2_scan: the layer's second recurrent tensor.
  Tensor gated_delta_scan(int32_t layer, const GatedDeltaInputs& inputs,
                          const GatedDeltaSpec& spec);
  Tensor channel_delta_scan(int32_t layer, const ChannelDeltaInputs& inputs,
                            const ChannelDeltaSpec& spec, int32_t state);
  // Each head of x times the sum of a * b * gain over the head.
  Tensor scale_by_dots(Tensor x, Tensor a, Tensor b, const Vector& gain, int32_t head_dim);
  Routing route(Tensor logits, const RouterSpec& spec);
  Tensor expert_matmul(const Weight& weight, Tensor x, const Routing& routing, bool x_per_rank,
                       const Vector& bias = {});
  Tensor expert_scale(Tensor x, const Routing& routing);
  // All matrices of a weight side by side, each times x, or times its own part of x.
  Tensor matmul_each(const Weight& weight, Tensor x, bool x_per_matrix);
  Tensor expert_sum(Tensor x, const Routing& routing);
  // Streams: columns of equal width side by side. Adds to each stream of a all streams of b, each
  // times its coefficient + offset.
  Tensor mix_streams(Tensor a, Tensor b, Tensor coefficients, int32_t width, float offset = 0);
  void add_to_streams(Tensor streams, Tensor x);  // The same x to each of them, in place.
  // `first`, then the streams of x, as long as `first` is.
  Tensor match_magnitude(Tensor first, Tensor x, float floor);
  Tensor gaussian_topk(Tensor x, float deviations);
  // Only the rows whose logits are wanted: the hidden rows. Once in a model; all that follows is
  // computed from these rows alone.
  Tensor outputs(Tensor x);
  Tensor columns(Tensor x, int32_t first, int32_t width) const;  // A view.
  // Of each `period` columns those from `first` on, `count` of them.
  Tensor pick_columns(Tensor x, int32_t first, int32_t count, int32_t period);
  // Runs of a and of b in turn: the heads of both, each head's parts side by side; or one run of b
  // after each of a's.
  Tensor join_columns(Tensor a, int32_t a_run, Tensor b, int32_t b_run);

  // What was recorded so far, in order, for those who compute it elsewhere; rows are references
  // (graph/reference.h).
  std::span<const Op> recorded() const { return ops_; }

  using Limits = PlanLimits;
  Plans finish(Tensor logits, const Limits& limits) &&;

 private:
  struct Quantized {
    Tensor of;
    int32_t value;
  };
  struct Table {
    std::vector<double> frequencies;
    double magnitude;
    Tensor tensor;
  };
  Tensor new_value(int32_t width, RowSet set, bool quantized = false);
  RowSet set_of(Tensor x) const { return values_[size_t(x.value)].set; }
  // Until finish(), a row's offset is its value's index and first column (see pack_reference).
  Rows rows(Tensor x) const;
  QuantizedRows quantized_rows(const Weight& weight, Tensor x);
  Rows plain_rows(const Weight& weight, Tensor x) const;
  Tensor rope_table(const RopeSpec& spec);
  Tensor product(const Weight& weight, Tensor x, const Vector& bias);
  Tensor expert_product(const Weight& weight, Tensor x, const Routing& routing, bool x_per_rank,
                        const Vector& bias);

  const memory::Layout& layout_;
  GraphOptions options_;
  std::vector<Value> values_;
  std::vector<Op> ops_;
  std::vector<Quantized> quantized_;
  std::vector<Table> tables_;
  std::vector<std::vector<double>> constants_;
  std::set<const LowRank*> used_low_ranks_;
  Tensor hidden_;  // What outputs() gave.
  Tensor output_;  // What set_output() was given.
};

}  // namespace cairn
