// Phi-3.5 MoE (Abdin et al., 2024): experts in every layer, weighed by SparseMixer (Liu et al.,
// 2024); norms are around the mean; every matrix outside the experts has a bias.
#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/layer_norm.h"
#include "models/common/decoder.h"
#include "models/common/long_rope.h"
#include "models/common/mixture.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  int32_t original_context = 0;
  int32_t window = 0;
  MixtureConfig mixture;
};

struct Layer {
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::Experts experts;
};

class PhiMoe final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_attending_config(meta));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(c.original_context,
              meta.count_or("rope.scaling.original_context_length", c.size.context_length));
    CAIRN_TRY(c.window, meta.count_or("attention.sliding_window", 0));
    CAIRN_TRY(c.mixture, read_mixture(meta, {.score = RouterScore::sparse_mixer}));
    CAIRN_TRY(expect_experts(meta, c.mixture));
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state(c_.window)};
  }

  Tensor forward(Graph& g) const override {
    const RopeSpec rope = long_rope_.scaled(c_.rope, g.context_tokens() > c_.original_context);
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = blocks::layer_norm(g, x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(layer, g.rope(q, c_.key_dim, rope), g.rope(k, c_.key_dim, rope), v,
                                {.head_count = c_.head_counts[size_t(layer)],
                                 .scale = softmax_scale(c_.key_dim),
                                 .window = c_.window});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = blocks::layer_norm(g, x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu));
    }
    return blocks::centred_logits(g, x, ends_, biases_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    l.attn_norm.parameters(p, "attn_norm", c_.size.width);
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    l.mlp_norm.parameters(p, "ffn_norm", c_.size.width);
    l.experts.parameters(p, c_.size.width, c_.mixture.expert_width, c_.mixture.expert_count);
  }

  void global_parameters(Parameters& p) override {
    biases_.parameters(p, c_.size.width, c_.size.vocabulary_count);
    long_rope_.parameters(p, int64_t(c_.rope.frequencies.size()));
  }

  blocks::EndBiases biases_;
  LongRope long_rope_;
};

}  // namespace

extern const Architecture arch_phimoe;
constinit const Architecture arch_phimoe = architecture<PhiMoe>("phimoe");

}  // namespace cairn::models
