// Gemma 3n (Google, 2025): several residual streams, of which each layer reads one and predicts and
// corrects the others (AltUp); a low-rank path beside attention (Laurel); inputs of each layer;
// feed- forward blocks that keep only the upper tail of their gates; last layers that share keys
// and values.
#include <cmath>

#include "graph/blocks/attention.h"
#include "graph/blocks/layer_inputs.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace gemma3n {

// Below this mean square a stream is not scaled up any more.
constexpr float kMagnitudeFloor = 1e-5f;
// Of the published models; files do not say it.
constexpr int32_t kLaurelRank = 64;

struct Config : RotaryConfig<RopeStyle::halves> {
  std::vector<int32_t> kv_layers;   // By layer: whose keys and values it reads; often its own.
  std::vector<int32_t> mlp_widths;  // By layer.
  std::vector<float> tails;         // By layer: where the tail begins, in deviations; or -infinity.
  RopeSpec window_rope;
  int32_t part_width = 0;  // Of a layer's own input.
  int32_t stream_count = 0, active = 0;
  float logit_cap = 0;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    attention_scale = 1.0f;
    const int32_t layer_count = size.layer_count;
    CAIRN_TRY(windows, read_windows(meta, layer_count, 5));
    // The published models compute keys and values in their first 20 layers.
    CAIRN_TRY(const int32_t shared_count,
              meta.count_or("attention.shared_kv_layers", std::max(0, layer_count - 20)));
    CAIRN_TRY(kv_layers, layers_of_kv(meta, windows, shared_count));
    CAIRN_TRY(mlp_widths, meta.per_layer("feed_forward_length", layer_count));
    CAIRN_TRY(tails, meta.per_layer_reals("activation_sparsity_scale", layer_count));
    CAIRN_TRY(window_rope, read_window_rope(meta, 10000.0f, key_dim));
    CAIRN_TRY(part_width, meta.count("embedding_length_per_layer_input"));
    CAIRN_TRY(read_streams(meta));
    CAIRN_TRY(logit_cap, meta.real_or("final_logit_softcapping", 0.0f));
    return Ok{};
  }

  Status read_streams(const gguf::Metadata& meta) {
    CAIRN_TRY(stream_count, meta.count("altup.num_inputs"));
    CAIRN_TRY(active, meta.count("altup.active_idx"));
    if (stream_count < 2 || active >= stream_count) {
      return fail(ErrorCode::invalid_data,
                  "{}: expected one of at least two streams, found {} of {}",
                  meta.key("altup.active_idx"), active, stream_count);
    }
    return Ok{};
  }
  bool shares_kv(int32_t layer) const { return kv_layers[size_t(layer)] != layer; }
};

struct Layer {
  Vector router_norm, correct_scale;
  Weight router, predict, correct;
  Vector attn_norm, q_norm, k_norm, post_attn_norm, laurel_norm, mlp_norm, post_mlp_norm;
  Weight q, k, v, out, laurel_left, laurel_right;
  blocks::GatedMlp mlp;
  blocks::LayerInputGate input;
};

