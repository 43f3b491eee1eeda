// Phi-3, 3.5 and 4 (Abdin et al., 2024): Llama's shape with joined matrices. The long ones have a
// factor for each frequency, and others where the context is no longer than the original one
// (LongRoPE, Ding et al., 2024).
#include "models/common/decoder.h"
#include "models/common/long_rope.h"

namespace cairn::models {

namespace phi3 {

struct Config : RotaryConfig<RopeStyle::halves> {
  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(windows, read_same_windows(meta, size.layer_count));
    return Ok{};
  }
};

class Phi3 final : public Decoder<Config, RmsLayer<blocks::JoinedMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    const RopeSpec rope = long_rope_.scaled(c_.rope, c_.reads_long_texts());
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      x = g.add(x, rotary_attention(g, layer, norm(g, x, l.attn_norm), l.attn, rope));
      x = g.add(x, blocks::gated_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::silu));
    }
    return logits(g, x);
  }

 private:
  void global_parameters(Parameters& p) override {
    long_rope_.parameters(p, int64_t(c_.rope.frequencies.size()));
  }

  LongRope long_rope_;
};

}  // namespace phi3

extern const Architecture arch_phi3;
constinit const Architecture arch_phi3 = architecture<phi3::Phi3>("phi3");

}  // namespace cairn::models
