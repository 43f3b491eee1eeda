// MPT (MosaicML, 2023): instead of rotating, scores fall with distance, each head's at its own
// slope; norms are around the mean, without a bias; some sizes clamp queries, keys and values.
#include "graph/blocks/attention.h"
#include "graph/blocks/layer_norm.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  std::vector<float> slopes;
  float clamp = 0;  // 0: none.
};

struct Layer {
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::PlainMlp mlp;
};

class Mpt final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    CAIRN_TRY(std::vector<float> slopes, read_slopes(meta, common, 0.0f));
    CAIRN_TRY(const float clamp, meta.real_or("attention.clamp_kqv", 0.0f));
    return Config{std::move(common), std::move(slopes), clamp};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = blocks::layer_norm(g, x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] =
          blocks::clamped(g, l.attn.project(g, h, c_.attention(layer)), c_.clamp);
      const Tensor a = g.attend(layer, q, k, v,
                                {.head_count = c_.head_counts[size_t(layer)],
                                 .scale = softmax_scale(c_.key_dim),
                                 .slopes = c_.slopes});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = blocks::layer_norm(g, x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::plain_mlp(g, m, l.mlp, Activation::gelu_erf));
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
    biases_.parameters(p, c_.size.width, c_.size.vocabulary_count);
  }

  blocks::EndBiases biases_;
};

}  // namespace

extern const Architecture arch_mpt;
constinit const Architecture arch_mpt = architecture<Mpt>("mpt");

}  // namespace cairn::models
