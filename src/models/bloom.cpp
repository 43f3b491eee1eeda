// BLOOM (BigScience, 2022): instead of rotating, scores fall with distance, each head's at its own
// slope; the embeddings are normalised; norms are around the mean; every matrix has a bias.
#include "graph/blocks/attention.h"
#include "graph/blocks/layer_norm.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  std::vector<float> slopes;
};

struct Layer {
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::PlainMlp mlp;
};

class Bloom final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    CAIRN_TRY(std::vector<float> slopes, read_slopes(meta, common, 8.0f));
    return Config{std::move(common), std::move(slopes)};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = blocks::layer_norm(g, g.embed(ends_.embedding), embedding_norm_, c_.norm_epsilon);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = blocks::layer_norm(g, x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(layer, q, k, v,
                                {.head_count = c_.head_counts[size_t(layer)],
                                 .scale = softmax_scale(c_.key_dim),
                                 .slopes = c_.slopes});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = blocks::layer_norm(g, x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::plain_mlp(g, m, l.mlp, Activation::gelu_tanh));
    }
    return blocks::centred_logits(g, x, ends_, biases_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    l.attn_norm.parameters(p, "attn_norm", c_.size.width);
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    l.mlp_norm.parameters(p, "ffn_norm", c_.size.width);
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
  }

  void global_parameters(Parameters& p) override {
    embedding_norm_.parameters(p, "token_embd_norm", c_.size.width);
    biases_.parameters(p, c_.size.width, c_.size.vocabulary_count);
  }

  blocks::LayerNorm embedding_norm_;
  blocks::EndBiases biases_;
};

}  // namespace

extern const Architecture arch_bloom;
constinit const Architecture arch_bloom = architecture<Bloom>("bloom");

}  // namespace cairn::models
