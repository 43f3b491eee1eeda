// Nomic Embed (Nussbaum et al., 2024): BERT with rotated positions, a gated feed-forward block and
// no biases but those of its norms.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/encoder.h"

namespace cairn::models {

namespace {

struct Config : EncoderConfig {
  RopeSpec rope;
};

struct Layer {
  blocks::Projections attn;
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::GatedMlp mlp;
};

class NomicBert final : public Encoder<Config, Layer> {
 public:
  using Encoder::Encoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(EncoderConfig common, read_encoder_config(meta));
    Config c{std::move(common), {}};
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    return c;
  }

  Tensor forward(Graph& g) const override {
    Tensor x = blocks::layer_norm(g, embeddings_.embed(g), norm_, c_.norm_epsilon);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const auto [q, k, v] = l.attn.project(g, x, c_.attention(layer));
      const Tensor a = g.attend(layer, g.rope(q, c_.key_dim, c_.rope),
                                g.rope(k, c_.key_dim, c_.rope), v, attention_spec(layer));
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      x = blocks::layer_norm(g, x, l.attn_norm, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, x, l.mlp, Activation::silu));
      x = blocks::layer_norm(g, x, l.mlp_norm, c_.norm_epsilon);
    }
    return end(g, x);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    l.attn_norm.parameters(p, "attn_output_norm", c_.size.width);
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
    l.mlp_norm.parameters(p, "layer_output_norm", c_.size.width);
  }

  void global_parameters(Parameters& p) override {
    norm_.parameters(p, "token_embd_norm", c_.size.width);
  }

  blocks::LayerNorm norm_;
};

}  // namespace

extern const Architecture arch_nomic_bert;
constinit const Architecture arch_nomic_bert = architecture<NomicBert>("nomic-bert");

}  // namespace cairn::models
