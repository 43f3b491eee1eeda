// Reading the common part of a decoder's metadata.
#include "models/common/config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace cairn::models {

namespace {

Result<int32_t> vocabulary_count(const gguf::Metadata& meta) {
  if (meta.fields().find("tokenizer.ggml.tokens") != nullptr) {
    CAIRN_TRY(const auto tokens, meta.fields().get<gguf::Strings>("tokenizer.ggml.tokens"));
    return int32_t(tokens.size());
  }
  return meta.count("vocab_size");
}

Status expect_used_experts(const gguf::Metadata& meta) {
  CAIRN_TRY(const int32_t expert_count, meta.count_or("expert_count", 0));
  if (expert_count == 0) return Ok{};
  CAIRN_TRY(const int32_t used_count, meta.count("expert_used_count"));
  if (used_count > 0) return Ok{};
  return fail(ErrorCode::invalid_data, "{}: expected 1 to {} experts, found 0",
              meta.key("expert_used_count"), expert_count);
}

// The pair at which a wave turns `rotations` times within the original context, as a real number.
double yarn_pair(double rotations, double dims, double base, double original_context) {
  return dims * std::log(original_context / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(base));
}

double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : 0.1 * multiplier * std::log(factor) + 1.0;
}

Status scale_yarn(const gguf::Metadata& meta, double base, double factor, YarnRange range,
                  RopeSpec& rope) {
  CAIRN_TRY(const int32_t original, meta.count("rope.scaling.original_context_length"));
  CAIRN_TRY(const float beta_fast, meta.real_or("rope.scaling.yarn_beta_fast", 32.0f));
  CAIRN_TRY(const float beta_slow, meta.real_or("rope.scaling.yarn_beta_slow", 1.0f));
  CAIRN_TRY(const float log_multiplier, meta.real_or("rope.scaling.yarn_log_multiplier", 0.0f));
  CAIRN_TRY(const float given_share, meta.real_or("rope.scaling.yarn_ext_factor", -1.0f));
  CAIRN_TRY(const float yarn_factor, meta.real_or("rope.scaling.yarn_attn_factor", 1.0f));
  const double share = given_share < 0 ? 1.0 : double(given_share);  // Below 0: not given.
  const double dims = 2.0 * double(rope.frequencies.size());
  double low = yarn_pair(beta_fast, dims, base, original);
  double high = yarn_pair(beta_slow, dims, base, original);
  if (range == YarnRange::whole_pairs) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(0.0, low);
  high = std::min(dims - 1, high);
  for (size_t pair = 0; pair < rope.frequencies.size(); ++pair) {
    const double ramp = (double(pair) - low) / std::max(0.001, high - low);
    const double kept = (1 - std::clamp(ramp, 0.0, 1.0)) * share;
    rope.frequencies[pair] *= (1 - kept) / factor + kept;
  }
  rope.magnitude *= double(yarn_factor) * yarn_magnitude(factor, 1.0);
  if (log_multiplier != 0) rope.magnitude /= yarn_magnitude(factor, log_multiplier);
  return Ok{};
}

}  // namespace

