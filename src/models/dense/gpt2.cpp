// GPT-2 (Radford et al., 2019): positions are learned rows that are added to the embeddings; norms
// are around the mean; every matrix has a bias. StarCoder 1 (Li et al., 2023) has the same shape
// with one head of keys and values.
#include "models/common/decoder.h"

namespace cairn::models {

namespace gpt2 {

class Gpt2 final : public CentredDecoder<DecoderConfig, CentredLayer<blocks::PlainMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.add(g.embed(embedding_and_head_.embedding), g.embed_positions(positions_));
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      x = g.add(x, attend(g, layer, qkv, l.attn));
      x = g.add(x, blocks::plain_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::gelu_tanh));
    }
    return logits(g, x);
  }

 private:
  void global_parameters(Parameters& p) override {
    p.matrix("position_embd.weight", positions_, {c_.size.width, c_.size.context_length});
    CentredDecoder::global_parameters(p);
  }

  Weight positions_;
};

}  // namespace gpt2

extern const Architecture arch_gpt2;
constinit const Architecture arch_gpt2 = architecture<gpt2::Gpt2>("gpt2");

}  // namespace cairn::models
