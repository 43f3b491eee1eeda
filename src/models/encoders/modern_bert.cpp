// ModernBERT (Warner et al., 2024): an encoder with norms before its blocks, rotated positions and
// gated feed-forward blocks, all without biases. The first of three layers sees everything, the
// others half of a window on each side, with a rotation of their own. The first layer's input is
// normalised already.
#include "models/common/encoder.h"

namespace cairn::models {

namespace modern_bert {

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

struct Config : RotaryConfig<RopeStyle::halves, EncoderConfig> {
  RopeSpec window_rope;
  Activation activation = Activation::gelu_erf;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(windows, read_first_dense_windows(meta, size.layer_count));
    CAIRN_TRY(window_rope, read_window_rope(meta, 10000.0f, key_dim));
    CAIRN_TRY(activation, read_activation(meta));
    return Ok{};
  }
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::JoinedMlp mlp;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    if (layer > 0) p.vector("attn_norm.weight", attn_norm, {c.size.width});
    attn.parameters(p, c.size.width, c.attention(layer));
    p.vector("ffn_norm.weight", mlp_norm, {c.size.width});
    mlp.parameters(p, c.size.width, c.mlp_width);
  }
};

class ModernBert final : public Encoder<Config, Layer> {
 public:
  // Its classifier has another shape than those of BERT.
  bool makes_scores() const override { return false; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.layer_norm(embeddings_.embed(g), norm_, {}, c_.norm_epsilon);
    for (const auto& [layer, l] : layers()) {
      const RopeSpec& rope = c_.window(layer) > 0 ? c_.window_rope : c_.rope;
      const Tensor h = layer == 0 ? x : g.layer_norm(x, l.attn_norm, {}, c_.norm_epsilon);
      x = g.add(x, rotary_attention(g, layer, h, l.attn, rope));
      const Tensor m = g.layer_norm(x, l.mlp_norm, {}, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, c_.activation));
    }
    return end(g, g.layer_norm(x, last_norm_, {}, c_.norm_epsilon));
  }

 private:
  void global_parameters(Parameters& p) override {
    p.vector("token_embd_norm.weight", norm_, {c_.size.width});
    p.vector("output_norm.weight", last_norm_, {c_.size.width});
  }

  Vector norm_, last_norm_;
};

}  // namespace modern_bert

extern const Architecture arch_modern_bert;
constinit const Architecture arch_modern_bert =
    architecture<modern_bert::ModernBert>("modern-bert");

}  // namespace cairn::models
