// Llama 1 to 3.x and Mistral (Touvron et al., 2023): the plain decoder. Llama 3.1 and later bring a
// factor for each frequency of the rotation; Mixtral (Jiang et al., 2024) has experts. Other models
// with the same shape differ in which elements of a head rotate together.
#include "models/dense/llama.h"

#include "models/common/decoder.h"
#include "models/common/long_rope.h"

namespace cairn::models {

namespace llama {

struct Config : DecoderConfig {
  LlamaTraits traits;
  RopeSpec rope;
  MixtureConfig mixture;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig::read(meta));
    CAIRN_TRY(rope, read_rope(meta, key_dim, traits.rope_style));
    CAIRN_TRY(mixture, read_mixture(meta, {.score = RouterScore::softmax_chosen}));
    return Ok{};
  }
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;     // Or
  blocks::Experts experts;  // these.

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const MixtureConfig& mixture = c.mixture;
    p.vector("attn_norm.weight", attn_norm, {c.size.width});
    attn.parameters(p, c.size.width, c.attention(layer));
    p.vector(c.traits.mlp_norm, mlp_norm, {c.size.width});
    if (mixture.expert_count == 0) return mlp.parameters(p, c.size.width, c.mlp_width);
    experts.parameters(p, c.size.width, mixture.expert_width, mixture.expert_count);
  }
};

constexpr LlamaTraits kLlama;

class Llama final : public Decoder<Config, Layer> {
 public:
  explicit Llama(const LlamaTraits& traits) { c_.traits = traits; }

  Tensor forward(Graph& g) const override {
    const RopeSpec rope =
        with_factors(long_rope_.scaled(c_.rope, c_.reads_long_texts()), rope_factors_);
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(layer, g.rope(q, c_.key_dim, rope), g.rope(k, c_.key_dim, rope), v,
                                c_.scores(layer));
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, c_.mixture.expert_count == 0
                       ? blocks::gated_mlp(g, m, l.mlp, Activation::silu)
                       : blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu));
    }
    return logits(g, x);
  }

 private:
  void global_parameters(Parameters& p) override {
    p.optional_vector("rope_freqs.weight", rope_factors_, {int64_t(c_.rope.frequencies.size())});
    long_rope_.parameters(p, int64_t(c_.rope.frequencies.size()));
  }

  Vector rope_factors_;
  LongRope long_rope_;
};

}  // namespace llama

Result<std::unique_ptr<Model>> create_llama(const gguf::Metadata& meta, const LlamaTraits& traits) {
  return create_model<llama::Llama>(meta, traits);
}

extern const Architecture arch_llama;
constinit const Architecture arch_llama = variant<create_llama, llama::kLlama>("llama");

}  // namespace cairn::models
