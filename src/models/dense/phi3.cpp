// Phi-3, 3.5 and 4 (Abdin et al., 2024): Llama's shape with joined matrices. The long ones have a
// factor for each frequency, and others where the context is no longer than the original one
// (LongRoPE, Ding et al., 2024).
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"
#include "models/common/long_rope.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  int32_t original_context = 0;
  int32_t window = 0;
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class Phi3 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_attending_config(meta));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(c.original_context,
              meta.count_or("rope.scaling.original_context_length", c.size.context_length));
    CAIRN_TRY(c.window, meta.count_or("attention.sliding_window", 0));
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state(c_.window)};
  }

  Tensor forward(Graph& g) const override {
    const RopeSpec rope = long_rope_.scaled(c_.rope, g.context_tokens() > c_.original_context);
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(layer, g.rope(q, c_.key_dim, rope), g.rope(k, c_.key_dim, rope), v,
                                {.head_count = c_.head_counts[size_t(layer)],
                                 .scale = softmax_scale(c_.key_dim),
                                 .window = c_.window});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.joined_parameters(p, c_.size.width, c_.mlp_width);
  }

  void global_parameters(Parameters& p) override {
    long_rope_.parameters(p, int64_t(c_.rope.frequencies.size()));
  }

  LongRope long_rope_;
};

}  // namespace

extern const Architecture arch_phi3;
constinit const Architecture arch_phi3 = architecture<Phi3>("phi3");

}  // namespace cairn::models
