// Llama 4 (Meta, 2025). Three of four layers rotate and see their own chunk of the text; the fourth
// sees everything, knows no positions, and grows its queries with the length of the text. The
// experts stand in every layer or in every other, beside one that all tokens use; the router's
// weight is applied before the expert.
#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

// What files do not say: the chunk's tokens, and the rule by which queries grow.
constexpr int32_t kChunk = 8192;
constexpr int32_t kQueryStep = 8192;
constexpr double kQueryGrowth = 0.1;
// Of the sizes that exist, the one with 128 experts does not norm its queries and keys.
constexpr int32_t kExpertsWithoutNorm = 128;

struct Config : DecoderConfig {
  std::vector<int32_t> chunks;  // By layer; 0: the layer sees everything.
  bool rotate_all = false;      // There are no chunks.
  RopeSpec rope;
  int32_t expert_count = 0, expert_used_count = 0, expert_width = 0, expert_step = 0;

  bool has_experts(int32_t layer) const {
    return expert_count > 0 && expert_step > 0 && (layer + 1) % expert_step == 0;
  }
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;  // For all tokens: the shared expert, or the layer has no others.
  blocks::Experts experts;
};

Result<Config> read_config(const gguf::Metadata& meta) {
  Config c;
  CAIRN_TRY(static_cast<DecoderConfig&>(c), read_decoder_config(meta));
  CAIRN_TRY(const int32_t window, meta.count_or("attention.sliding_window", kChunk));
  c.rotate_all = window == 0;
  CAIRN_TRY(c.chunks, read_windows(meta, c.size.layer_count, 4, kChunk));
  CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::adjacent));
  CAIRN_TRY(c.expert_count, meta.count_or("expert_count", 0));
  CAIRN_TRY(c.expert_step, meta.count("interleave_moe_layer_step"));
  if (c.expert_count > 0) {
    CAIRN_TRY(c.expert_used_count, meta.count("expert_used_count"));
    CAIRN_TRY(c.expert_width, meta.count("expert_feed_forward_length"));
  }
  return c;
}

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
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) { return read_config(meta); }

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
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const int32_t chunk = c_.chunks[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      if (chunk == 0 && !c_.rotate_all) {
        q = g.scale_by_position(q, kQueryGrowth, kQueryStep, 1);
      } else {
        q = g.rope(q, c_.key_dim, rope);
        k = g.rope(k, c_.key_dim, rope);
        if (norms) {
          q = g.rms_norm(q, {}, c_.norm_epsilon, c_.key_dim);
          k = g.rms_norm(k, {}, c_.norm_epsilon, c_.key_dim);
        }
      }
      const Tensor a = g.attend(layer, q, k, v,
                                {.head_count = c_.head_counts[size_t(layer)],
                                 .scale = softmax_scale(c_.key_dim),
                                 .window = chunk,
                                 .chunked = true});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
      if (c_.has_experts(layer)) x = g.add(x, weighted_input_mixture(g, m, l.experts, router));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    if (c_.has_experts(layer)) {
      l.experts.parameters(p, c_.size.width, c_.expert_width, c_.expert_count);
      l.mlp.parameters(p, c_.size.width, c_.expert_width, "_shexp");
    } else {
      l.mlp.parameters(p, c_.size.width, c_.mlp_width);
    }
  }

  void global_parameters(Parameters& p) override {
    p.optional_vector("rope_freqs.weight", rope_factors_, {int64_t(c_.rope.frequencies.size())});
  }

  Vector rope_factors_;
};

}  // namespace

extern const Architecture arch_llama4;
constinit const Architecture arch_llama4 = architecture<Llama4>("llama4");

}  // namespace cairn::models
