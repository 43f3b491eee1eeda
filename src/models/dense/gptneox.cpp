// GPT-NeoX and Pythia (Black et al., 2022): attention and feed-forward have norms of their own and,
// in most sizes, read the same stream and are added together; a part of each head rotates.
#include "models/common/decoder.h"

namespace cairn::models {

namespace gptneox {

struct Config : RotaryConfig<RopeStyle::halves> {
  bool is_parallel = true;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(is_parallel, meta.flag_or("use_parallel_residual", true));
    return Ok{};
  }
};

class GptNeoX final : public CentredDecoder<Config, CentredLayer<blocks::PlainMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.attn_norm);
      const Tensor attended = g.add(x, rotary_attention(g, layer, h, l.attn, c_.rope));
      const Tensor m = norm(g, c_.is_parallel ? x : attended, l.mlp_norm);
      x = g.add(attended, blocks::plain_mlp(g, m, l.mlp, Activation::gelu_erf));
    }
    return logits(g, x);
  }
};

}  // namespace gptneox

extern const Architecture arch_gptneox;
constinit const Architecture arch_gptneox = architecture<gptneox::GptNeoX>("gptneox");

}  // namespace cairn::models
