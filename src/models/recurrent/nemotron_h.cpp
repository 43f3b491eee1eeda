// Nemotron-H (NVIDIA, 2025) and Nemotron 3: a layer is one thing alone, Mamba-2 or attention
// without positions or a feed-forward block, whose activation is the square of relu. In place of
// the latter may stand a mixture of experts of the same kind with a shared one; the larger models
// narrow the stream before their experts and widen it behind them.
#include "graph/blocks/attention.h"
#include "graph/blocks/mamba2.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace nemotron_h {

struct Config : HybridConfig {
  blocks::Mamba2Shape mamba;
  std::vector<int32_t> mlp_widths;  // By layer; 0: not a feed-forward layer.
  int32_t expert_count = 0, expert_used_count = 0, expert_width = 0, shared_expert_width = 0;
  int32_t latent_width = 0;  // Of what the experts see; 0: the whole stream.
  bool normalizes_weights = false;
  float weights_scale = 1;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(HybridConfig::read(meta));
    CAIRN_TRY(mlp_widths, meta.per_layer("feed_forward_length", size.layer_count));
    CAIRN_TRY(mamba, read_mamba2(meta));
    CAIRN_TRY(read_experts(meta));
    CAIRN_TRY(attention_scale, meta.real_or("attention.scale", attention_scale));
    return drop_mtp_layers(meta, *this);
  }
  Status read_experts(const gguf::Metadata& meta) {
    CAIRN_TRY(expert_count, meta.count_or("expert_count", 0));
    if (expert_count == 0) return Ok{};
    CAIRN_TRY(expert_used_count, meta.count("expert_used_count"));
    CAIRN_TRY(expert_width, meta.count("expert_feed_forward_length"));
    CAIRN_TRY(shared_expert_width, meta.count("expert_shared_feed_forward_length"));
    CAIRN_TRY(latent_width, meta.count_or("moe_latent_size", 0));
    CAIRN_TRY(normalizes_weights, meta.flag_or("expert_weights_norm", false));
    CAIRN_TRY(weights_scale, meta.real_or("expert_weights_scale", 1.0f));
    CAIRN_TRY(const int32_t group_count, meta.count_or("expert_group_count", 1));
    if (group_count > 1) {
      return fail(ErrorCode::unsupported, "{}: expected at most 1, found {}",
                  meta.key("expert_group_count"), group_count);
    }
    return Ok{};
  }

  bool is_mlp(int32_t layer) const { return mlp_widths[size_t(layer)] > 0; }
  bool is_attention(int32_t layer) const {
    return !is_mlp(layer) && HybridConfig::is_attention(layer);
  }
};

// down(relu(up x)^2)
struct Mlp {
  Weight up, down;
  Vector up_bias, down_bias;
};

struct Experts {
  Weight router, up, down, narrow, widen;
  Vector selection_bias;
};

struct Layer {
  Vector norm;
  blocks::Projections attn;
  blocks::Mamba2 mamba;
  Mlp mlp;  // The shared expert where there are experts.
  Experts experts;
};

Tensor relu_squared(Graph& g, Tensor x) {
  return g.gate(x, x, Activation::relu);
}

class NemotronH final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t layer) const override {
    if (c_.is_mlp(layer)) return {};
    return {c_.is_attention(layer) ? c_.attention(layer).state() : c_.mamba.state()};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.norm);
      if (c_.is_mlp(layer)) {
        x = g.add(x, c_.expert_count > 0 ? mixture(g, l, h) : mlp(g, l.mlp, h));
      } else if (c_.is_attention(layer)) {
        x = g.add(x, attention(g, layer, h));
      } else {
        x = g.add(x, blocks::mamba2(g, layer, h, l.mamba, c_.mamba, c_.norm_epsilon));
      }
    }
    return logits(g, x);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const int32_t width = c_.size.width;
    p.vector("attn_norm.weight", l.norm, {width});
    if (c_.is_attention(layer)) {
      l.attn.parameters(p, width, c_.attention(layer));
    } else if (!c_.is_mlp(layer)) {
      l.mamba.parameters(p, width, c_.mamba);
    } else if (c_.expert_count > 0) {
      expert_parameters(p, l);
    } else {
      const int32_t inner = c_.mlp_widths[size_t(layer)];
      p.matrix("ffn_up.weight", l.mlp.up, {width, inner});
      p.matrix("ffn_down.weight", l.mlp.down, {inner, width});
      p.optional_vector("ffn_up.bias", l.mlp.up_bias, {inner});
      p.optional_vector("ffn_down.bias", l.mlp.down_bias, {width});
    }
  }

  void expert_parameters(Parameters& p, Layer& l) const {
    const int32_t width = c_.size.width;
    const int32_t seen = c_.latent_width > 0 ? c_.latent_width : width;
    p.matrix("ffn_gate_inp.weight", l.experts.router, {width, c_.expert_count});
    p.vector("exp_probs_b.bias", l.experts.selection_bias, {c_.expert_count});
    p.matrix("ffn_up_exps.weight", l.experts.up, {seen, c_.expert_width, c_.expert_count});
    p.matrix("ffn_down_exps.weight", l.experts.down, {c_.expert_width, seen, c_.expert_count});
    if (c_.latent_width > 0) {
      p.matrix("ffn_latent_down.weight", l.experts.narrow, {width, seen});
      p.matrix("ffn_latent_up.weight", l.experts.widen, {seen, width});
    }
    p.matrix("ffn_up_shexp.weight", l.mlp.up, {width, c_.shared_expert_width});
    p.matrix("ffn_down_shexp.weight", l.mlp.down, {c_.shared_expert_width, width});
  }

  Tensor attention(Graph& g, int32_t layer, Tensor h) const {
    const blocks::Projections& attn = layers_[size_t(layer)].attn;
    return attend(g, layer, project(g, layer, h, attn), attn);
  }

  static Tensor mlp(Graph& g, const Mlp& weights, Tensor h) {
    const Tensor up = g.matmul(weights.up, h, weights.up_bias);
    return g.matmul(weights.down, relu_squared(g, up), weights.down_bias);
  }

  Tensor mixture(Graph& g, const Layer& l, Tensor h) const {
    const Experts& experts = l.experts;
    const Routing routing =
        g.route(g.matmul(experts.router, h), {.expert_used_count = c_.expert_used_count,
                                              .score = RouterScore::sigmoid,
                                              .normalize = c_.normalizes_weights,
                                              .scale = c_.weights_scale,
                                              .selection_bias = experts.selection_bias});
    const Tensor seen = c_.latent_width > 0 ? g.matmul(experts.narrow, h) : h;
    const Tensor inner = relu_squared(g, g.expert_matmul(experts.up, seen, routing, false));
    Tensor routed = g.expert_sum(g.expert_matmul(experts.down, inner, routing, true), routing);
    if (c_.latent_width > 0) routed = g.matmul(experts.widen, routed);
    return g.add(routed, mlp(g, l.mlp, h));
  }
};

}  // namespace nemotron_h

extern const Architecture arch_nemotron_h;
constinit const Architecture arch_nemotron_h = architecture<nemotron_h::NemotronH>("nemotron_h");

}  // namespace cairn::models
