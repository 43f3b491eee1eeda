// GLM-4 of 2025 (Zhipu): what attention and feed-forward give is normalised before it is added, as
// well as what they read; a part of each head rotates; gate and up are one matrix.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
};

struct Layer {
  Vector attn_norm, after_attn_norm, mlp_norm, after_mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class Glm4 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    CAIRN_TRY(leave_out_guessing_layers(meta, common));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::adjacent));
    return Config{std::move(common), std::move(rope)};
  }

  Tensor forward(Graph& g) const override {
    const float epsilon = c_.norm_epsilon;
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      const Tensor mixed = g.matmul(l.attn.out, a, l.attn.out_bias);
      x = g.add(x, g.rms_norm(mixed, l.after_attn_norm, epsilon));
      const Tensor m = g.rms_norm(x, l.mlp_norm, epsilon);
      const Tensor thought = blocks::gated_mlp(g, m, l.mlp, Activation::silu);
      x = g.add(x, g.rms_norm(thought, l.after_mlp_norm, epsilon));
    }
    return blocks::logits(g, x, ends_, epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("post_attention_norm.weight", l.after_attn_norm, {c_.size.width});
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.joined_parameters(p, c_.size.width, c_.mlp_width);
    p.vector("post_ffw_norm.weight", l.after_mlp_norm, {c_.size.width});
  }
};

}  // namespace

extern const Architecture arch_glm4;
constinit const Architecture arch_glm4 = architecture<Glm4>("glm4");

}  // namespace cairn::models
