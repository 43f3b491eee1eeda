// Mamba (Gu and Dao, 2023) and Falcon Mamba: layers of nothing but the selective scan. Falcon Mamba
// also normalises time steps, B and C, without gains.
#include "graph/blocks/mamba1.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

// Falcon Mamba's own, which files do not say: theirs is that of the norms between the layers.
constexpr float kStepNormEpsilon = 1e-6f;

struct Config : DecoderConfig {
  blocks::Mamba1Shape mamba;
};

struct Layer {
  Vector norm;
  blocks::Mamba1 mamba;
};

class Mamba final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    Config c{std::move(common)};
    CAIRN_TRY(c.mamba, read_mamba1(meta));
    CAIRN_TRY(const bool has_norms, meta.flag_or("ssm.dt_b_c_rms", false));
    if (has_norms) c.mamba.norms = blocks::StepNorms::plain;
    return c;
  }

  std::vector<State> layer_states(int32_t) const override { return {c_.mamba.state()}; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.norm, c_.norm_epsilon);
      x = g.add(x, blocks::mamba1(g, layer, h, l.mamba, c_.mamba, kStepNormEpsilon));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t, Layer& l) override {
    p.vector("attn_norm.weight", l.norm, {c_.size.width});
    l.mamba.parameters(p, c_.size.width, c_.mamba);
  }
};

}  // namespace

extern const Architecture arch_mamba;
constinit const Architecture arch_mamba = architecture<Mamba>("mamba");

}  // namespace cairn::models
