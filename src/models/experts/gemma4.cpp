// Gemma 4 (Google, 2026): layers that attend to a window have heads of another width than those
// that attend to all; the last layers may share the keys and values of earlier ones; values are
// normalised and may be made of the keys' projection. The small models add inputs of each layer;
// one has a mixture of experts beside the dense block.
#include <cmath>

#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/layer_inputs.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace gemma4 {

struct Config : DecoderConfig {
  std::vector<int32_t> kv_layers;   // By layer: whose keys and values it reads; often its own.
  std::vector<int32_t> mlp_widths;  // By layer.
  int32_t window_head_dim = 0;
  RopeSpec rope, window_rope;
  int32_t part_width = 0;  // Of a layer's own input; 0: there are none.
  int32_t expert_count = 0, expert_used_count = 0, expert_width = 0;
  float logit_cap = 0;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig::read(meta));
    attention_scale = 1.0f;
    const int32_t layer_count = size.layer_count;
    CAIRN_TRY(meta.per_layer("attention.sliding_window_pattern", layer_count));
    CAIRN_TRY(windows, read_windows(meta, layer_count, 0));
    CAIRN_TRY(const int32_t shared_count, meta.count_or("attention.shared_kv_layers", 0));
    CAIRN_TRY(kv_layers, layers_of_kv(meta, windows, shared_count));
    CAIRN_TRY(mlp_widths, meta.per_layer("feed_forward_length", layer_count));
    CAIRN_TRY(read_heads(meta));
    CAIRN_TRY(part_width, meta.count_or("embedding_length_per_layer_input", 0));
    CAIRN_TRY(expert_count, meta.count_or("expert_count", 0));
    if (expert_count > 0) {
      CAIRN_TRY(expert_used_count, meta.count("expert_used_count"));
      CAIRN_TRY(expert_width, meta.count("expert_feed_forward_length"));
      if (expert_used_count < 1 || expert_width < 1) {
        return fail(ErrorCode::invalid_data,
                    "{}: expected at least one expert, found {} of width {}",
                    meta.key("expert_used_count"), expert_used_count, expert_width);
      }
    }
    CAIRN_TRY(logit_cap, meta.real_or("final_logit_softcapping", 0.0f));
    return Ok{};
  }

  Status read_heads(const gguf::Metadata& meta) {
    CAIRN_TRY(window_head_dim, meta.count_or("attention.key_length_swa", key_dim));
    CAIRN_TRY(const int32_t window_value_dim,
              meta.count_or("attention.value_length_swa", value_dim));
    if (key_dim != value_dim || window_head_dim != window_value_dim) {
      return fail(ErrorCode::unsupported, "{}: expected that of keys, {} and {}, found {} and {}",
                  meta.key("attention.value_length"), key_dim, window_head_dim, value_dim,
                  window_value_dim);
    }
    // Each kind of layer rotates whole heads; the factors of `rope_freqs` switch pairs off.
    CAIRN_TRY(rope, read_rope(meta, key_dim, RopeStyle::halves));
    CAIRN_TRY(const float base, meta.real_or("rope.freq_base_swa", 10000.0f));
    CAIRN_TRY(const int32_t dims, meta.count_or("rope.dimension_count_swa", window_head_dim));
    if (dims != window_head_dim || dims % 2 != 0) {
      return fail(ErrorCode::unsupported, "{}: expected the even width {} of a head, found {}",
                  meta.key("rope.dimension_count_swa"), window_head_dim, dims);
    }
    window_rope = plain_rope(base, dims, RopeStyle::halves);
    return Ok{};
  }
  int32_t head_dim(int32_t layer) const { return window(layer) > 0 ? window_head_dim : key_dim; }
  bool shares_kv(int32_t layer) const { return kv_layers[size_t(layer)] != layer; }

  blocks::AttentionShape attention(int32_t layer) const {
    return {.head_count = head_counts[size_t(layer)],
            .kv_head_count = kv_head_counts[size_t(layer)],
            .key_dim = head_dim(layer),
            .value_dim = head_dim(layer)};
  }
};

struct Layer {
  Vector attn_norm, q_norm, k_norm, post_attn_norm, mlp_norm, post_mlp_norm, output_scale;
  Weight q, k, v, out;
  blocks::GatedMlp mlp;
  blocks::Experts experts;
  Vector router_gain, experts_norm, post_dense_norm, post_experts_norm;
  blocks::LayerInputGate input;
};

