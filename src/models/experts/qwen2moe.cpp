// Qwen 1.5 and 2 with experts (Yang et al., 2024): experts in every layer, whose weights are left
// as they are, beside one that every token uses as much as a gate of its own says.
#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "models/common/decoder.h"
#include "models/common/mixture.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  MixtureConfig mixture;
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::Experts experts;
  blocks::SharedExpert shared;
};

class Qwen2Moe final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_attending_config(meta));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(c.mixture, read_mixture(meta, {}));
    CAIRN_TRY(expect_experts(meta, c.mixture));
    return c;
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      const Tensor shared = blocks::shared_expert(g, m, l.shared, Activation::silu);
      const Tensor routed = blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu);
      x = g.add(x, g.add(routed, shared));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const MixtureConfig& mixture = c_.mixture;
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.experts.parameters(p, c_.size.width, mixture.expert_width, mixture.expert_count);
    l.shared.parameters(p, c_.size.width,
                        mixture.shared_width > 0 ? mixture.shared_width : c_.mlp_width);
  }
};

}  // namespace

extern const Architecture arch_qwen2moe;
constinit const Architecture arch_qwen2moe = architecture<Qwen2Moe>("qwen2moe");

}  // namespace cairn::models