Result<DecoderConfig> read_decoder_config(const gguf::Metadata& meta) {
  DecoderConfig c;
  CAIRN_TRY(expect_used_experts(meta));
  CAIRN_TRY(c.size.width, meta.count("embedding_length"));
  CAIRN_TRY(c.size.layer_count, meta.count("block_count"));
  CAIRN_TRY(c.size.vocabulary_count, vocabulary_count(meta));
  CAIRN_TRY(c.size.context_length, meta.count("context_length"));
  CAIRN_TRY(c.head_counts, meta.per_layer("attention.head_count", c.size.layer_count));
  const int32_t heads = *std::max_element(c.head_counts.begin(), c.head_counts.end());
  if (meta.has("attention.head_count_kv")) {
    CAIRN_TRY(c.kv_head_counts, meta.per_layer("attention.head_count_kv", c.size.layer_count));
  } else {
    c.kv_head_counts = c.head_counts;
  }
  for (size_t layer = 0; layer < c.head_counts.size(); ++layer) {
    const int32_t kv_heads = c.kv_head_counts[layer];
    if (kv_heads == 0 || (c.head_counts[layer] > 0 && c.head_counts[layer] % kv_heads == 0)) {
      continue;
    }
    return fail(ErrorCode::invalid_data, "{}: layer {}: expected a divisor of {} heads, found {}",
                meta.key("attention.head_count_kv"), layer, c.head_counts[layer], kv_heads);
  }
  if (heads > 0 && !meta.has("attention.key_length") && c.size.width % heads != 0) {
    return fail(ErrorCode::invalid_data, "{}: expected a divisor of the width {}, found {}",
                meta.key("attention.head_count"), c.size.width, heads);
  }
  const int32_t head_dim = heads > 0 ? c.size.width / heads : 0;  // Models without attention: none.
  CAIRN_TRY(c.key_dim, meta.count_or("attention.key_length", head_dim));
  CAIRN_TRY(c.value_dim, meta.count_or("attention.value_length", head_dim));
  CAIRN_TRY(const auto widths, meta.per_layer_or("feed_forward_length", c.size.layer_count, 0));
  c.mlp_width = *std::max_element(widths.begin(), widths.end());
  constexpr std::string_view kRms = "attention.layer_norm_rms_epsilon";
  constexpr std::string_view kCentred = "attention.layer_norm_epsilon";
  const bool is_centred = meta.has(kCentred) && !meta.has(kRms);
  CAIRN_TRY(c.norm_epsilon, meta.real(is_centred ? kCentred : kRms));
  if (c.key_dim > 0) c.attention_scale = softmax_scale(c.key_dim);
  CAIRN_TRY(c.original_context,
            meta.count_or("rope.scaling.original_context_length", c.size.context_length));
  return c;
}

Status DecoderConfig::read(const gguf::Metadata& meta) {
  CAIRN_TRY(*this, read_attending_config(meta));
  return Ok{};
}

Status HybridConfig::read(const gguf::Metadata& meta) {
  CAIRN_TRY(static_cast<DecoderConfig&>(*this), read_decoder_config(meta));
  return Ok{};
}

Status SlopedConfig::read(const gguf::Metadata& meta, float unsaid_bias) {
  CAIRN_TRY(DecoderConfig::read(meta));
  CAIRN_TRY(slopes, read_slopes(meta, *this, unsaid_bias));
  return Ok{};
}

Result<blocks::Mamba1Shape> read_mamba1(const gguf::Metadata& meta) {
  blocks::Mamba1Shape shape;
  CAIRN_TRY(shape.inner_width, meta.count("ssm.inner_size"));
  CAIRN_TRY(shape.step_rank, meta.count("ssm.time_step_rank"));
  CAIRN_TRY(shape.state_size, meta.count("ssm.state_size"));
  CAIRN_TRY(shape.conv_kernel, meta.count("ssm.conv_kernel"));
  return shape;
}

Result<blocks::Mamba2Shape> read_mamba2(const gguf::Metadata& meta) {
  blocks::Mamba2Shape shape;
  CAIRN_TRY(shape.inner_width, meta.count("ssm.inner_size"));
  CAIRN_TRY(shape.head_count, meta.count("ssm.time_step_rank"));
  CAIRN_TRY(shape.state_size, meta.count("ssm.state_size"));
  CAIRN_TRY(shape.group_count, meta.count("ssm.group_count"));
  CAIRN_TRY(shape.conv_kernel, meta.count("ssm.conv_kernel"));
  if (shape.inner_width % shape.head_count != 0 || shape.head_count % shape.group_count != 0) {
    return fail(ErrorCode::invalid_data,
                "{}: expected a divisor of {} and a multiple of {} groups, found {}",
                meta.key("ssm.time_step_rank"), shape.inner_width, shape.group_count,
                shape.head_count);
  }
  return shape;
}

