// Qwen 1.5 and 2 with experts (Yang et al., 2024): experts in every layer, whose weights are left
// as they are, beside one that every token uses as much as a gate of its own says.
#include "models/common/decoder.h"

namespace cairn::models {

namespace qwen2moe {

struct Config : RotaryConfig<RopeStyle::halves> {
  MixtureConfig mixture;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(mixture, read_mixture(meta, {}));
    return expect_experts(meta, mixture);
  }
};

struct Layer : NormedAttention<Vector>, NormedExperts<Vector> {
  blocks::SharedExpert shared;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const int32_t shared_width = c.mixture.shared_width;
    attention_parameters(p, c, layer);
    expert_parameters(p, c, c.mixture);
    shared.parameters(p, c.size.width, shared_width > 0 ? shared_width : c.mlp_width);
  }
};

class Qwen2Moe final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      x = g.add(x, rotary_attention(g, layer, norm(g, x, l.attn_norm), l.attn, c_.rope));
      const Tensor m = norm(g, x, l.mlp_norm);
      const Tensor shared = blocks::shared_expert(g, m, l.shared, Activation::silu);
      const Tensor routed = blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu);
      x = g.add(x, g.add(routed, shared));
    }
    return logits(g, x);
  }
};

}  // namespace qwen2moe

extern const Architecture arch_qwen2moe;
constinit const Architecture arch_qwen2moe = architecture<qwen2moe::Qwen2Moe>("qwen2moe");

}  // namespace cairn::models
