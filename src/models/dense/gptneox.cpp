// GPT-NeoX and Pythia (Black et al., 2022): attention and feed-forward have norms of their own and,
// in most sizes, read the same stream and are added together; a part of each head rotates.
#include "graph/blocks/attention.h"
#include "graph/blocks/layer_norm.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  bool is_parallel = true;
};

struct Layer {
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::PlainMlp mlp;
};

class GptNeoX final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::halves));
    CAIRN_TRY(const bool is_parallel, meta.flag_or("use_parallel_residual", true));
    return Config{std::move(common), std::move(rope), is_parallel};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = blocks::layer_norm(g, x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      const Tensor attended = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m =
          blocks::layer_norm(g, c_.is_parallel ? x : attended, l.mlp_norm, c_.norm_epsilon);
      x = g.add(attended, blocks::plain_mlp(g, m, l.mlp, Activation::gelu_erf));
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

extern const Architecture arch_gptneox;
constinit const Architecture arch_gptneox = architecture<GptNeoX>("gptneox");

}  // namespace cairn::models
