// PLaMo 2 (Preferred Networks, 2025): layers mix by Mamba-2's recurrence, with time steps, B and C
// made of what is behind the convolution and normalised, or by attention; norms stand before and
// behind each part.
#include <algorithm>

#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace plamo2 {

struct Config : RotaryConfig<RopeStyle::halves, HybridConfig> {
  int32_t inner_width = 0, mixer_head_count = 0, state_size = 0, conv_kernel = 0;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(inner_width, meta.count("ssm.inner_size"));
    CAIRN_TRY(mixer_head_count, meta.count("ssm.time_step_rank"));
    CAIRN_TRY(state_size, meta.count("ssm.state_size"));
    CAIRN_TRY(conv_kernel, meta.count("ssm.conv_kernel"));
    if (inner_width % mixer_head_count != 0) {
      return fail(ErrorCode::invalid_data, "{}: expected a divisor of {}, found {}",
                  meta.key("ssm.time_step_rank"), inner_width, mixer_head_count);
    }
    return Ok{};
  }

  int32_t mixer_head_dim() const { return inner_width / mixer_head_count; }
  // Files do not say it.
  int32_t step_rank() const { return std::max(64, size.width / 16); }
};

struct Mixer {
  Weight in, selection, step, out;
  Vector conv, step_bias, a, d, step_norm, b_norm, c_norm;
};

struct Layer {
  Vector mixer_norm, post_mixer_norm, mlp_norm, post_mlp_norm;
  blocks::Projections attn;
  blocks::QkNorms qk_norms;  // Each head has gains of its own.
  Mixer mixer;
  blocks::JoinedMlp mlp;
};

class Plamo2 final : public Decoder<Config, Layer> {
 public:
  // A recurrent layer: the convolution's tail, then the recurrence's state.
  std::vector<State> layer_states(int32_t layer) const override {
    if (c_.is_attention(layer)) return {c_.attention(layer).state()};
    return {State::recurrent(
        {int64_t(c_.conv_kernel - 1) * c_.inner_width, int64_t(c_.state_size) * c_.inner_width})};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.mixer_norm);
      const Tensor y = c_.is_attention(layer) ? attention(g, layer, h) : mix(g, layer, h);
      x = g.add(x, norm(g, y, l.post_mixer_norm));
      const Tensor m = norm(g, x, l.mlp_norm);
      x = g.add(x, norm(g, blocks::gated_mlp(g, m, l.mlp, Activation::silu), l.post_mlp_norm));
    }
    return logits(g, x);
  }

 private:
  Tensor attention(Graph& g, int32_t layer, Tensor x) const {
    const Layer& l = layers_[size_t(layer)];
    const blocks::Qkv qkv = norm(g, project(g, layer, x, l.attn), l.qk_norms, c_.key_dim);
    return attend(g, layer, rotate(g, qkv, c_.rope), l.attn);
  }

  Tensor mix(Graph& g, int32_t layer, Tensor x) const {
    const Mixer& l = layers_[size_t(layer)].mixer;
    const int32_t head_dim = c_.mixer_head_dim(), states = c_.state_size;
    // Of each head first what gates, then what is mixed.
    const Tensor projected = g.matmul(l.in, x);
    const Tensor z = g.pick_columns(projected, 0, head_dim, 2 * head_dim);
    const Tensor mixed =
        g.short_conv(layer, g.pick_columns(projected, head_dim, head_dim, 2 * head_dim), l.conv, {},
                     c_.conv_kernel);
    const Tensor selected = g.matmul(l.selection, mixed);
    const Tensor b = norm(g, g.columns(selected, 0, states), l.b_norm);
    const Tensor c = norm(g, g.columns(selected, states, states), l.c_norm);
    const Tensor step = norm(g, g.columns(selected, 2 * states, c_.step_rank()), l.step_norm);
    const Tensor y = g.mamba2_scan(layer, mixed, b, c, g.matmul(l.step, step),
                                   {.head_count = c_.mixer_head_count,
                                    .head_dim = head_dim,
                                    .state_size = states,
                                    .a = l.a,
                                    .d = l.d,
                                    .dt_bias = l.step_bias});
    return g.matmul(l.out, g.gate(z, y, Activation::silu));
  }

  void mixer_parameters(Parameters& p, Mixer& l) const {
    const int32_t width = c_.size.width, inner = c_.inner_width, heads = c_.mixer_head_count;
    p.matrix("ssm_in.weight", l.in, {width, 2 * inner});
    p.vector("ssm_conv1d.weight", l.conv, {c_.conv_kernel, inner});
    p.matrix("ssm_x.weight", l.selection, {inner, c_.step_rank() + 2 * c_.state_size});
    p.matrix("ssm_dt.weight", l.step, {c_.step_rank(), heads});
    p.vector("ssm_dt.bias", l.step_bias, {heads});
    p.vector("ssm_a", l.a, {heads});
    p.vector("ssm_d", l.d, {heads});
    p.vector("ssm_dt_norm", l.step_norm, {c_.step_rank()});
    p.vector("ssm_b_norm", l.b_norm, {c_.state_size});
    p.vector("ssm_c_norm", l.c_norm, {c_.state_size});
    p.matrix("ssm_out.weight", l.out, {inner, width});
  }

  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const int32_t width = c_.size.width;
    p.vector("attn_norm.weight", l.mixer_norm, {width});
    if (c_.is_attention(layer)) {
      const blocks::AttentionShape shape = c_.attention(layer);
      p.matrix("attn_qkv.weight", l.attn.qkv, {width, shape.widths().all()});
      p.matrix("attn_output.weight", l.attn.out, {shape.head_count * shape.value_dim, width});
      p.vector("attn_q_norm.weight", l.qk_norms.q, {shape.key_dim, shape.head_count});
      p.vector("attn_k_norm.weight", l.qk_norms.k, {shape.key_dim, shape.kv_head_count});
    } else {
      mixer_parameters(p, l.mixer);
    }
    p.vector("post_attention_norm", l.post_mixer_norm, {width});
    p.vector("ffn_norm.weight", l.mlp_norm, {width});
    l.mlp.parameters(p, width, c_.mlp_width);
    p.vector("post_ffw_norm", l.post_mlp_norm, {width});
  }
};

}  // namespace plamo2

extern const Architecture arch_plamo2;
constinit const Architecture arch_plamo2 = architecture<plamo2::Plamo2>("plamo2");

}  // namespace cairn::models
