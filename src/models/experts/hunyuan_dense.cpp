// Hunyuan's models (Tencent, 2025): Qwen 3's shape, but queries and keys are normalised behind the
// rotation; in some, experts in every layer beside one that every token uses, the weights of the
// chosen ones normalised.
#include "models/common/decoder.h"
#include "models/common/sparse_block.h"
#include "models/experts/hunyuan.h"

namespace cairn::models {

namespace hunyuan_dense {

struct Config : RotaryConfig<RopeStyle::halves> {
  bool has_experts = false;
  MixtureConfig mixture;  // Of no experts where the model is dense.

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    if (!has_experts) return Ok{};
    CAIRN_TRY(mixture, read_mixture(meta, {.normalize = true}));
    // All models have one that every token uses, as wide as a plain block unless the file says
    // more.
    if (mixture.shared_width == 0) mixture.shared_width = mlp_width;
    return expect_experts(meta, mixture);
  }
};

struct Layer : NormedAttention<Vector> {
  blocks::QkNorms qk_norms;
  Vector mlp_norm;
  SparseBlock mlp;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attention_parameters(p, c, layer);
    qk_norms.parameters(p, c.key_dim, c.key_dim);
    p.vector("ffn_norm.weight", mlp_norm, {c.size.width});
    mlp.parameters(p, layer, c.size.width, c.mlp_width, c.mixture);
  }
};

class Hunyuan final : public Decoder<Config, Layer> {
 public:
  explicit Hunyuan(bool has_experts) { c_.has_experts = has_experts; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      const blocks::Qkv normed = norm(g, rotate(g, qkv, c_.rope), l.qk_norms, c_.key_dim);
      x = g.add(x, attend(g, layer, normed, l.attn));
      x = l.mlp.add_to(g, layer, x, norm(g, x, l.mlp_norm), c_.mixture);
    }
    return logits(g, x);
  }
};

constexpr bool kDense = false;

}  // namespace hunyuan_dense

Result<std::unique_ptr<Model>> create_hunyuan(const gguf::Metadata& meta, const bool& has_experts) {
  return create_model<hunyuan_dense::Hunyuan>(meta, has_experts);
}

extern const Architecture arch_hunyuan_dense;
constinit const Architecture arch_hunyuan_dense =
    variant<create_hunyuan, hunyuan_dense::kDense>("hunyuan-dense");

}  // namespace cairn::models
