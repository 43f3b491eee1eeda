// Llama 1 to 3.x and Mistral (Touvron et al., 2023): the plain dense decoder. Rotates neighbouring
// pairs; Llama 3.1 and later bring a factor for each frequency.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class Llama final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::adjacent));
    CAIRN_TRY(const int32_t expert_count, meta.count_or("expert_count", 0));
    if (expert_count > 0) {
      return fail(ErrorCode::unsupported, "{}: expected 0, found {}", meta.key("expert_count"),
                  expert_count);
    }
    return Config{std::move(common), std::move(rope)};
  }

  Tensor forward(Graph& g) const override {
    const RopeSpec rope = with_factors(c_.rope, rope_factors_);
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const Tensor q = g.matmul(l.attn.q, h, l.attn.q_bias);
      const Tensor k = g.matmul(l.attn.k, h, l.attn.k_bias);
      const Tensor v = g.matmul(l.attn.v, h, l.attn.v_bias);
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, rope), g.rope(k, c_.key_dim, rope), v,
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

  void global_parameters(Parameters& p) override {
    p.optional_vector("rope_freqs.weight", rope_factors_, {int64_t(c_.rope.frequencies.size())});
  }

  Vector rope_factors_;
};

}  // namespace

extern const Architecture arch_llama;
constinit const Architecture arch_llama = architecture<Llama>("llama");

}  // namespace cairn::models
