// gpt-oss (OpenAI, 2025): experts with biases and a clamped gate, windows in every other layer, and
// in every layer a sink, a logit to which a head can give its weight instead of to a position.
#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  std::vector<int32_t> windows;  // By layer.
  RopeSpec rope;
  int32_t expert_count = 0, expert_used_count = 0, expert_width = 0;
};

struct Layer {
  Vector attn_norm, sinks, mlp_norm;
  blocks::Projections attn;
  blocks::Experts experts;
};

class GptOss final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_decoder_config(meta));
    CAIRN_TRY(c.windows, read_windows(meta, c.size.layer_count, 2));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves, YarnRange::real));
    CAIRN_TRY(c.expert_count, meta.count("expert_count"));
    CAIRN_TRY(c.expert_used_count, meta.count("expert_used_count"));
    CAIRN_TRY(c.expert_width, meta.count("expert_feed_forward_length"));
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state(c_.windows[size_t(layer)])};
  }

  Tensor forward(Graph& g) const override {
    const RouterSpec router{.expert_used_count = c_.expert_used_count,
                            .score = RouterScore::softmax_chosen};
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a =
          g.attend(layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
                   {.head_count = c_.head_counts[size_t(layer)],
                    .scale = softmax_scale(c_.key_dim),
                    .window = c_.windows[size_t(layer)],
                    .sinks = l.sinks});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::mixture(g, m, l.experts, router, Activation::clamped_swiglu));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("attn_sinks.weight", l.sinks, {c_.head_counts[size_t(layer)]});
    p.vector("post_attention_norm.weight", l.mlp_norm, {c_.size.width});
    l.experts.parameters(p, c_.size.width, c_.expert_width, c_.expert_count);
  }
};

}  // namespace

extern const Architecture arch_gpt_oss;
constinit const Architecture arch_gpt_oss = architecture<GptOss>("gpt-oss");

}  // namespace cairn::models
