// Mamba (Gu and Dao, 2023) and Falcon Mamba: layers of nothing but the selective scan. Falcon Mamba
// also normalises time steps, B and C, without gains.
#include "graph/blocks/mamba1.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace mamba {

// Falcon Mamba's own, which files do not say: theirs is that of the norms between the layers.
constexpr float kStepNormEpsilon = 1e-6f;

struct Config : HybridConfig {
  blocks::Mamba1Shape mamba;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(HybridConfig::read(meta));
    CAIRN_TRY(mamba, read_mamba1(meta));
    CAIRN_TRY(const bool has_norms, meta.flag_or("ssm.dt_b_c_rms", false));
    if (has_norms) mamba.norms = blocks::StepNorms::plain;
    return Ok{};
  }
};

struct Layer {
  Vector norm;
  blocks::Mamba1 mamba;

  void parameters(Parameters& p, const Config& c, int32_t) {
    p.vector("attn_norm.weight", norm, {c.size.width});
    mamba.parameters(p, c.size.width, c.mamba);
  }
};

class Mamba final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t) const override { return {c_.mamba.state()}; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.norm);
      x = g.add(x, blocks::mamba1(g, layer, h, l.mamba, c_.mamba, kStepNormEpsilon));
    }
    return logits(g, x);
  }
};

}  // namespace mamba

extern const Architecture arch_mamba;
constinit const Architecture arch_mamba = architecture<mamba::Mamba>("mamba");

}  // namespace cairn::models