float softmax_scale(int32_t key_dim) {
  return float(1.0 / std::sqrt(double(key_dim)));
}

Result<std::vector<int32_t>> read_windows(const gguf::Metadata& meta, int32_t layer_count,
                                          int32_t period, int32_t window) {
  CAIRN_TRY(window, meta.count_or("attention.sliding_window", window));
  std::vector<int32_t> windows(size_t(layer_count), window);
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const gguf::Value* pattern = meta.fields().find(meta.key(kPattern));
  if (pattern != nullptr && pattern->is_array()) {
    CAIRN_TRY(const std::vector<int32_t> marks, meta.per_layer(kPattern, layer_count));
    for (size_t layer = 0; layer < windows.size(); ++layer) {
      if (marks[layer] == 0) windows[layer] = 0;
    }
    return windows;
  }
  CAIRN_TRY(const int32_t layers, meta.count_or(kPattern, period));
  for (size_t layer = 0; layer < windows.size(); ++layer) {
    if (layers > 0 && int32_t(layer) % layers == layers - 1) windows[layer] = 0;
  }
  return windows;
}

Result<std::vector<int32_t>> read_same_windows(const gguf::Metadata& meta, int32_t layer_count) {
  CAIRN_TRY(const int32_t window, meta.count_or("attention.sliding_window", 0));
  return std::vector<int32_t>(size_t(layer_count), window);
}

Result<std::vector<float>> read_slopes(const gguf::Metadata& meta, const DecoderConfig& c,
                                       float unsaid) {
  CAIRN_TRY(const float bias, meta.real_or("attention.max_alibi_bias", unsaid));
  if (!(bias > 0)) {
    return fail(ErrorCode::unsupported, "{}: expected more than 0, found {}",
                meta.key("attention.max_alibi_bias"), bias);
  }
  const int32_t head_count = c.head_counts[0];
  for (const int32_t count : c.head_counts) {
    if (count == head_count) continue;
    return fail(ErrorCode::unsupported, "{}: expected {} in all layers, found {}",
                meta.key("attention.head_count"), head_count, count);
  }
  // As many heads as the largest power of two share out the bias evenly; those that are left stand
  // between the first ones.
  const int32_t even_count = int32_t(std::bit_floor(uint32_t(head_count)));
  std::vector<float> slopes;
  for (int32_t head = 0; head < head_count; ++head) {
    const double share =
        head < even_count ? (head + 1.0) / even_count : (head - even_count + 0.5) / even_count;
    slopes.push_back(float(std::exp2(-double(bias) * share)));
  }
  return slopes;
}

Status expect_attention(const gguf::Metadata& meta, const DecoderConfig& c) {
  for (size_t layer = 0; layer < c.head_counts.size(); ++layer) {
    const int32_t heads = c.head_counts[layer], kv_heads = c.kv_head_counts[layer];
    if (heads > 0 && kv_heads > 0 && heads % kv_heads == 0) continue;
    return fail(ErrorCode::invalid_data, "{}: layer {}: expected a divisor of {} heads, found {}",
                meta.key("attention.head_count_kv"), layer, heads, kv_heads);
  }
  return Ok{};
}

Result<DecoderConfig> read_attending_config(const gguf::Metadata& meta) {
  CAIRN_TRY(DecoderConfig c, read_decoder_config(meta));
  CAIRN_TRY(expect_attention(meta, c));
  return c;
}

Status drop_mtp_layers(const gguf::Metadata& meta, DecoderConfig& c) {
  CAIRN_TRY(const int32_t guessing_count, meta.count_or("nextn_predict_layers", 0));
  if (guessing_count >= c.size.layer_count) {
    return fail(ErrorCode::invalid_data, "{}: expected fewer than {} layers, found {}",
                meta.key("nextn_predict_layers"), c.size.layer_count, guessing_count);
  }
  c.size.layer_count -= guessing_count;
  return Ok{};
}

