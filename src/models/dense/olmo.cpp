// OLMo 1 (Groeneveld et al., 2024): Llama's shape with norms around the mean that have no
// parameters.
#include "graph/blocks/attention.h"
#include "graph/blocks/layer_norm.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  float clamp = 0;  // Of queries, keys and values; 0: none.
};

struct Layer {
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class Olmo final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::adjacent));
    CAIRN_TRY(const float clamp, meta.real_or("attention.clamp_kqv", 0.0f));
    return Config{std::move(common), std::move(rope), clamp};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.layer_norm(x, {}, {}, c_.norm_epsilon);
      const auto [q, k, v] =
          blocks::clamped(g, l.attn.project(g, h, c_.attention(layer)), c_.clamp);
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.layer_norm(x, {}, {}, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
    }
    return blocks::centred_logits(g, x, ends_, {}, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
  }
  std::string_view output_norm_name() const override { return ""; }
};

}  // namespace

extern const Architecture arch_olmo;
constinit const Architecture arch_olmo = architecture<Olmo>("olmo");

}  // namespace cairn::models
