// ModernBERT (Warner et al., 2024): an encoder with norms before its blocks, rotated positions and
// gated feed-forward blocks, all without biases. The first of three layers sees everything, the
// others half of a window on each side, with a rotation of their own. The first layer's input is
// normalised already.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/encoder.h"

namespace cairn::models {

namespace {

struct Config : EncoderConfig {
  std::vector<int32_t> windows;  // By layer; 0: sees all.
  RopeSpec rope, window_rope;
  Activation activation = Activation::gelu_erf;
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

// A period says that the first layer of each sees everything; or there is a mark for each layer.
Result<std::vector<int32_t>> read_first_dense_windows(const gguf::Metadata& meta, int32_t count) {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  CAIRN_TRY(const int32_t window, meta.count_or("attention.sliding_window", 0));
  std::vector<int32_t> windows(size_t(count), window);
  const gguf::Value* pattern = meta.fields().find(meta.key(kPattern));
  if (pattern != nullptr && pattern->is_array()) {
    CAIRN_TRY(const std::vector<int32_t> marks, meta.per_layer(kPattern, count));
    for (size_t layer = 0; layer < windows.size(); ++layer) windows[layer] *= marks[layer] != 0;
    return windows;
  }
  CAIRN_TRY(const int32_t period, meta.count_or(kPattern, 3));
  for (size_t layer = 0; period > 0 && layer < windows.size(); layer += size_t(period)) {
    windows[layer] = 0;
  }
  return windows;
}

Result<Activation> read_activation(const gguf::Metadata& meta) {
  CAIRN_TRY(const std::string_view said, meta.text_or("hidden_activation", "gelu"));
  if (said == "gelu") return Activation::gelu_erf;
  if (said == "silu") return Activation::silu;
  return fail(ErrorCode::unsupported, "{}: expected gelu or silu, found \"{}\"",
              meta.key("hidden_activation"), said);
}

class ModernBert final : public Encoder<Config, Layer> {
 public:
  using Encoder::Encoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(EncoderConfig common, read_encoder_config(meta));
    Config c{std::move(common), {}, {}, {}};
    CAIRN_TRY(c.windows, read_first_dense_windows(meta, c.size.layer_count));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(const float window_base, meta.real_or("rope.freq_base_swa", 10000.0f));
    CAIRN_TRY(c.window_rope, read_unscaled_rope(meta, window_base, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(c.activation, read_activation(meta));
    return c;
  }

  // Its classifier has another shape than those of BERT.
  bool makes_scores() const override { return false; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.layer_norm(embeddings_.embed(g), norm_, {}, c_.norm_epsilon);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const int32_t window = c_.windows[size_t(layer)];
      const RopeSpec& rope = window > 0 ? c_.window_rope : c_.rope;
      AttentionSpec spec = attention_spec(layer);
      spec.window = window;
      const Tensor h = layer == 0 ? x : g.layer_norm(x, l.attn_norm, {}, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a =
          g.attend(layer, g.rope(q, c_.key_dim, rope), g.rope(k, c_.key_dim, rope), v, spec);
      x = g.add(x, g.matmul(l.attn.out, a));
      const Tensor m = g.layer_norm(x, l.mlp_norm, {}, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, c_.activation));
    }
    return end(g, g.layer_norm(x, last_norm_, {}, c_.norm_epsilon));
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    if (layer > 0) p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.joined_parameters(p, c_.size.width, c_.mlp_width);
  }

  void global_parameters(Parameters& p) override {
    p.vector("token_embd_norm.weight", norm_, {c_.size.width});
    p.vector("output_norm.weight", last_norm_, {c_.size.width});
  }

  Vector norm_, last_norm_;
};

}  // namespace

extern const Architecture arch_modern_bert;
constinit const Architecture arch_modern_bert = architecture<ModernBert>("modern-bert");

}  // namespace cairn::models
