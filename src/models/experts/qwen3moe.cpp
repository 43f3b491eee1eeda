// Qwen 3 with experts (Yang et al., 2025): the dense model with a mixture of experts in every
// layer. The router's softmax runs over all experts; the chosen weights are normalised.
#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "models/common/decoder.h"
#include "models/dense/qwen3.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  int32_t expert_count = 0, expert_used_count = 0, expert_width = 0;
};

struct Layer {
  Vector attn_norm, q_norm, k_norm, mlp_norm;
  blocks::Projections attn;
  blocks::Experts experts;
};

class Qwen3Moe final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::halves));
    CAIRN_TRY(const int32_t expert_count, meta.count("expert_count"));
    CAIRN_TRY(const int32_t expert_used_count, meta.count("expert_used_count"));
    CAIRN_TRY(const int32_t expert_width, meta.count("expert_feed_forward_length"));
    return Config{std::move(common), std::move(rope), expert_count, expert_used_count,
                  expert_width};
  }

  Tensor forward(Graph& g) const override {
    const RouterSpec router{.expert_used_count = c_.expert_used_count,
                            .score = RouterScore::softmax_all,
                            .normalize = true};
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const blocks::Qkv qkv = l.attn.project(g, h, c_.attention(layer));
      const Tensor q = g.rms_norm(qkv.q, l.q_norm, c_.norm_epsilon, c_.key_dim);
      const Tensor k = g.rms_norm(qkv.k, l.k_norm, c_.norm_epsilon, c_.key_dim);
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), qkv.v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::mixture(g, m, l.experts, router, Activation::silu));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("attn_q_norm.weight", l.q_norm, {c_.key_dim});
    p.vector("attn_k_norm.weight", l.k_norm, {c_.key_dim});
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.experts.parameters(p, c_.size.width, c_.expert_width, c_.expert_count);
  }
};

}  // namespace

Result<std::unique_ptr<Model>> create_qwen3moe(const gguf::Metadata& meta) {
  return architecture<Qwen3Moe>("qwen3moe").create(meta);
}

extern const Architecture arch_qwen3moe;
constinit const Architecture arch_qwen3moe = {.name = "qwen3moe", .create = &create_qwen3moe};

}  // namespace cairn::models
