// gpt-oss (OpenAI, 2025): experts with biases and a clamped gate, windows in every other layer, and
// in every layer a sink, a logit to which a head can give its weight instead of to a position.
#include "models/common/decoder.h"

namespace cairn::models {

namespace gpt_oss {

struct Config : DecoderConfig {
  RopeSpec rope;
  MixtureConfig mixture;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig::read(meta));
    CAIRN_TRY(windows, read_windows(meta, size.layer_count, 2));
    CAIRN_TRY(rope, read_rope(meta, key_dim, RopeStyle::halves, YarnRange::real));
    mixture.router = {.score = RouterScore::softmax_chosen};
    CAIRN_TRY(mixture.expert_count, meta.count("expert_count"));
    CAIRN_TRY(mixture.router.expert_used_count, meta.count("expert_used_count"));
    CAIRN_TRY(mixture.expert_width, meta.count("expert_feed_forward_length"));
    return Ok{};
  }
};

struct Layer : NormedAttention<Vector>, NormedExperts<Vector> {
  Vector sinks;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attention_parameters(p, c, layer);
    p.vector("attn_sinks.weight", sinks, {c.head_counts[size_t(layer)]});
    expert_parameters(p, c, c.mixture, "post_attention_norm");
  }
};

class GptOss final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      AttentionSpec scores = c_.scores(layer);
      scores.sinks = l.sinks;
      x = g.add(x, l.attn.attend(g, layer, rotate(g, qkv, c_.rope), scores));
      const Tensor m = norm(g, x, l.mlp_norm);
      const RouterSpec& router = c_.mixture.router;
      x = g.add(x, blocks::mixture(g, m, l.experts, router, Activation::clamped_swiglu));
    }
    return logits(g, x);
  }
};

}  // namespace gpt_oss

extern const Architecture arch_gpt_oss;
constinit const Architecture arch_gpt_oss = architecture<gpt_oss::GptOss>("gpt-oss");

}  // namespace cairn::models
