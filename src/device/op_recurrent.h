// The ops that update recurrent states, token by token, and those that log the inputs of such
// updates. A part of the closed list of device/op.h, with its rules.
#pragma once

#include <cstdint>

#include "device/constant.h"
#include "device/values.h"

namespace cairn {

enum class HeadOrder : uint8_t {  // Which of K key heads value head h of H reads.
  grouped,                        // h / (H / K): neighbours share one.
  tiled,                          // h % K
};

namespace op {

// Causal convolution of each channel over time: out[t][c] = activation(bias[c] + sum over j of
// weight[c][j] * x[t - (kernel-1) + j][c]), j ascending, starting from the bias (or 0), fma.
// Its tail (the last kernel-1 inputs, oldest first, [kernel-1][channels]) is part of the state.
struct ShortConv {
  Rows x, out;
  Constant weight;  // [channels][kernel]
  Constant bias;    // [channels]
  int32_t kernel = 0;
  bool silu = true;
  int32_t state;  // Which of the step's state tensors holds the tail.
};

// Mamba-1's selective scan (Gu and Dao, 2023). For each channel c, token by token:
// dt = softplus(dt_raw[c]); s[n][c] = fma(x[c] * dt, B[n], s[n][c] * exp(dt * a[c][n])); y[c] = sum
// over n of s[n][c] * C[n] (fma, ascending), then y[c] = fma(d[c], x[c], y[c]).
// State: [state_size][channels] f32.
struct MambaScan {
  Rows x;      // [tokens, channels]
  Rows b, c;   // [tokens, state_size]
  Rows dt;     // [tokens, channels], with its bias, before softplus
  Rows out;    // [tokens, channels]
  Constant a;  // [channels][state_size], negative
  Constant d;  // [channels]
  int32_t state_size = 0;
  int32_t state;  // Which of the step's state tensors.
};

// Mamba-2's recurrence (Dao and Gu, 2024). For each head h, token by token:
// dt = softplus(dt_raw + dt_bias[h]); decay = exp(dt * a[h]);
// s[n][p] = fma(x[p] * dt, B[n], s[n][p] * decay); y[p] = sum over n of s[n][p] * C[n] (fma,
// ascending), then y[p] = fma(d[h], x[p], y[p]). State: [head_count][state_size][head_dim] f32.
struct Mamba2Scan {
  Rows x;            // [tokens, head_count * head_dim]
  Rows b, c;         // [tokens, group_count * state_size]; head h reads group h / (heads per group)
  Rows dt;           // [tokens, head_count], before bias and softplus
  Rows out;          // [tokens, head_count * head_dim]
  Constant a;        // [head_count], negative
  Constant d;        // [head_count]
  Constant dt_bias;  // [head_count]
  int32_t head_count = 0, head_dim = 0, state_size = 0, group_count = 1;
  int32_t state;  // Which of the step's state tensors.
};

// The gated delta rule (Yang et al., 2024). For each value head h, token by token:
// decay = exp(softplus(dt_raw + dt_bias[h]) * a[h]); rate = sigmoid(rate_raw);
// kv[p] = sum over n of s[n][p] * k[n] (fma, ascending); d[p] = fma(kv[p], -decay, v[p]) * rate;
// s[n][p] = fma(k[n], d[p], s[n][p] * decay); out[p] = sum over n of s[n][p] * q[n] (fma,
// ascending). q and k come normalised and scaled. State: [head_count][key_dim][value_dim] f32.
// REQUIRES: key_head_count divides head_count.
struct GatedDeltaScan {
  Rows q, k;         // [tokens, key_head_count * key_dim]
  Rows v, out;       // [tokens, head_count * value_dim]
  Rows dt, rate;     // [tokens, head_count], before bias, softplus and sigmoid
  Constant a;        // [head_count], negative
  Constant dt_bias;  // [head_count]
  int32_t head_count = 0, key_head_count = 0, key_dim = 0, value_dim = 0;
  HeadOrder order = HeadOrder::grouped;
  int32_t state;  // Which of the step's state tensors.

  int32_t key_head(int32_t head) const {
    return order == HeadOrder::tiled ? head % key_head_count : head / (head_count / key_head_count);
  }
};

// The delta rule with a decay for each channel of the keys: RWKV-7's (Peng et al., 2025) and Kimi
// Delta Attention's (Kimi Team, 2025). For each head h, token by token:
// decay[n] = exp(log_decay[n] * a[h]); known[p] = sum over n of s[n][p] * asked[n] (fma,
// ascending); s[n][p] = fma(erased[n], -known[p], fma(written[n], v[p], s[n][p] * decay[n]));
// out[p] = sum over n of s[n][p] * q[n] (fma, ascending). Where there are `rate` rows, asked[n] =
// k[n] * decay[n] and written[n] = erased[n] = k[n] * sigmoid(rate); else written is k, and the
// others are given. State: [head_count][key_dim][value_dim] f32. REQUIRES: either `rate`, or
// `asked` and `erased`.
struct ChannelDeltaScan {
  Rows q, k, log_decay;  // [tokens, head_count * key_dim]
  Rows v, out;           // [tokens, head_count * value_dim]
  Rows rate;             // [tokens, head_count], before the sigmoid
  Rows asked, erased;    // [tokens, head_count * key_dim]
  Constant a;            // [head_count]; absent: ones.
  int32_t head_count = 0, key_dim = 0, value_dim = 0;
  int32_t state;  // Which of the step's state tensors.
};

// Each head of x times a number: out[p] = x[p] * dot, dot = sum over n of (a[n] * b[n]) * gain[n]
// (fma, ascending). RWKV-7's bonus term, which bypasses the recurrence.
struct ScaleByDots {
  Rows a, b, x, out;  // Of equal width.
  Constant gain;      // [width]
  int32_t head_dim = 0;
};

// Stores each row in the log of its sequence at the row's position, unless the page there is
// kNoPage. Inputs of recurrent ops are logged, so that their states can be replayed without
// weights.
struct StoreLog {
  Rows x;
  int32_t log_plane;  // Which of the step's log planes.
};

// Reads each row from the log. REQUIRES: the log has it.
struct LoadLog {
  Rows out;
  int32_t log_plane;
};

}  // namespace op
}  // namespace cairn
