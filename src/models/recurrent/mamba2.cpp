// Mamba-2 (Dao and Gu, 2024) and Codestral Mamba: layers of nothing but its recurrence.
#include "graph/blocks/mamba2.h"

#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  blocks::Mamba2Shape mamba;
};

struct Layer {
  Vector norm;
  blocks::Mamba2 mamba;
};

class Mamba2 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    Config c{std::move(common)};
    CAIRN_TRY(c.mamba, read_mamba2(meta));
    return c;
  }

  std::vector<State> layer_states(int32_t) const override { return {c_.mamba.state()}; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.norm, c_.norm_epsilon);
      x = g.add(x, blocks::mamba2(g, layer, h, l.mamba, c_.mamba, c_.norm_epsilon));
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

extern const Architecture arch_mamba2;
constinit const Architecture arch_mamba2 = architecture<Mamba2>("mamba2");

}  // namespace cairn::models
