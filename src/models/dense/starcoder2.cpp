// StarCoder 2 (Lozhkov et al., 2024): norms around the mean, a plain feed-forward block, and a bias
// for every matrix.
#include "models/common/decoder.h"

namespace cairn::models {

namespace starcoder2 {

struct Config : RotaryConfig<RopeStyle::halves> {
  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(windows, read_same_windows(meta, size.layer_count));
    return Ok{};
  }
};

class StarCoder2 final : public CentredDecoder<Config, CentredLayer<blocks::PlainMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      x = g.add(x, rotary_attention(g, layer, norm(g, x, l.attn_norm), l.attn, c_.rope));
      x = g.add(x, blocks::plain_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::gelu_tanh));
    }
    return logits(g, x);
  }
};

}  // namespace starcoder2

extern const Architecture arch_starcoder2;
constinit const Architecture arch_starcoder2 = architecture<starcoder2::StarCoder2>("starcoder2");

}  // namespace cairn::models
