// BERT (Devlin et al., 2019) and RoBERTa: tokens, kinds of segments and learned positions are added
// and normalised; every block is followed by a norm of its sum with what went in; GELU between two
// matrices with biases. The table of positions of RoBERTa begins at its first real one in files.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/encoder.h"

namespace cairn::models {

namespace {

struct Layer {
  blocks::Projections attn;
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::PlainMlp mlp;
};

class Bert final : public Encoder<EncoderConfig, Layer> {
 public:
  using Encoder::Encoder;

  static Result<EncoderConfig> read(const gguf::Metadata& meta) {
    return read_encoder_config(meta);
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.add(embeddings_.embed(g), g.embed_positions(positions_));
    x = blocks::layer_norm(g, x, norm_, c_.norm_epsilon);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const auto [q, k, v] = l.attn.project(g, x, c_.attention(layer));
      const Tensor a = g.attend(layer, q, k, v, attention_spec(layer));
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      x = blocks::layer_norm(g, x, l.attn_norm, c_.norm_epsilon);
      x = g.add(x, blocks::plain_mlp(g, x, l.mlp, Activation::gelu_erf));
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
    p.matrix("position_embd.weight", positions_, {c_.size.width, c_.size.context_length});
    norm_.parameters(p, "token_embd_norm", c_.size.width);
  }

  Weight positions_;
  blocks::LayerNorm norm_;
};

}  // namespace

extern const Architecture arch_bert;
constinit const Architecture arch_bert = architecture<Bert>("bert");

}  // namespace cairn::models
