// Llama 4 (Meta, 2025). Three of four layers rotate and see their own chunk of the text; the fourth
// sees everything, knows no positions, and grows its queries with the length of the text. The
// experts stand in every layer or in every other, beside one that all tokens use; the router's
// weight is applied before the expert.
#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace llama4 {

// What files do not say: the chunk's tokens, and the rule by which queries grow.
constexpr int32_t kChunk = 8192;
constexpr int32_t kQueryStep = 8192;
constexpr double kQueryGrowth = 0.1;
// Of the sizes that exist, the one with 128 experts does not norm its queries and keys.
constexpr int32_t kExpertsWithoutNorm = 128;

struct Config : RotaryConfig<RopeStyle::adjacent> {
  std::vector<int32_t> chunks;  // By layer; 0: the layer sees everything.
  bool rotate_all = false;      // There are no chunks.
  int32_t expert_count = 0, expert_used_count = 0, expert_width = 0, expert_step = 0;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(const int32_t window, meta.count_or("attention.sliding_window", kChunk));
    rotate_all = window == 0;
    CAIRN_TRY(chunks, read_windows(meta, size.layer_count, 4, kChunk));
    CAIRN_TRY(expert_count, meta.count_or("expert_count", 0));
    CAIRN_TRY(expert_step, meta.count("interleave_moe_layer_step"));
    if (expert_count == 0) return Ok{};
    CAIRN_TRY(expert_used_count, meta.count("expert_used_count"));
    CAIRN_TRY(expert_width, meta.count("expert_feed_forward_length"));
    return Ok{};
  }
  bool has_experts(int32_t layer) const {
    return expert_count > 0 && expert_step > 0 && (layer + 1) % expert_step == 0;
  }
  AttentionSpec scores(int32_t layer) const {
    AttentionSpec spec = DecoderConfig::scores(layer);
    spec.window = chunks[size_t(layer)];
    spec.chunked = true;
    return spec;
  }
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;  // For all tokens: the shared expert, or the layer has no others.
  blocks::Experts experts;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const int32_t width = c.size.width;
    p.vector("attn_norm.weight", attn_norm, {width});
    attn.parameters(p, width, c.attention(layer));
    p.vector("ffn_norm.weight", mlp_norm, {width});
    if (!c.has_experts(layer)) return mlp.parameters(p, width, c.mlp_width);
    experts.parameters(p, width, c.expert_width, c.expert_count);
    mlp.parameters(p, width, c.expert_width, "_shexp");
  }
};

// The weight stands before the expert, so that the outputs are added as they are.
Tensor weighted_input_mixture(Graph& g, Tensor x, const blocks::Experts& experts,
                              const RouterSpec& spec) {
  const Routing routing = g.route(g.matmul(experts.router, x, experts.router_bias), spec);
  const Tensor down = blocks::expert_outputs(g, g.expert_scale(x, routing), experts, routing,
                                             Activation::silu, true);
  Tensor sum = g.columns(down, 0, x.width);
  for (int32_t rank = 1; rank < spec.expert_used_count; ++rank) {
    sum = g.add(sum, g.columns(down, rank * x.width, x.width));
  }
  return sum;
}

class Llama4 final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t layer) const override {
    const blocks::AttentionShape shape = c_.attention(layer);
    const int32_t chunk = c_.chunks[size_t(layer)];
    if (chunk == 0) return {shape.state()};
    return {State::chunked(chunk, shape.kv_head_count, shape.key_dim, shape.value_dim)};
  }

  Tensor forward(Graph& g) const override {
    const RouterSpec router{.expert_used_count = c_.expert_used_count,
                            .score = RouterScore::sigmoid_chosen};
    const RopeSpec rope = with_factors(c_.rope, rope_factors_);
    const bool norms = c_.expert_count != kExpertsWithoutNorm;
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const int32_t chunk = c_.chunks[size_t(layer)];
      blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      if (chunk == 0 && !c_.rotate_all) {
        qkv.q = g.scale_by_position(qkv.q, kQueryGrowth, kQueryStep, 1);
      } else {
        qkv = rotate(g, qkv, rope);
        if (norms) qkv = norm(g, qkv, blocks::QkNorms{}, c_.key_dim);
      }
      x = g.add(x, attend(g, layer, qkv, l.attn));
      const Tensor m = norm(g, x, l.mlp_norm);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
      if (c_.has_experts(layer)) x = g.add(x, weighted_input_mixture(g, m, l.experts, router));
    }
    return logits(g, x);
  }

 private:
  void global_parameters(Parameters& p) override {
    p.optional_vector("rope_freqs.weight", rope_factors_, {int64_t(c_.rope.frequencies.size())});
  }

  Vector rope_factors_;
};

}  // namespace llama4

extern const Architecture arch_llama4;
constinit const Architecture arch_llama4 = architecture<llama4::Llama4>("llama4");

}  // namespace cairn::models
