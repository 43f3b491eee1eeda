// Kimi Linear (Kimi Team, 2025): of four layers three mix by a delta rule with a decay for each
// channel behind short convolutions, one by latent attention without positions; behind the first
// layers experts beside one that every token uses.
#include <cmath>

#include "graph/blocks/attention.h"
#include "models/common/decoder.h"
#include "models/common/latent_shape.h"
#include "models/common/sparse_block.h"

namespace cairn::models {

namespace kimi_linear {

// Files do not say these: of the norms of latent rows, and added to the squared length of a query
// or a key.
constexpr float kLatentEpsilon = 1e-6f, kLengthEpsilon = 1e-6f;

struct Config : HybridConfig {
  blocks::LatentShape latent;
  blocks::LatentSpec spec;
  MixtureConfig mixture;
  int32_t head_dim = 0, conv_kernel = 0;  // Of the delta rule.

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(HybridConfig::read(meta));
    CAIRN_TRY(latent, read_latent_shape(meta, *this));
    CAIRN_TRY(mixture, read_mixture(meta, {.score = RouterScore::sigmoid, .normalize = true}));
    CAIRN_TRY(head_dim, meta.count("kda.head_dim"));
    CAIRN_TRY(conv_kernel, meta.count("ssm.conv_kernel"));
    spec.scale = softmax_scale(latent.plain_dim + latent.rotated_dim);
    spec.norm_epsilon = kLatentEpsilon;
    return Ok{};
  }

  int32_t delta_width() const { return head_counts[0] * head_dim; }
  blocks::QkvWidths delta_widths() const { return {delta_width(), delta_width(), delta_width()}; }
};

struct DeltaAttention {
  blocks::QkvProjections in;
  Weight decay_down, decay_up, rate, gate_down, gate_up, out;
  Vector q_conv, k_conv, v_conv, dt_bias, a, norm;
};

struct Layer {
  Vector mixer_norm, mlp_norm;
  blocks::LatentAttention attn;
  DeltaAttention delta;
  SparseBlock mlp;
};

class KimiLinear final : public Decoder<Config, Layer> {
 public:
  // The tails of three convolutions, then the recurrence's state.
  std::vector<State> layer_states(int32_t layer) const override {
    if (c_.is_attention(layer)) return {c_.latent.state()};
    const int64_t tail = int64_t(c_.conv_kernel - 1) * c_.delta_width();
    return {State::recurrent({tail, tail, tail, int64_t(c_.delta_width()) * c_.head_dim})};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.mixer_norm);
      x = g.add(x, c_.is_attention(layer)
                       ? blocks::latent_attention(g, layer, h, l.attn, c_.latent, c_.spec)
                       : delta_attention(g, layer, h));
      const Tensor m = norm(g, x, l.mlp_norm);
      x = l.mlp.add_to(g, layer, x, m, c_.mixture);
    }
    return logits(g, x);
  }

 private:
  Tensor delta_attention(Graph& g, int32_t layer, Tensor x) const {
    const DeltaAttention& l = layers_[size_t(layer)].delta;
    const auto [q, k, v] = l.in.project(g, x, c_.delta_widths());
    const auto mixed = [&](Tensor projected, const Vector& conv, int32_t state) {
      return g.short_conv(layer, projected, conv, {}, c_.conv_kernel, true, state);
    };
    // A root mean square of 1 is a length of sqrt(head_dim).
    const auto head_dim = float(c_.head_dim);
    const auto normal = [&](Tensor head, float scale) {
      return g.scale(g.rms_norm(head, {}, kLengthEpsilon / head_dim, c_.head_dim), scale);
    };
    const Tensor decay = g.matmul(l.decay_up, g.matmul(l.decay_down, x), l.dt_bias);
    const ChannelDeltaInputs inputs{
        .q = normal(mixed(q, l.q_conv, 0), 1.0f / head_dim),
        .k = normal(mixed(k, l.k_conv, 1), float(1.0 / std::sqrt(double(head_dim)))),
        .v = mixed(v, l.v_conv, 2),
        .log_decay = g.activate(decay, Activation::softplus),
        .rate = g.matmul(l.rate, x),
        .asked = {},
        .erased = {}};
    const ChannelDeltaSpec spec{.head_count = c_.head_counts[0],
                                .key_dim = c_.head_dim,
                                .value_dim = c_.head_dim,
                                .a = l.a};
    const Tensor y = g.channel_delta_scan(layer, inputs, spec, 3);
    const Tensor normed = g.rms_norm(y, l.norm, c_.norm_epsilon, c_.head_dim);
    const Tensor gate = g.matmul(l.gate_up, g.matmul(l.gate_down, x));
    return g.matmul(l.out, g.gate(gate, normed, Activation::sigmoid));
  }

  void delta_parameters(Parameters& p, DeltaAttention& l) const {
    const int32_t width = c_.size.width, inner = c_.delta_width();
    l.in.parameters(p, width, c_.delta_widths());
    p.vector("ssm_conv1d_q.weight", l.q_conv, {c_.conv_kernel, 1, inner});
    p.vector("ssm_conv1d_k.weight", l.k_conv, {c_.conv_kernel, 1, inner});
    p.vector("ssm_conv1d_v.weight", l.v_conv, {c_.conv_kernel, 1, inner});
    p.matrix("ssm_f_a.weight", l.decay_down, {width, c_.head_dim});
    p.matrix("ssm_f_b.weight", l.decay_up, {c_.head_dim, inner});
    p.vector("ssm_dt.bias", l.dt_bias, {inner});
    p.vector("ssm_a", l.a, {1, c_.head_counts[0]});
    p.matrix("ssm_beta.weight", l.rate, {width, c_.head_counts[0]});
    p.matrix("ssm_g_a.weight", l.gate_down, {width, c_.head_dim});
    p.matrix("ssm_g_b.weight", l.gate_up, {c_.head_dim, inner});
    p.vector("ssm_norm.weight", l.norm, {c_.head_dim});
    p.matrix("attn_output.weight", l.out, {inner, width});
  }

  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.mixer_norm, {c_.size.width});
    if (c_.is_attention(layer)) {
      l.attn.parameters(p, c_.size.width, c_.latent);
    } else {
      delta_parameters(p, l.delta);
    }
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.parameters(p, layer, c_.size.width, c_.mlp_width, c_.mixture);
  }
};

}  // namespace kimi_linear

extern const Architecture arch_kimi_linear;
constinit const Architecture arch_kimi_linear =
    architecture<kimi_linear::KimiLinear>("kimi-linear");

}  // namespace cairn::models
