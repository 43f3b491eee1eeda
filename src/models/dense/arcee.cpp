// AFM (Arcee, 2025): Llama's shape with plain feed-forward blocks and the square of relu.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::PlainMlp mlp;
};

class Arcee final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::adjacent));
    return Config{std::move(common), std::move(rope)};
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
      x = g.add(x, blocks::squared_relu_mlp(g, m, l.mlp));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
  }
};

}  // namespace

extern const Architecture arch_arcee;
constinit const Architecture arch_arcee = architecture<Arcee>("arcee");

}  // namespace cairn::models
