// MPT (MosaicML, 2023): instead of rotating, scores fall with distance, each head's at its own
// slope; norms are around the mean, without a bias; some sizes clamp queries, keys and values.
#include "models/common/decoder.h"

namespace cairn::models {

namespace mpt {

struct Config : SlopedConfig {
  float clamp = 0;  // 0: none.

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(SlopedConfig::read(meta, 0.0f));
    CAIRN_TRY(clamp, meta.real_or("attention.clamp_kqv", 0.0f));
    return Ok{};
  }
};

class Mpt final : public CentredDecoder<Config, CentredLayer<blocks::PlainMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      x = g.add(x, attend(g, layer, blocks::clamped(g, qkv, c_.clamp), l.attn));
      x = g.add(x, blocks::plain_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::gelu_erf));
    }
    return logits(g, x);
  }
};

}  // namespace mpt

extern const Architecture arch_mpt;
constinit const Architecture arch_mpt = architecture<mpt::Mpt>("mpt");

}  // namespace cairn::models