class Gemma4 final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t layer) const override {
    if (c_.shares_kv(layer)) return {State::shared(c_.kv_layers[size_t(layer)])};
    return Decoder::layer_states(layer);
  }

  Tensor forward(Graph& g) const override {
    const RopeSpec rope = with_factors(c_.rope, rope_factors_);
    Tensor x = g.embed(embedding_and_head_.embedding, blocks::root_of(c_.size.width));
    const Tensor parts =
        c_.part_width > 0 ? blocks::layer_inputs(g, x, inputs_, c_.norm_epsilon) : Tensor{};
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.attn_norm);
      const Tensor a = attention(g, layer, h, c_.window(layer) > 0 ? c_.window_rope : rope);
      x = g.add(x, norm(g, g.matmul(l.out, a), l.post_attn_norm));
      x = g.add(x, norm(g, feed_forward(g, l, x), l.post_mlp_norm));
      if (c_.part_width > 0) {
        const Tensor part = g.columns(parts, layer * c_.part_width, c_.part_width);
        x = g.add(x, blocks::gated_layer_input(g, x, part, l.input, c_.norm_epsilon));
      }
      if (l.output_scale.exists()) x = g.scale(x, l.output_scale.values[0]);
    }
    return blocks::softcap(g, logits(g, x), c_.logit_cap);
  }

 private:
  Status expect_unneeded(int32_t layer, const Program& program) const override {
    for (int32_t reader = layer + 1; reader < c_.size.layer_count; ++reader) {
      if (c_.kv_layers[size_t(reader)] != layer || program.skips(reader)) continue;
      return fail(ErrorCode::unsupported,
                  "layer {}: expected it to run, as layer {} reads its keys and values, found it "
                  "skipped",
                  layer, reader);
    }
    return Ok{};
  }

  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const int32_t width = c_.size.width;
    const int32_t head_dim = c_.head_dim(layer);
    const int32_t kv_width = c_.kv_head_counts[size_t(layer)] * head_dim;
    const int32_t q_width = c_.head_counts[size_t(layer)] * head_dim;
    p.vector("attn_norm.weight", l.attn_norm, {width});
    p.matrix("attn_q.weight", l.q, {width, q_width});
    p.vector("attn_q_norm.weight", l.q_norm, {head_dim});
    if (!c_.shares_kv(layer)) {
      p.matrix("attn_k.weight", l.k, {width, kv_width});
      p.vector("attn_k_norm.weight", l.k_norm, {head_dim});
      p.optional_matrix("attn_v.weight", l.v, {width, kv_width});
    }
    p.matrix("attn_output.weight", l.out, {q_width, width});
    p.vector("post_attention_norm.weight", l.post_attn_norm, {width});
    p.vector("ffn_norm.weight", l.mlp_norm, {width});
    l.mlp.parameters(p, width, c_.mlp_widths[size_t(layer)]);
    if (c_.expert_count > 0) expert_parameters(p, l);
    p.vector("post_ffw_norm.weight", l.post_mlp_norm, {width});
    if (c_.part_width > 0) l.input.parameters(p, width, c_.part_width);
    p.optional_vector("layer_output_scale.weight", l.output_scale, {1});
  }

  void expert_parameters(Parameters& p, Layer& l) {
    const int32_t width = c_.size.width;
    p.vector("ffn_gate_inp.scale", l.router_gain, {width});
    p.vector("pre_ffw_norm_2.weight", l.experts_norm, {width});
    l.experts.parameters(p, width, c_.expert_width, c_.expert_count);
    p.vector("post_ffw_norm_1.weight", l.post_dense_norm, {width});
    p.vector("post_ffw_norm_2.weight", l.post_experts_norm, {width});
  }

  void global_parameters(Parameters& p) override {
    p.vector("rope_freqs.weight", rope_factors_, {int64_t(c_.rope.frequencies.size())});
    if (c_.part_width > 0) {
      inputs_.parameters(p, c_.size.width, c_.part_width, c_.size.layer_count,
                         c_.size.vocabulary_count);
    }
  }

  Tensor attention(Graph& g, int32_t layer, Tensor h, const RopeSpec& rope) const {
    const Layer& l = layers_[size_t(layer)];
    const int32_t head_dim = c_.head_dim(layer);
    const AttentionSpec spec = c_.scores(layer);
    const Tensor q = g.rms_norm(g.matmul(l.q, h), l.q_norm, c_.norm_epsilon, head_dim);
    const Tensor turned_q = g.rope(q, head_dim, rope);
    if (c_.shares_kv(layer)) return g.attend_shared(layer, turned_q, spec);
    const Tensor keys = g.matmul(l.k, h);
    const Tensor k = g.rms_norm(keys, l.k_norm, c_.norm_epsilon, head_dim);
    const Tensor values = l.v.exists() ? g.matmul(l.v, h) : keys;
    const Tensor v = g.rms_norm(values, {}, c_.norm_epsilon, head_dim);
    return g.attend(layer, turned_q, g.rope(k, head_dim, rope), v, spec);
  }

  // With experts, these and the dense block both read the stream, each behind a norm of its own,
  // and the router reads it behind a third.
  Tensor feed_forward(Graph& g, const Layer& l, Tensor x) const {
    const Tensor m = norm(g, x, l.mlp_norm);
    const Tensor dense = blocks::gated_mlp(g, m, l.mlp, Activation::gelu_tanh);
    if (c_.expert_count == 0) return dense;
    const float router_scale = float(1.0 / std::sqrt(double(c_.size.width)));
    const Tensor r = g.scale(norm(g, x, l.router_gain), router_scale);
    const Routing routing =
        g.route(g.matmul(l.experts.router, r), {.expert_used_count = c_.expert_used_count,
                                                .score = RouterScore::softmax_all,
                                                .normalize = true});
    const Tensor e = norm(g, x, l.experts_norm);
    const Tensor routed = blocks::mixture(g, e, l.experts, routing, Activation::gelu_tanh);
    return g.add(norm(g, dense, l.post_dense_norm), norm(g, routed, l.post_experts_norm));
  }

  blocks::LayerInputs inputs_;
  Vector rope_factors_;
};

}  // namespace gemma4

extern const Architecture arch_gemma4;
constinit const Architecture arch_gemma4 = architecture<gemma4::Gemma4>("gemma4");

}  // namespace cairn::models