class Gemma3n final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t layer) const override {
    if (c_.shares_kv(layer)) return {State::shared(c_.kv_layers[size_t(layer)])};
    return Decoder::layer_states(layer);
  }

  Tensor forward(Graph& g) const override {
    const int32_t width = c_.size.width;
    const Tensor embedded = g.embed(embedding_and_head_.embedding, blocks::root_of(width));
    const Tensor parts = blocks::layer_inputs(g, embedded, inputs_, c_.norm_epsilon);
    Tensor streams = first_streams(g, embedded);
    for (const auto& [layer, l] : layers()) {
      const Tensor predictions = g.matmul(l.predict, modalities(g, l, active(g, streams)));
      const Tensor predicted = g.mix_streams(streams, streams, predictions, width);
      const Tensor x = active(g, predicted);
      const Tensor h = norm(g, x, l.attn_norm);
      const Tensor mixed = g.matmul(l.out, attention(g, layer, h));
      const Tensor attended = g.add(x, norm(g, mixed, l.post_attn_norm));
      const Tensor both = g.scale(g.add(attended, laurel(g, l, h)), float(std::sqrt(0.5)));
      const Tensor m = norm(g, both, l.mlp_norm);
      const Tensor fed = feed_forward(g, layer, m);
      const Tensor done = g.add(both, norm(g, fed, l.post_mlp_norm));

      const Tensor corrections = g.matmul(l.correct, modalities(g, l, done));
      streams = g.mix_streams(predicted, g.add(done, x, -1.0f), corrections, width, 1.0f);
      const Tensor scaled = g.scale_columns(active(g, streams), l.correct_scale);
      const Tensor part = g.columns(parts, layer * c_.part_width, c_.part_width);
      const Tensor input = blocks::gated_layer_input(g, scaled, part, l.input, c_.norm_epsilon);
      g.add_to_streams(others(g, streams), input);
    }
    return blocks::softcap(g, logits(g, merged(g, streams)), c_.logit_cap);
  }

 private:
  Status expect_unneeded(int32_t layer, const Program&) const override {
    return fail(ErrorCode::unsupported,
                "layer {}: expected it to run, as each layer predicts and corrects all of the "
                "model's streams (AltUp), found it skipped",
                layer);
  }

  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const int32_t width = c_.size.width, stream_count = c_.stream_count;
    p.vector("altup_router_norm.weight", l.router_norm, {width});
    p.matrix("altup_router.weight", l.router, {width, stream_count});
    p.matrix("altup_predict_coef.weight", l.predict, {stream_count, stream_count * stream_count});
    p.matrix("altup_correct_coef.weight", l.correct, {stream_count, stream_count});
    p.vector("altup_correct_scale.weight", l.correct_scale, {width});
    attention_parameters(p, layer, l);
    p.matrix("laurel_l.weight", l.laurel_left, {width, usual(kLaurelRank)});
    const int32_t rank = l.laurel_left.exists() ? l.laurel_left.rows : kLaurelRank;
    p.matrix("laurel_r.weight", l.laurel_right, {rank, width});
    p.vector("laurel_post_norm.weight", l.laurel_norm, {width});
    p.vector("ffn_norm.weight", l.mlp_norm, {width});
    l.mlp.parameters(p, width, c_.mlp_widths[size_t(layer)]);
    p.vector("post_ffw_norm.weight", l.post_mlp_norm, {width});
    l.input.parameters(p, width, c_.part_width);
  }

  void attention_parameters(Parameters& p, int32_t layer, Layer& l) {
    const int32_t width = c_.size.width;
    const int32_t q_width = c_.head_counts[size_t(layer)] * c_.key_dim;
    const int32_t kv_heads = c_.kv_head_counts[size_t(layer)];
    p.vector("attn_norm.weight", l.attn_norm, {width});
    p.matrix("attn_q.weight", l.q, {width, q_width});
    p.vector("attn_q_norm.weight", l.q_norm, {c_.key_dim});
    if (!c_.shares_kv(layer)) {
      p.matrix("attn_k.weight", l.k, {width, kv_heads * c_.key_dim});
      p.vector("attn_k_norm.weight", l.k_norm, {c_.key_dim});
      p.matrix("attn_v.weight", l.v, {width, kv_heads * c_.value_dim});
    }
    p.matrix("attn_output.weight", l.out, {c_.head_counts[size_t(layer)] * c_.value_dim, width});
    p.vector("post_attention_norm.weight", l.post_attn_norm, {width});
  }

  void global_parameters(Parameters& p) override {
    const int32_t width = c_.size.width;
    p.matrix("altup_proj.weight", spread_, {width, width, c_.stream_count - 1});
    p.matrix("altup_unembd_proj.weight", gather_, {width, width, c_.stream_count - 1});
    inputs_.parameters(p, width, c_.part_width, c_.size.layer_count, c_.size.vocabulary_count);
  }

  Tensor active(Graph& g, Tensor streams) const {
    return g.columns(streams, c_.active * c_.size.width, c_.size.width);
  }
  Tensor others(Graph& g, Tensor streams) const {
    return g.columns(streams, c_.size.width, streams.width - c_.size.width);
  }

  // The embedding, then projections of it that are as long as it is.
  Tensor first_streams(Graph& g, Tensor embedded) const {
    const Tensor projected = g.matmul_each(spread_, embedded, false);
    return g.match_magnitude(embedded, projected, kMagnitudeFloor);
  }

  // The mean of the first stream and of projections of the others that are as long as it is.
  Tensor merged(Graph& g, Tensor streams) const {
    const int32_t width = c_.size.width;
    const Tensor first = g.columns(streams, 0, width);
    const Tensor projected = g.matmul_each(gather_, others(g, streams), true);
    const Tensor all = g.match_magnitude(first, projected, kMagnitudeFloor);
    Tensor sum = g.columns(all, 0, width);
    for (int32_t stream = 1; stream < c_.stream_count; ++stream) {
      sum = g.add(sum, g.columns(all, stream * width, width));
    }
    return g.scale(sum, 1.0f / float(c_.stream_count));
  }

  // How much of each stream: what the coefficients of predictions and corrections are made of.
  Tensor modalities(Graph& g, const Layer& l, Tensor x) const {
    const Tensor normal = norm(g, x, l.router_norm);
    const Tensor routed = g.matmul(l.router, g.scale(normal, 1.0f / float(c_.size.width)));
    return g.activate(routed, Activation::tanh);
  }

  Tensor laurel(Graph& g, const Layer& l, Tensor h) const {
    const Tensor low_rank = g.matmul(l.laurel_right, g.matmul(l.laurel_left, h));
    return g.add(h, norm(g, low_rank, l.laurel_norm));
  }

  Tensor attention(Graph& g, int32_t layer, Tensor h) const {
    const Layer& l = layers_[size_t(layer)];
    const RopeSpec& rope = c_.window(layer) > 0 ? c_.window_rope : c_.rope;
    const AttentionSpec spec = c_.scores(layer);
    const Tensor q = g.rms_norm(g.matmul(l.q, h), l.q_norm, c_.norm_epsilon, c_.key_dim);
    const Tensor turned_q = g.rope(q, c_.key_dim, rope);
    if (c_.shares_kv(layer)) return g.attend_shared(layer, turned_q, spec);
    const Tensor k = g.rms_norm(g.matmul(l.k, h), l.k_norm, c_.norm_epsilon, c_.key_dim);
    const Tensor v = g.rms_norm(g.matmul(l.v, h), {}, c_.norm_epsilon, c_.value_dim);
    return g.attend(layer, turned_q, g.rope(k, c_.key_dim, rope), v, spec);
  }

  Tensor feed_forward(Graph& g, int32_t layer, Tensor m) const {
    const blocks::GatedMlp& mlp = layers_[size_t(layer)].mlp;
    const float tail = c_.tails[size_t(layer)];
    Tensor gate = g.matmul(mlp.gate, m);
    if (std::isfinite(tail)) gate = g.gaussian_topk(gate, tail);
    return g.matmul(mlp.down, g.gate(gate, g.matmul(mlp.up, m), Activation::gelu_tanh));
  }

  Weight spread_, gather_;
  blocks::LayerInputs inputs_;
};

}  // namespace gemma3n

extern const Architecture arch_gemma3n;
constinit const Architecture arch_gemma3n = architecture<gemma3n::Gemma3n>("gemma3n");

}  // namespace cairn::models
