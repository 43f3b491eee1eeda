// MiniCPM 3 (Hu et al., 2024): keys and values of all heads come from one latent row, as DeepSeek's
// do, but its files have the matrix that makes them in one piece, so that they are made and kept;
// embeddings, residuals and logits are scaled.
#include <cmath>

#include "graph/blocks/mlp.h"
#include "models/decoder.h"
#include "models/long_rope.h"

namespace cairn::models {

namespace {

// Files do not say these.
constexpr float kEmbeddingScale = 12.0f;
constexpr double kDepthScale = 1.4, kBaseWidth = 256.0;

struct Config : DecoderConfig {
  RopeSpec rope;
  int32_t original_context = 0;
  int32_t rotated_dim = 0, query_rank = 0, latent_width = 0;

  int32_t plain_dim() const { return key_dim - rotated_dim; }
};

struct Layer {
  Vector attn_norm, q_norm, latent_norm, mlp_norm;
  Weight q_down, q_up, latent, kv_up, out;
  blocks::GatedMlp mlp;
};

class MiniCpm3 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_attending_config(meta));
    CAIRN_TRY(c.rotated_dim, meta.count("rope.dimension_count"));
    CAIRN_TRY(c.rope, read_rope(meta, c.rotated_dim, RopeStyle::halves));
    CAIRN_TRY(c.original_context,
              meta.count_or("rope.scaling.original_context_length", c.size.context_length));
    CAIRN_TRY(c.query_rank, meta.count("attention.q_lora_rank"));
    CAIRN_TRY(c.latent_width, meta.count("attention.kv_lora_rank"));
    if (c.rotated_dim <= 0 || c.plain_dim() <= 0) {
      return fail(ErrorCode::invalid_data, "{}: expected 1 to {}, found {}",
                  meta.key("rope.dimension_count"), c.key_dim - 1, c.rotated_dim);
    }
    if (c.kv_head_counts != c.head_counts) {
      return fail(ErrorCode::unsupported, "{}: expected as many as heads",
                  meta.key("attention.head_count_kv"));
    }
    return c;
  }

  Tensor forward(Graph& g) const override {
    const RopeSpec rope = long_rope_.scaled(c_.rope, g.context_tokens() > c_.original_context);
    const auto residual_scale = float(kDepthScale / std::sqrt(double(c_.size.layer_count)));
    Tensor x = g.embed(ends_.embedding, kEmbeddingScale);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      x = g.add(x, attention(g, layer, h, rope), residual_scale);
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu), residual_scale);
    }
    const Tensor last = g.rms_norm(g.outputs(x), ends_.norm, c_.norm_epsilon);
    return g.matmul(ends_.output.exists() ? ends_.output : ends_.embedding,
                    g.scale(last, float(kBaseWidth / c_.size.width)));
  }

 private:
  Tensor attention(Graph& g, int32_t layer, Tensor x, const RopeSpec& rope) const {
    const Layer& l = layers_[size_t(layer)];
    const int32_t plain = c_.plain_dim(), rotated = c_.rotated_dim, value = c_.value_dim;
    const Tensor q = g.matmul(l.q_up, g.rms_norm(g.matmul(l.q_down, x), l.q_norm, c_.norm_epsilon));
    const Tensor q_rotated = g.rope(g.pick_columns(q, plain, rotated, c_.key_dim), rotated, rope);
    const Tensor latent = g.matmul(l.latent, x);
    const Tensor k_rotated = g.rope(g.columns(latent, c_.latent_width, rotated), rotated, rope);
    const Tensor kv = g.matmul(
        l.kv_up, g.rms_norm(g.columns(latent, 0, c_.latent_width), l.latent_norm, c_.norm_epsilon));
    const Tensor a = g.attend(
        layer, g.join_columns(g.pick_columns(q, 0, plain, c_.key_dim), plain, q_rotated, rotated),
        g.join_columns(g.pick_columns(kv, 0, plain, plain + value), plain, k_rotated, rotated),
        g.pick_columns(kv, plain, value, plain + value),
        {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
    return g.matmul(l.out, a);
  }

  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const int32_t width = c_.size.width, heads = c_.head_counts[size_t(layer)];
    p.vector("attn_norm.weight", l.attn_norm, {width});
    p.matrix("attn_q_a.weight", l.q_down, {width, c_.query_rank});
    p.vector("attn_q_a_norm.weight", l.q_norm, {c_.query_rank});
    p.matrix("attn_q_b.weight", l.q_up, {c_.query_rank, heads * c_.key_dim});
    p.matrix("attn_kv_a_mqa.weight", l.latent, {width, c_.latent_width + c_.rotated_dim});
    p.vector("attn_kv_a_norm.weight", l.latent_norm, {c_.latent_width});
    p.matrix("attn_kv_b.weight", l.kv_up,
             {c_.latent_width, heads * (c_.plain_dim() + c_.value_dim)});
    p.matrix("attn_output.weight", l.out, {heads * c_.value_dim, width});
    p.vector("ffn_norm.weight", l.mlp_norm, {width});
    l.mlp.parameters(p, width, c_.mlp_width);
  }

  void global_parameters(Parameters& p) override {
    long_rope_.parameters(p, int64_t(c_.rope.frequencies.size()));
  }

  LongRope long_rope_;
};

}  // namespace

extern const Architecture arch_minicpm3;
constinit const Architecture arch_minicpm3 = architecture<MiniCpm3>("minicpm3");

}  // namespace cairn::models