Result<std::vector<int32_t>> layers_of_kv(const gguf::Metadata& meta,
                                          std::span<const int32_t> windows, int32_t shared_count) {
  const int32_t layer_count = int32_t(windows.size());
  const int32_t own_count = std::max(0, layer_count - shared_count);
  std::vector<int32_t> layers;
  for (int32_t layer = 0; layer < layer_count; ++layer) {
    int32_t source = layer;
    if (layer >= own_count) {
      source = own_count - 1;
      while (source >= 0 && windows[size_t(source)] != windows[size_t(layer)]) --source;
    }
    if (source < 0) {
      return fail(ErrorCode::invalid_data,
                  "{}: expected a layer with the window of layer {} before the shared ones, found "
                  "none in the first {}",
                  meta.key("attention.shared_kv_layers"), layer, own_count);
    }
    layers.push_back(source);
  }
  return layers;
}

Result<RopeSpec> read_unscaled_rope(const gguf::Metadata& meta, float base, int32_t head_dim,
                                    RopeStyle style) {
  CAIRN_TRY(const int32_t dims, meta.count_or("rope.dimension_count", head_dim));
  if (dims % 2 != 0 || dims > head_dim) {
    return fail(ErrorCode::invalid_data, "{}: expected an even number of at most {}, found {}",
                meta.key("rope.dimension_count"), head_dim, dims);
  }
  return plain_rope(base, dims, style);
}

Result<RopeSpec> read_window_rope(const gguf::Metadata& meta, float unsaid_base, int32_t head_dim) {
  CAIRN_TRY(const float base, meta.real_or("rope.freq_base_swa", unsaid_base));
  return read_unscaled_rope(meta, base, head_dim, RopeStyle::halves);
}

RopeSpec plain_rope(float base, int32_t dims, RopeStyle style) {
  RopeSpec rope{.style = style, .frequencies = {}};
  for (int32_t pair = 0; pair < dims / 2; ++pair) {
    rope.frequencies.push_back(std::pow(double(base), -2.0 * pair / dims));
  }
  return rope;
}

Result<RopeSpec> read_rope(const gguf::Metadata& meta, int32_t head_dim, RopeStyle style,
                           YarnRange range) {
  CAIRN_TRY(const float base, meta.real_or("rope.freq_base", 10000.0f));
  CAIRN_TRY(RopeSpec rope, read_unscaled_rope(meta, base, head_dim, style));
  CAIRN_TRY(const float magnitude, meta.real_or("rope.scaling.attn_factor", 1.0f));
  rope.magnitude = double(magnitude);
  // A factor without a kind is linear.
  const bool has_factor = meta.has("rope.scaling.factor");
  const std::string_view unsaid = has_factor ? "linear" : "none";
  CAIRN_TRY(const std::string_view scaling, meta.text_or("rope.scaling.type", unsaid));
  if (scaling == "none" || scaling == "longrope") return rope;
  CAIRN_TRY(const float factor, meta.real("rope.scaling.factor"));
  if (scaling == "linear") {
    for (double& frequency : rope.frequencies) frequency /= double(factor);
    return rope;
  }
  if (scaling == "yarn") {
    CAIRN_TRY(scale_yarn(meta, base, factor, range, rope));
    return rope;
  }
  return fail(ErrorCode::unsupported, "{}: expected none, linear, yarn or longrope, found \"{}\"",
              meta.key("rope.scaling.type"), scaling);
}

RopeSpec with_factors(RopeSpec rope, const Vector& factors) {
  for (size_t pair = 0; pair < factors.values.size(); ++pair) {
    rope.frequencies[pair] /= double(factors.values[pair]);
  }
  return rope;
}

}  // namespace cairn::models
