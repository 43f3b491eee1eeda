// The closed list of ops that backends compute. An op is plain data: the rows that it reads, the
// rows that it writes, its weights. It knows neither models nor memory management. The scalar code
// in backends/reference defines the result of each op to the bit (docs/numerics.md).
//
// Aliases: `out` of RmsNorm, Add, Scale, Clamp, Activate and Gate may be the same rows as one of
// their inputs. Every other `out` overlaps no input, since tasks read rows that other tasks write.
#pragma once

#include <cstdint>
#include <variant>

#include "device/constant.h"
#include "device/op_attention.h"
#include "device/op_experts.h"
#include "device/op_recurrent.h"
#include "device/op_streams.h"
#include "device/values.h"
#include "device/weight.h"

namespace cairn {

enum class Activation : uint8_t {
  silu,
  gelu_erf,
  gelu_tanh,
  relu,
  sigmoid,
  tanh,
  softplus,
  clamped_swiglu,  // gpt-oss: both sides are clamped, see op::Gate.
  none,            // A gate is then a plain product.
};
enum class RopeStyle : uint8_t {
  adjacent,  // Rotates elements (2i, 2i+1): "norm".
  halves,    // Rotates elements (i, i + dims/2): "neox".
};

namespace op {

// out[row] = scale * table[token of the row, or its position, or one for all rows]; the table's
// rows are decoded to f32. REQUIRES: the token, or the position, is in [0, table.rows).
struct Embed {
  const Weight* table;
  Rows out;
  float scale = 1.0f;
  bool by_position = false;
  int32_t fixed_row = -1;  // At least 0: this row of the table, whatever the token.
};

// out[row] = the row that was handed in beside the token. REQUIRES: Step::given has them.
struct Given {
  Rows out;
};

// q = x in blocks of 32: s = amax / 127, q = round_to_nearest_even(x / s).
struct Quantize {
  Rows x;
  QuantizedRows out;
};

// out[row][o] = weight's scale * sum over k of weight[o][k] * x[row][k], k ascending (+ bias[o]).
// Quantized weights read `quantized`, others `x`; the other of the two may not exist.
struct MatMul {
  const Weight* weight;
  Rows x;
  QuantizedRows quantized;
  Rows out;
  Constant bias;  // [weight.rows]
};

// Each run of `group` elements of a row by itself: out = x / sqrt(mean(x^2) + epsilon) * gain.
// REQUIRES: width is a multiple of group.
struct RmsNorm {
  Rows x;
  Rows out;
  Constant gain;  // [group], or [width] where `gain_per_element`; absent: ones.
  int32_t group = 0;
  bool gain_per_element = false;
  float epsilon = 0;
};

// The same after the mean m is subtracted: c = x - m, out = c / sqrt(mean(c^2) + epsilon) * gain +
// bias.
struct LayerNorm {
  Rows x;
  Rows out;
  Constant gain;  // As RmsNorm's.
  Constant bias;  // Of the gain's size; absent: none. REQUIRES a gain.
  int32_t group = 0;
  bool gain_per_element = false;
  float epsilon = 0;
};

struct Add {  // out = fma(b, scale, a)
  Rows a, b, out;
  float scale = 1.0f;
};
struct Scale {  // out = x * factor, and then times of_columns
  Rows x, out;
  float factor = 1.0f;
  Constant of_columns;  // [width]
};

struct Clamp {  // out = x within [-limit, limit]; NaN stays NaN
  Rows x, out;
  float limit = 0;
};
struct Activate {  // out = activation(x); relu of NaN is 0
  Rows x, out;
  Activation activation = Activation::silu;
};

// out = activation(gate) * x. clamped_swiglu, with g = min(gate, 7) and
// u = clamp(x, -7, 7): out = (g * sigmoid(1.702 * g)) * (u + 1).
// With `run`, both inputs lie in the same rows as [runs][2][run]; x begins `run` columns after
// `gate`.
struct Gate {
  Rows gate, x, out;
  Activation activation = Activation::silu;
  int32_t run = 0;
};

// The angles of a step's rows: out[row][2i] = cos(position * frequency[i]) * magnitude, [2i+1] the
// sine; computed in f64, rounded once.
struct RopeTable {
  ConstantOf<double> frequencies;  // [pair_count]
  int32_t pair_count = 0;
  double magnitude = 1.0;
  Rows out;  // width 2 * pair_count
};

// Rotates the first 2 * pair_count elements of each head, in place, by the table's row.
// y0 = fma(x0, cos, -(x1 * sin)), y1 = fma(x0, sin, x1 * cos).
struct Rope {
  Rows x;
  Rows table;
  int32_t head_dim = 0;
  int32_t pair_count = 0;
  RopeStyle style = RopeStyle::halves;
};

// x *= 1 + factor * log(1 + floor((position + offset) / original_context)), in place, by row; the
// factor is rounded once from f64. Llama 4, Ministral 3.
struct ScaleByPosition {
  Rows x;
  double factor = 0;
  int32_t original_context = 1;
  int32_t offset = 0;
};

// Of each `period` columns the first `count`: out[row][i * count + j] = x[row][i * period + j].
// REQUIRES: x.width / period rounded up is out.width / count.
struct PickColumns {
  Rows x, out;
  int32_t count = 0, period = 0;
};

// a and b in runs of columns, one of each in turn: out[row] = a[0, a_run), b[0, b_run), a[a_run, …
// REQUIRES: both have equally many runs, or b has one, which then follows each of a's.
struct JoinColumns {
  Rows a, b, out;
  int32_t a_run = 0, b_run = 0;
};

// out[i] = x[row of the i-th wanted output].
struct GatherOutputs {
  Rows x;
  Rows out;
};

}  // namespace op

using Op = std::variant<op::Embed, op::Given, op::Quantize, op::MatMul, op::RmsNorm, op::LayerNorm,
                        op::Add, op::Scale, op::Clamp, op::Activate, op::Gate, op::RopeTable,
                        op::Rope, op::ScaleByPosition, op::StoreKv, op::Attend, op::ShortConv,
                        op::MambaScan, op::Mamba2Scan, op::GatedDeltaScan, op::ChannelDeltaScan,
                        op::ScaleByDots, op::PickColumns, op::JoinColumns, op::Route,
                        op::ExpertMatMul, op::ExpertScale, op::ExpertSum, op::StoreLog, op::LoadLog,
                        op::MixStreams, op::MatchMagnitude, op::GaussianTopk, op::GatherOutputs>;

}  // namespace cairn
