// Qwen 3 with experts (Yang et al., 2025): the dense model with a mixture of experts in every
// layer. The router's softmax runs over all experts; the chosen weights are normalised.
#include "models/common/decoder.h"

namespace cairn::models {

namespace qwen3moe {

struct Config : RotaryConfig<RopeStyle::halves> {
  MixtureConfig mixture;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    mixture.router = {.score = RouterScore::softmax_all, .normalize = true};
    CAIRN_TRY(mixture.expert_count, meta.count("expert_count"));
    CAIRN_TRY(mixture.router.expert_used_count, meta.count("expert_used_count"));
    CAIRN_TRY(mixture.expert_width, meta.count("expert_feed_forward_length"));
    return Ok{};
  }
};

struct Layer : NormedAttention<Vector>, NormedExperts<Vector> {
  blocks::QkNorms qk_norms;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attention_parameters(p, c, layer);
    qk_norms.parameters(p, c.key_dim, c.key_dim);
    expert_parameters(p, c, c.mixture);
  }
};

class Qwen3Moe final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      const blocks::Qkv normed = norm(g, qkv, l.qk_norms, c_.key_dim);
      x = g.add(x, attend(g, layer, rotate(g, normed, c_.rope), l.attn));
      const Tensor m = norm(g, x, l.mlp_norm);
      x = g.add(x, blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu));
    }
    return logits(g, x);
  }
};

}  // namespace qwen3moe

extern const Architecture arch_qwen3moe;
constinit const Architecture arch_qwen3moe = architecture<qwen3moe::Qwen3Moe>("qwen3moe");

}  // namespace cairn::models
