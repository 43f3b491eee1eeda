// Mamba-2 (Dao and Gu, 2024) and Codestral Mamba: layers of nothing but its recurrence.
#include "graph/blocks/mamba2.h"

#include "models/common/decoder.h"

namespace cairn::models {

namespace mamba2 {

struct Config : HybridConfig {
  blocks::Mamba2Shape mamba;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(HybridConfig::read(meta));
    CAIRN_TRY(mamba, read_mamba2(meta));
    return Ok{};
  }
};

struct Layer {
  Vector norm;
  blocks::Mamba2 mamba;

  void parameters(Parameters& p, const Config& c, int32_t) {
    p.vector("attn_norm.weight", norm, {c.size.width});
    mamba.parameters(p, c.size.width, c.mamba);
  }
};

class Mamba2 final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t) const override { return {c_.mamba.state()}; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.norm);
      x = g.add(x, blocks::mamba2(g, layer, h, l.mamba, c_.mamba, c_.norm_epsilon));
    }
    return logits(g, x);
  }
};

}  // namespace mamba2

extern const Architecture arch_mamba2;
constinit const Architecture arch_mamba2 = architecture<mamba2::Mamba2>("mamba2");

}  // namespace cairn::models
