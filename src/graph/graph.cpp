// The recording side of Graph: one op, or two, for each call of a model.
#include "graph/graph.h"

#include "base/check.h"
#include "graph/reference.h"

namespace cairn {

Tensor Graph::new_value(int32_t width, RowSet set, bool quantized) {
  values_.push_back({.width = width,
                     .quantized = quantized,
                     .rounds_prompts = options_.rounds_prompts,
                     .set = set});
  return {.value = int32_t(values_.size()) - 1, .column = 0, .width = width};
}

Rows Graph::rows(Tensor x) const {
  CHECK(x.exists());
  return {
      .offset = pack_reference(x.value, x.column), .stride = 0, .width = x.width, .set = set_of(x)};
}

// The quantized form of x where the weight is multiplied as integers; made once for each x.
QuantizedRows Graph::quantized_rows(const Weight& weight, Tensor x) {
  if (weight.type->is_float()) return {};
  int32_t value = -1;
  for (const Quantized& entry : quantized_) {
    const bool same_columns = entry.of.column == x.column && entry.of.width == x.width;
    if (entry.of.value == x.value && same_columns) value = entry.value;
  }
  QuantizedRows result{.width = x.width, .set = set_of(x)};
  if (value >= 0) {
    result.offset = pack_reference(value, 0);
    return result;
  }
  value = new_value(x.width, set_of(x), true).value;
  result.offset = pack_reference(value, 0);
  quantized_.push_back({.of = x, .value = value});
  ops_.push_back(op::Quantize{.x = rows(x), .out = result});
  return result;
}

Rows Graph::plain_rows(const Weight& weight, Tensor x) const {
  return weight.type->is_float() || options_.keeps_plain_rows ? rows(x) : Rows{};
}

Tensor Graph::embed(const Weight& table, float scale) {
  const Tensor out = new_value(table.cols, RowSet::tokens);
  ops_.push_back(op::Embed{.table = &table, .out = rows(out), .scale = scale});
  return out;
}

Tensor Graph::embed_positions(const Weight& table) {
  const Tensor out = new_value(table.cols, RowSet::tokens);
  ops_.push_back(op::Embed{.table = &table, .out = rows(out), .by_position = true});
  return out;
}

Tensor Graph::embed_row(const Weight& table, int32_t row) {
  const Tensor out = new_value(table.cols, RowSet::tokens);
  ops_.push_back(op::Embed{.table = &table, .out = rows(out), .fixed_row = row});
  return out;
}

Tensor Graph::given(int32_t width) {
  const Tensor out = new_value(width, RowSet::tokens);
  ops_.push_back(op::Given{.out = rows(out)});
  return out;
}

Tensor Graph::set_output(Tensor x) {
  output_ = x;
  return x;
}

Tensor Graph::matmul(const Weight& weight, Tensor x, const Vector& bias) {
  Tensor out = product(weight, x, bias);
  for (const LowRank& change : options_.low_ranks) {
    if (change.of != &weight) continue;
    used_low_ranks_.insert(&change);
    out = add(out, product(*change.b, product(*change.a, x, {}), {}), change.scale);
  }
  return out;
}

Tensor Graph::product(const Weight& weight, Tensor x, const Vector& bias) {
  CHECK(x.width == weight.cols);
  const QuantizedRows quantized = quantized_rows(weight, x);
  const Tensor out = new_value(weight.rows, set_of(x));
  ops_.push_back(op::MatMul{.weight = &weight,
                            .x = plain_rows(weight, x),
                            .quantized = quantized,
                            .out = rows(out),
                            .bias = bias});
  return out;
}

Tensor Graph::rms_norm(Tensor x, const Vector& gain, float epsilon, int32_t group) {
  const int32_t group_width = group == 0 ? x.width : group;
  const Tensor out = new_value(x.width, set_of(x));
  ops_.push_back(op::RmsNorm{.x = rows(x),
                             .out = rows(out),
                             .gain = gain,
                             .group = group_width,
                             .gain_per_element = int64_t(gain.values.size()) > group_width,
                             .epsilon = epsilon});
  return out;
}

Tensor Graph::layer_norm(Tensor x, const Vector& gain, const Vector& bias, float epsilon,
                         int32_t group) {
  const int32_t group_width = group == 0 ? x.width : group;
  const Tensor out = new_value(x.width, set_of(x));
  ops_.push_back(op::LayerNorm{.x = rows(x),
                               .out = rows(out),
                               .gain = gain,
                               .bias = bias,
                               .group = group_width,
                               .gain_per_element = int64_t(gain.values.size()) > group_width,
                               .epsilon = epsilon});
  return out;
}

Tensor Graph::add(Tensor a, Tensor b, float scale) {
  const Tensor out = new_value(a.width, set_of(a));
  ops_.push_back(op::Add{.a = rows(a), .b = rows(b), .out = rows(out), .scale = scale});
  return out;
}

Tensor Graph::scale(Tensor x, float factor) {
  const Tensor out = new_value(x.width, set_of(x));
  ops_.push_back(op::Scale{.x = rows(x), .out = rows(out), .factor = factor});
  return out;
}

Tensor Graph::scale_columns(Tensor x, const Vector& factors, int32_t first) {
  CHECK(first >= 0 && int64_t(factors.values.size()) >= int64_t(first) + x.width);
  const Tensor out = new_value(x.width, set_of(x));
  ops_.push_back(op::Scale{.x = rows(x),
                           .out = rows(out),
                           .of_columns = factors.values.subspan(size_t(first), size_t(x.width))});
  return out;
}

Tensor Graph::clamp(Tensor x, float limit) {
  const Tensor out = new_value(x.width, set_of(x));
  ops_.push_back(op::Clamp{.x = rows(x), .out = rows(out), .limit = limit});
  return out;
}

Tensor Graph::activate(Tensor x, Activation activation) {
  const Tensor out = new_value(x.width, set_of(x));
  ops_.push_back(op::Activate{.x = rows(x), .out = rows(out), .activation = activation});
  return out;
}

Tensor Graph::gate(Tensor gate, Tensor x, Activation activation) {
  const Tensor out = new_value(x.width, set_of(x));
  ops_.push_back(
      op::Gate{.gate = rows(gate), .x = rows(x), .out = rows(out), .activation = activation});
  return out;
}

Tensor Graph::gate_runs(Tensor x, int32_t run, Activation activation) {
  CHECK(x.width % (2 * run) == 0);
  const Tensor out = new_value(x.width / 2, set_of(x));
  ops_.push_back(op::Gate{.gate = rows(columns(x, 0, x.width - run)),
                          .x = rows(columns(x, run, x.width - run)),
                          .out = rows(out),
                          .activation = activation,
                          .run = run});
  return out;
}

Tensor Graph::rope_table(const RopeSpec& spec) {
  for (const Table& table : tables_) {
    if (table.frequencies == spec.frequencies && table.magnitude == spec.magnitude) {
      return table.tensor;
    }
  }
  const int32_t pair_count = int32_t(spec.frequencies.size());
  const Tensor out = new_value(2 * pair_count, RowSet::tokens);
  constants_.push_back(spec.frequencies);
  ops_.push_back(op::RopeTable{.frequencies = constants_.back(),
                               .pair_count = pair_count,
                               .magnitude = spec.magnitude,
                               .out = rows(out)});
  tables_.push_back({spec.frequencies, spec.magnitude, out});
  return out;
}

// In place: no other handle of x is read as it was before.
Tensor Graph::rope(Tensor x, int32_t head_dim, const RopeSpec& spec) {
  const Tensor table = rope_table(spec);
  ops_.push_back(op::Rope{.x = rows(x),
                          .table = rows(table),
                          .head_dim = head_dim,
                          .pair_count = int32_t(spec.frequencies.size()),
                          .style = spec.style});
  return x;
}

Tensor Graph::scale_by_position(Tensor x, double factor, int32_t original_context, int32_t offset) {
  ops_.push_back(op::ScaleByPosition{
      .x = rows(x), .factor = factor, .original_context = original_context, .offset = offset});
  return x;
}

Tensor Graph::attend(int32_t layer, Tensor q, Tensor k, Tensor v, const AttentionSpec& spec) {
  const int32_t plane = layout_.kv_plane_of_layer[size_t(layer)];
  CHECK(plane >= 0);
  const KvPlane& kv = layout_.kv_planes[size_t(plane)];
  CHECK(k.width == kv.kv_head_count * kv.key_dim);
  CHECK(v.width == (kv.values_in_keys ? 0 : kv.kv_head_count * kv.value_dim));
  ops_.push_back(op::StoreKv{.k = rows(k),
                             .v = v.exists() ? rows(v) : Rows{},
                             .plane = plane,
                             .kv_head_count = kv.kv_head_count});
  return attend_shared(layer, q, spec);
}

Tensor Graph::attend_shared(int32_t layer, Tensor q, const AttentionSpec& spec) {
  const int32_t plane = layout_.kv_plane_of_layer[size_t(layer)];
  CHECK(plane >= 0);
  const KvPlane& kv = layout_.kv_planes[size_t(plane)];
  CHECK(q.width == spec.head_count * kv.key_dim);
  const Tensor out = new_value(spec.head_count * kv.value_dim, RowSet::tokens);
  ops_.push_back(op::Attend{.q = rows(q),
                            .out = rows(out),
                            .plane = plane,
                            .head_count = spec.head_count,
                            .scale = spec.scale,
                            .softcap = spec.softcap,
                            .window = spec.window,
                            .chunked = spec.chunked,
                            .is_causal = spec.is_causal,
                            .sinks = spec.sinks,
                            .slopes = spec.slopes});
  return out;
}

Tensor Graph::short_conv(int32_t layer, Tensor x, const Vector& weight, const Vector& bias,
                         int32_t kernel, bool silu, int32_t state) {
  const int32_t first_state = layout_.state_tensor_of_layer[size_t(layer)];
  CHECK(first_state >= 0);
  const Tensor out = new_value(x.width, RowSet::tokens);
  ops_.push_back(op::ShortConv{.x = rows(x),
                               .out = rows(out),
                               .weight = weight,
                               .bias = bias,
                               .kernel = kernel,
                               .silu = silu,
                               .state = first_state + state});
  return out;
}

Tensor Graph::mamba_scan(int32_t layer, Tensor x, Tensor b, Tensor c, Tensor dt, const Vector& a,
                         const Vector& d) {
  const int32_t state = layout_.state_tensor_of_layer[size_t(layer)] + 1;
  CHECK(dt.width == x.width && c.width == b.width);
  const Tensor out = new_value(x.width, RowSet::tokens);
  ops_.push_back(op::MambaScan{.x = rows(x),
                               .b = rows(b),
                               .c = rows(c),
                               .dt = rows(dt),
                               .out = rows(out),
                               .a = a,
                               .d = d,
                               .state_size = b.width,
                               .state = state});
  return out;
}

Tensor Graph::mamba2_scan(int32_t layer, Tensor x, Tensor b, Tensor c, Tensor dt,
                          const Mamba2Spec& spec) {
  const int32_t state = layout_.state_tensor_of_layer[size_t(layer)] + 1;
  const Tensor out = new_value(x.width, RowSet::tokens);
  ops_.push_back(op::Mamba2Scan{.x = rows(x),
                                .b = rows(b),
                                .c = rows(c),
                                .dt = rows(dt),
                                .out = rows(out),
                                .a = spec.a,
                                .d = spec.d,
                                .dt_bias = spec.dt_bias,
                                .head_count = spec.head_count,
                                .head_dim = spec.head_dim,
                                .state_size = spec.state_size,
                                .group_count = spec.group_count,
                                .state = state});
  return out;
}

Tensor Graph::gated_delta_scan(int32_t layer, const GatedDeltaInputs& inputs,
                               const GatedDeltaSpec& spec) {
  const int32_t state = layout_.state_tensor_of_layer[size_t(layer)] + 1;
  const Tensor out = new_value(inputs.v.width, RowSet::tokens);
  ops_.push_back(op::GatedDeltaScan{.q = rows(inputs.q),
                                    .k = rows(inputs.k),
                                    .v = rows(inputs.v),
                                    .out = rows(out),
                                    .dt = rows(inputs.dt),
                                    .rate = rows(inputs.rate),
                                    .a = spec.a,
                                    .dt_bias = spec.dt_bias,
                                    .head_count = spec.head_count,
                                    .key_head_count = spec.key_head_count,
                                    .key_dim = spec.key_dim,
                                    .value_dim = spec.value_dim,
                                    .order = spec.order,
                                    .state = state});
  return out;
}

Tensor Graph::channel_delta_scan(int32_t layer, const ChannelDeltaInputs& inputs,
                                 const ChannelDeltaSpec& spec, int32_t state) {
  const bool has_rate = inputs.rate.exists();
  CHECK(has_rate != inputs.asked.exists() && has_rate != inputs.erased.exists());
  const Tensor out = new_value(inputs.v.width, RowSet::tokens);
  ops_.push_back(
      op::ChannelDeltaScan{.q = rows(inputs.q),
                           .k = rows(inputs.k),
                           .log_decay = rows(inputs.log_decay),
                           .v = rows(inputs.v),
                           .out = rows(out),
                           .rate = has_rate ? rows(inputs.rate) : Rows{},
                           .asked = has_rate ? Rows{} : rows(inputs.asked),
                           .erased = has_rate ? Rows{} : rows(inputs.erased),
                           .a = spec.a,
                           .head_count = spec.head_count,
                           .key_dim = spec.key_dim,
                           .value_dim = spec.value_dim,
                           .state = layout_.state_tensor_of_layer[size_t(layer)] + state});
  return out;
}

Tensor Graph::scale_by_dots(Tensor x, Tensor a, Tensor b, const Vector& gain, int32_t head_dim) {
  CHECK(x.width % head_dim == 0 && a.width == x.width && b.width == x.width);
  CHECK(int64_t(gain.values.size()) == x.width);
  const Tensor out = new_value(x.width, set_of(x));
  ops_.push_back(op::ScaleByDots{.a = rows(a),
                                 .b = rows(b),
                                 .x = rows(x),
                                 .out = rows(out),
                                 .gain = gain,
                                 .head_dim = head_dim});
  return out;
}

Routing Graph::route(Tensor logits, const RouterSpec& spec) {
  const Routing routing{.chosen = new_value(spec.expert_used_count, set_of(logits)),
                        .weights = new_value(spec.expert_used_count, set_of(logits))};
  ops_.push_back(op::Route{.logits = rows(logits),
                           .chosen = rows(routing.chosen),
                           .weights = rows(routing.weights),
                           .score = spec.score,
                           .normalize = spec.normalize,
                           .scale = spec.scale,
                           .selection_bias = spec.selection_bias,
                           .group_count = spec.group_count,
                           .group_used_count = spec.group_used_count,
                           .group_best_count = spec.group_best_count});
  return routing;
}

Tensor Graph::expert_matmul(const Weight& weight, Tensor x, const Routing& routing, bool x_per_rank,
                            const Vector& bias) {
  Tensor out = expert_product(weight, x, routing, x_per_rank, bias);
  for (const LowRank& change : options_.low_ranks) {
    if (change.of != &weight) continue;
    used_low_ranks_.insert(&change);
    const Tensor low = expert_product(*change.a, x, routing, x_per_rank, {});
    out = add(out, expert_product(*change.b, low, routing, true, {}), change.scale);
  }
  return out;
}

Tensor Graph::expert_product(const Weight& weight, Tensor x, const Routing& routing,
                             bool x_per_rank, const Vector& bias) {
  const int32_t rank_count = routing.chosen.width;
  CHECK(x.width == weight.cols * (x_per_rank ? rank_count : 1));
  const QuantizedRows quantized = quantized_rows(weight, x);
  const Tensor out = new_value(rank_count * weight.rows, set_of(x));
  ops_.push_back(op::ExpertMatMul{.weight = &weight,
                                  .x = plain_rows(weight, x),
                                  .quantized = quantized,
                                  .chosen = rows(routing.chosen),
                                  .out = rows(out),
                                  .x_per_rank = x_per_rank,
                                  .bias = bias});
  return out;
}

Tensor Graph::expert_scale(Tensor x, const Routing& routing) {
  const Tensor out = new_value(x.width * routing.weights.width, set_of(x));
  ops_.push_back(op::ExpertScale{.x = rows(x), .weights = rows(routing.weights), .out = rows(out)});
  return out;
}

Tensor Graph::matmul_each(const Weight& weight, Tensor x, bool x_per_matrix) {
  CHECK(x.width == weight.cols * (x_per_matrix ? weight.count : 1));
  const QuantizedRows quantized = quantized_rows(weight, x);
  const Tensor out = new_value(weight.count * weight.rows, set_of(x));
  ops_.push_back(op::ExpertMatMul{.weight = &weight,
                                  .x = plain_rows(weight, x),
                                  .quantized = quantized,
                                  .chosen = {},
                                  .out = rows(out),
                                  .x_per_rank = x_per_matrix});
  return out;
}

Tensor Graph::mix_streams(Tensor a, Tensor b, Tensor coefficients, int32_t width, float offset) {
  CHECK(a.width % width == 0 && b.width % width == 0);
  CHECK(coefficients.width == a.width / width * (b.width / width));
  const Tensor out = new_value(a.width, set_of(a));
  ops_.push_back(op::MixStreams{.a = rows(a),
                                .out = rows(out),
                                .b = rows(b),
                                .coefficients = rows(coefficients),
                                .width = width,
                                .offset = offset});
  return out;
}

void Graph::add_to_streams(Tensor streams, Tensor x) {
  CHECK(streams.width % x.width == 0);
  ops_.push_back(op::MixStreams{.a = rows(streams),
                                .out = rows(streams),
                                .b = rows(x),
                                .coefficients = {},
                                .width = x.width,
                                .offset = 1.0f});
}

Tensor Graph::match_magnitude(Tensor first, Tensor x, float floor) {
  CHECK(x.width % first.width == 0);
  const Tensor out = new_value(first.width + x.width, set_of(x));
  ops_.push_back(
      op::MatchMagnitude{.first = rows(first), .x = rows(x), .out = rows(out), .floor = floor});
  return out;
}

Tensor Graph::gaussian_topk(Tensor x, float deviations) {
  const Tensor out = new_value(x.width, set_of(x));
  ops_.push_back(op::GaussianTopk{.x = rows(x), .out = rows(out), .deviations = deviations});
  return out;
}

Tensor Graph::expert_sum(Tensor x, const Routing& routing) {
  const Tensor out = new_value(x.width / routing.weights.width, set_of(x));
  ops_.push_back(op::ExpertSum{.x = rows(x), .weights = rows(routing.weights), .out = rows(out)});
  return out;
}

Tensor Graph::outputs(Tensor x) {
  CHECK(!hidden_.exists());
  const Tensor out = new_value(x.width, RowSet::outputs);
  ops_.push_back(op::GatherOutputs{.x = rows(x), .out = rows(out)});
  hidden_ = out;
  return out;
}

Tensor Graph::columns(Tensor x, int32_t first, int32_t width) const {
  CHECK(first >= 0 && first + width <= x.width);
  return {.value = x.value, .column = x.column + first, .width = width};
}

Tensor Graph::pick_columns(Tensor x, int32_t first, int32_t count, int32_t period) {
  CHECK(first + count <= period && x.width % period == 0);
  const Tensor out = new_value(x.width / period * count, set_of(x));
  ops_.push_back(op::PickColumns{.x = rows(columns(x, first, x.width - first)),
                                 .out = rows(out),
                                 .count = count,
                                 .period = period});
  return out;
}

Tensor Graph::join_columns(Tensor a, int32_t a_run, Tensor b, int32_t b_run) {
  const int32_t run_count = a.width / a_run;
  CHECK(a.width % a_run == 0 && (b.width == b_run || b.width == run_count * b_run));
  const Tensor out = new_value(run_count * (a_run + b_run), set_of(a));
  ops_.push_back(op::JoinColumns{
      .a = rows(a), .b = rows(b), .out = rows(out), .a_run = a_run, .b_run = b_run});
  return out;
}

}  // namespace cairn
