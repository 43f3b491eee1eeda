// GPT-2 (Radford et al., 2019): positions are learned rows that are added to the embeddings; norms
// are around the mean; every matrix has a bias. StarCoder 1 (Li et al., 2023) has the same shape
// with one head of keys and values.
#include "models/dense/gpt2.h"

#include "graph/blocks/attention.h"
#include "graph/blocks/layer_norm.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Layer {
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::PlainMlp mlp;
};

class Gpt2 final : public Decoder<DecoderConfig, Layer> {
 public:
  using Decoder::Decoder;

  static Result<DecoderConfig> read(const gguf::Metadata& meta) {
    return read_attending_config(meta);
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.add(g.embed(ends_.embedding), g.embed_positions(positions_));
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = blocks::layer_norm(g, x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(
          layer, q, k, v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
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
    p.matrix("position_embd.weight", positions_, {c_.size.width, c_.size.context_length});
    biases_.parameters(p, c_.size.width, c_.size.vocabulary_count);
  }

  Weight positions_;
  blocks::EndBiases biases_;
};

}  // namespace

Result<std::unique_ptr<Model>> create_gpt2(const gguf::Metadata& meta) {
  return architecture<Gpt2>("gpt2").create(meta);
}

extern const Architecture arch_gpt2;
constinit const Architecture arch_gpt2 = {.name = "gpt2", .create = &create_gpt2};

}  // namespace cairn::models
