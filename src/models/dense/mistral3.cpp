// Ministral 3 and Mistral Small 3.x: Llama's shape with YaRN, and queries that grow with the
// logarithm of their position beyond the original context.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  float temperature_scale = 0;  // 0: queries do not grow.
  int32_t original_context = 1;
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class Mistral3 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::adjacent));
    CAIRN_TRY(const float scale, meta.real_or("attention.temperature_scale", 0.0f));
    CAIRN_TRY(const int32_t original,
              meta.count_or("rope.scaling.original_context_length", common.size.context_length));
    return Config{std::move(common), std::move(rope), scale, original};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const blocks::Qkv qkv = l.attn.project(g, h, c_.attention(layer));
      Tensor q = g.rope(qkv.q, c_.key_dim, c_.rope);
      if (c_.temperature_scale != 0) {
        q = g.scale_by_position(q, double(c_.temperature_scale), c_.original_context);
      }
      const Tensor a = g.attend(
          layer, q, g.rope(qkv.k, c_.key_dim, c_.rope), qkv.v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
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

extern const Architecture arch_mistral3;
constinit const Architecture arch_mistral3 = architecture<Mistral3>("mistral3");

}  // namespace cairn::models
