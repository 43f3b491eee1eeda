// Sizes of synthetic models as tables, and their keys.
#include "synth/synth_shape.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace cairn::synth {

namespace {

constexpr SynthField kFields[] = {
    {"layers", &SynthShape::layers, 1, 1024, "layers"},
    {"width", &SynthShape::width, 1, 1 << 17, "width of the residual stream"},
    {"heads", &SynthShape::heads, 1, 1024, "attention heads"},
    {"kv-heads", &SynthShape::kv_heads, 1, 1024, "heads of keys and values"},
    {"head-dim", &SynthShape::head_dim, 2, 1024, "width of a head"},
    {"mlp-width", &SynthShape::mlp_width, 1, 1 << 20, "inner width of the feed-forward block"},
    {"vocab", &SynthShape::vocabulary, 258, 400000, "tokens of the vocabulary"},
    {"context", &SynthShape::context, 1, 1 << 24, "positions that the model is made for"},
    {"experts", &SynthShape::experts, 0, 1024, "experts of a layer"},
    {"experts-used", &SynthShape::experts_used, 0, 1024, "experts that a token uses"},
    {"expert-width", &SynthShape::expert_width, 0, 1 << 20, "inner width of an expert"},
    {"attention-every", &SynthShape::attention_every, 0, 1024,
     "of so many layers one attends, the others recur (hybrid architectures)"},
    {"window", &SynthShape::window, 0, 1 << 24, "tokens that a windowed layer attends to (gemma)"},
    {"window-period", &SynthShape::window_period, 0, 1024,
     "of so many layers one attends to all, the others to a window (gemma)"},
    {"window-head-dim", &SynthShape::window_head_dim, 0, 1024,
     "width of a head in windowed layers (gemma4)"},
    {"shared-kv-layers", &SynthShape::shared_kv_layers, 0, 1023,
     "last layers that read the keys and values of earlier ones (gemma3n, gemma4)"},
    {"layer-input-width", &SynthShape::layer_input_width, 0, 65536,
     "width of each layer's own input (gemma3n, gemma4)"},
    {"predicting-layers", &SynthShape::predicting_layers, 0, 1,
     "layers behind the others that predict further tokens (qwen35, glm4moe, deepseek2)"},
};

constexpr int32_t kStateSize = 128;
constexpr int32_t kMamba1StateSize = 16;
constexpr int32_t kRecurrentHeadDim = 64;
constexpr int32_t kDeltaDim = 128;  // Of keys and of values.
constexpr int32_t kDeltaKeyHeads = 16;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Gated delta nets instead of Mamba-2.
bool has_delta_nets(const SynthShape& shape) {
  return contains(shape.architecture, "qwen35") || contains(shape.architecture, "qwen3next");
}

bool is_granite(const SynthShape& shape) {
  return contains(shape.architecture, "granite");
}

// With windows; the first Gemma has none.
bool is_gemma(const SynthShape& shape) {
  return contains(shape.architecture, "gemma") && shape.architecture != "gemma";
}

// With keys and values that layers share, and an input of each layer's own.
bool has_layer_inputs(const SynthShape& shape) {
  return contains(shape.architecture, "gemma3n") || contains(shape.architecture, "gemma4");
}

// Inner widths by layer. The small models of Gemma 4 double those of the layers that share keys and
// values.
std::vector<int32_t> gemma_mlp_widths(const SynthShape& shape) {
  std::vector<int32_t> widths(size_t(shape.layers), shape.mlp_width);
  if (!contains(shape.architecture, "gemma4")) return widths;
  const int32_t first_shared = std::max(0, shape.layers - shape.shared_kv_layers);
  std::fill(widths.begin() + first_shared, widths.end(), 2 * shape.mlp_width);
  return widths;
}

void add_gemma(gguf::Writer& writer, const SynthShape& shape) {
  const std::string prefix = shape.architecture + ".";
  std::vector<int32_t> is_windowed;
  for (int32_t layer = 0; layer < shape.layers; ++layer) {
    const bool is_global =
        shape.window_period > 0 && layer % shape.window_period == shape.window_period - 1;
    is_windowed.push_back(is_global ? 0 : 1);
  }
  writer.add(prefix + "attention.sliding_window", uint32_t(shape.window));
  writer.add_array(prefix + "attention.sliding_window_pattern",
                   std::span<const int32_t>(is_windowed));
  if (contains(shape.architecture, "gemma2")) {
    writer.add(prefix + "attn_logit_softcapping", 50.0f);
  } else {
    writer.add(prefix + "rope.freq_base_swa", 10000.0f);
  }
  if (!contains(shape.architecture, "gemma3")) {
    writer.add(prefix + "final_logit_softcapping", 30.0f);
  }
  if (shape.window_head_dim > 0) {
    writer.add(prefix + "attention.key_length_swa", uint32_t(shape.window_head_dim));
    writer.add(prefix + "attention.value_length_swa", uint32_t(shape.window_head_dim));
    writer.add(prefix + "rope.dimension_count_swa", uint32_t(shape.window_head_dim));
  }
  if (!has_layer_inputs(shape)) return;
  writer.add(prefix + "attention.shared_kv_layers", uint32_t(shape.shared_kv_layers));
  writer.add(prefix + "embedding_length_per_layer_input", uint32_t(shape.layer_input_width));
  if (!contains(shape.architecture, "gemma3n")) return;
  writer.add(prefix + "altup.num_inputs", uint32_t(4));
  writer.add(prefix + "altup.active_idx", uint32_t(0));
  // The first third keeps what a normal distribution has above its 95th percentile.
  std::vector<float> tails(size_t(shape.layers), -std::numeric_limits<float>::infinity());
  std::fill_n(tails.begin(), (shape.layers + 2) / 3, 1.6448535f);
  writer.add_array(prefix + "activation_sparsity_scale", std::span<const float>(tails));
}

// That nothing is set that would change no key of the file.
Status check_is_known(const SynthShape& shape) {
  const bool has_windows = is_gemma(shape);
  const struct {
    int32_t SynthShape::*member;
    bool is_known;
  } rows[] = {{&SynthShape::window, has_windows},
              {&SynthShape::window_period, has_windows},
              {&SynthShape::window_head_dim, contains(shape.architecture, "gemma4")},
              {&SynthShape::shared_kv_layers, has_layer_inputs(shape)},
              {&SynthShape::layer_input_width, has_layer_inputs(shape)}};
  for (const auto& row : rows) {
    if (row.is_known || shape.*row.member == 0) continue;
    const auto field = std::find_if(std::begin(kFields), std::end(kFields),
                                    [&](const SynthField& f) { return f.member == row.member; });
    return fail(ErrorCode::invalid_argument, "{}: expected 0 for {}, found {}", field->name,
                shape.architecture, shape.*row.member);
  }
  if (shape.expert_width > 0 && shape.experts == 0) {
    return fail(ErrorCode::invalid_argument, "expert-width: expected 0 without experts, found {}",
                shape.expert_width);
  }
  return Ok{};
}

bool is_mamba_1(const SynthShape& shape) {
  return shape.architecture == "mamba" || shape.architecture == "jamba";
}

bool recurs(std::string_view architecture) {
  constexpr std::string_view kParts[] = {"hybrid",    "mamba",       "jamba",  "nemotron_h",
                                         "falcon-h1", "lfm2",        "qwen35", "qwen3next",
                                         "rwkv",      "kimi-linear", "plamo2"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return contains(architecture, part); });
}

// Twice the width in heads, at most 16 of them with keys of their own, as published models have it.
void add_delta_nets(gguf::Writer& writer, const SynthShape& shape) {
  const std::string prefix = shape.architecture + ".";
  const int32_t head_count = std::max(1, 2 * shape.width / kDeltaDim);
  const int32_t key_head_count = head_count % kDeltaKeyHeads == 0 ? kDeltaKeyHeads
                                 : head_count % 2 == 0            ? head_count / 2
                                                                  : 1;
  writer.add(prefix + "ssm.conv_kernel", uint32_t(4));
  writer.add(prefix + "ssm.inner_size", uint32_t(head_count * kDeltaDim));
  writer.add(prefix + "ssm.state_size", uint32_t(kDeltaDim));
  writer.add(prefix + "ssm.time_step_rank", uint32_t(head_count));
  writer.add(prefix + "ssm.group_count", uint32_t(key_head_count));
  writer.add(prefix + "full_attention_interval", uint32_t(shape.attention_every));
  // A quarter of a head rotates; its pairs are dealt out to three axes, equal for text.
  const int32_t pair_count = std::max(1, shape.head_dim / 8);
  writer.add(prefix + "rope.dimension_count", uint32_t(2 * pair_count));
  const int32_t third = pair_count / 3, rest = pair_count % 3;
  const int32_t sections[] = {third + (rest > 0), third + (rest > 1), third, 0};
  writer.add_array(prefix + "rope.dimension_sections", std::span<const int32_t>(sections));
}

// Heads of 64 where the width allows it; ranks as published models have them, about.
void add_rwkv(gguf::Writer& writer, const SynthShape& shape) {
  const std::string prefix = shape.architecture + ".";
  int32_t head_dim = kRecurrentHeadDim;
  while (shape.width % head_dim != 0) head_dim /= 2;
  const auto rank = uint32_t(32 * std::max(1, shape.width / 768));
  writer.add(prefix + "wkv.head_size", uint32_t(head_dim));
  writer.add(prefix + "attention.decay_lora_rank", rank);
  writer.add(prefix + "attention.iclr_lora_rank", rank);
  writer.add(prefix + "attention.value_residual_mix_lora_rank", rank);
  writer.add(prefix + "attention.gate_lora_rank", 2 * rank);
}

void add_recurrence(gguf::Writer& writer, const SynthShape& shape) {
  const std::string prefix = shape.architecture + ".";
  if (shape.architecture == "rwkv7") {
    add_rwkv(writer, shape);
    return;
  }
  if (has_delta_nets(shape)) {
    add_delta_nets(writer, shape);
    return;
  }
  if (shape.architecture == "kimi-linear") {
    writer.add(prefix + "ssm.conv_kernel", uint32_t(4));
    writer.add(prefix + "kda.head_dim", uint32_t(shape.head_dim));
    return;
  }
  if (contains(shape.architecture, "lfm2")) {
    writer.add(prefix + "shortconv.l_cache", uint32_t(3));
    return;
  }
  const int32_t inner = 2 * shape.width;
  const int32_t head_dim = inner % kRecurrentHeadDim == 0 ? kRecurrentHeadDim : 1;
  writer.add(prefix + "ssm.conv_kernel", uint32_t(4));
  writer.add(prefix + "ssm.inner_size", uint32_t(inner));
  if (is_mamba_1(shape)) {
    writer.add(prefix + "ssm.state_size", uint32_t(kMamba1StateSize));
    writer.add(prefix + "ssm.time_step_rank", uint32_t((shape.width + 15) / 16));
    return;
  }
  writer.add(prefix + "ssm.state_size", uint32_t(std::min(kStateSize, shape.width)));
  writer.add(prefix + "ssm.time_step_rank", uint32_t(inner / head_dim));
  // PLaMo 2 makes B and C without groups, and its files say that there are none.
  writer.add(prefix + "ssm.group_count", uint32_t(shape.architecture == "plamo2" ? 0 : 1));
}

// By layer: heads of keys and values where it attends, 0 where it recurs.
std::vector<int32_t> kv_heads_by_layer(const SynthShape& shape) {
  std::vector<int32_t> kv_heads(size_t(shape.layers), 0);
  for (int32_t layer = 0; layer < shape.layers; ++layer) {
    // In the middle of each group, as the published hybrids have it.
    if (layer % shape.attention_every == shape.attention_every / 2) {
      kv_heads[size_t(layer)] = shape.kv_heads;
    }
  }
  return kv_heads;
}

// Heads whose first two thirds do not rotate; the latent row is as wide as four heads. It is kept,
// or, of MiniCPM 3, what every head makes of it.
void add_latent_attention(gguf::Writer& writer, const SynthShape& shape) {
  const std::string prefix = shape.architecture + ".";
  const int32_t rotated = std::max(2, shape.head_dim / 4 * 2), latent = 4 * shape.head_dim;
  writer.add(prefix + "attention.head_count", uint32_t(shape.heads));
  const int32_t key_dim = shape.head_dim + rotated;
  const bool is_kept = shape.architecture != "minicpm3";
  const bool is_hybrid = shape.architecture == "kimi-linear";
  if (is_hybrid) {
    std::vector<int32_t> kv_heads = kv_heads_by_layer(shape);
    for (int32_t& count : kv_heads) count = std::min(1, count);
    writer.add_array(prefix + "attention.head_count_kv", std::span<const int32_t>(kv_heads));
  } else {
    writer.add(prefix + "attention.head_count_kv", uint32_t(is_kept ? 1 : shape.heads));
  }
  writer.add(prefix + "attention.key_length", uint32_t(is_kept ? latent + rotated : key_dim));
  writer.add(prefix + "attention.value_length", uint32_t(is_kept ? latent : shape.head_dim));
  if (is_kept) {
    writer.add(prefix + "attention.key_length_mla", uint32_t(key_dim));
    writer.add(prefix + "attention.value_length_mla", uint32_t(shape.head_dim));
  }
  writer.add(prefix + "attention.kv_lora_rank", uint32_t(latent));
  if (!is_hybrid) writer.add(prefix + "attention.q_lora_rank", uint32_t(2 * latent));
  writer.add(prefix + "rope.freq_base", shape.rope_base);
  writer.add(prefix + "rope.dimension_count", uint32_t(rotated));
}

void add_attention(gguf::Writer& writer, const SynthShape& shape) {
  const std::string prefix = shape.architecture + ".";
  const bool is_rwkv = shape.architecture.starts_with("rwkv");
  const bool is_centred = is_rwkv || shape.architecture == "jais";
  writer.add(
      prefix + (is_centred ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
      1e-5f);
  if (is_rwkv || shape.architecture.starts_with("mamba")) {
    writer.add(prefix + "attention.head_count", uint32_t(0));
    return;
  }
  if (shape.architecture == "deepseek2" || shape.architecture == "minicpm3" ||
      shape.architecture == "kimi-linear") {
    add_latent_attention(writer, shape);
    return;
  }
  writer.add(prefix + "attention.head_count", uint32_t(shape.heads));
  writer.add(prefix + "attention.key_length", uint32_t(shape.head_dim));
  writer.add(prefix + "attention.value_length", uint32_t(shape.head_dim));
  writer.add(prefix + "rope.freq_base", shape.rope_base);
  if (!has_delta_nets(shape)) {  // Else a part of them.
    writer.add(prefix + "rope.dimension_count", uint32_t(shape.head_dim));
  }
  if (shape.attention_every == 0 || has_delta_nets(shape)) {
    writer.add(prefix + "attention.head_count_kv", uint32_t(shape.kv_heads));
  } else {
    const std::vector<int32_t> kv_heads = kv_heads_by_layer(shape);
    writer.add_array(prefix + "attention.head_count_kv", std::span<const int32_t>(kv_heads));
  }
}

// A layer of Nemotron-H is one thing alone: every second of those that do not attend is a
// feed-forward block.
void add_mlp_widths(gguf::Writer& writer, const SynthShape& shape) {
  const std::string key = shape.architecture + ".feed_forward_length";
  if (is_gemma(shape)) {
    const std::vector<int32_t> widths = gemma_mlp_widths(shape);
    writer.add_array(key, std::span<const int32_t>(widths));
    return;
  }
  if (!contains(shape.architecture, "nemotron_h") || shape.attention_every == 0) {
    writer.add(key, uint32_t(shape.mlp_width));
    return;
  }
  std::vector<int32_t> widths = kv_heads_by_layer(shape);
  bool wide = true;
  for (int32_t& width : widths) {
    if (width == 0) wide = !wide;
    width = width == 0 && wide ? shape.mlp_width : 0;
  }
  writer.add_array(key, std::span<const int32_t>(widths));
}

void add_experts(gguf::Writer& writer, const SynthShape& shape) {
  const std::string prefix = shape.architecture + ".";
  const int32_t expert_width = shape.expert_width > 0 ? shape.expert_width : shape.mlp_width;
  writer.add(prefix + "expert_count", uint32_t(shape.experts));
  writer.add(prefix + "expert_used_count", uint32_t(shape.experts_used));
  writer.add(prefix + "expert_feed_forward_length", uint32_t(expert_width));
  if (has_delta_nets(shape)) {
    writer.add(prefix + "expert_shared_feed_forward_length", uint32_t(expert_width));
  }
  if (contains(shape.architecture, "nemotron_h")) {
    writer.add(prefix + "expert_shared_feed_forward_length", uint32_t(2 * expert_width));
    writer.add(prefix + "expert_weights_norm", true);
  }
  if (contains(shape.architecture, "deepseek2") || contains(shape.architecture, "kimi")) {
    writer.add(prefix + "expert_gating_func", uint32_t(2));
    writer.add(prefix + "expert_shared_count", uint32_t(1));
    writer.add(prefix + "expert_weights_norm", true);
    writer.add(prefix + "leading_dense_block_count", uint32_t(1));
  }
  if (contains(shape.architecture, "lfm2")) {
    writer.add(prefix + "expert_gating_func", uint32_t(2));  // A sigmoid each.
    writer.add(prefix + "leading_dense_block_count", uint32_t(1));
  }
}

SynthShape llama_8b() {
  return {.architecture = "llama",
          .layers = 32,
          .width = 4096,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .mlp_width = 14336,
          .vocabulary = 128256,
          .context = 131072,
          .tied_output = false,
          .rope_base = 500000.0f};
}

SynthShape gemma3_1b() {
  return {.architecture = "gemma3",
          .layers = 26,
          .width = 1152,
          .heads = 4,
          .kv_heads = 1,
          .head_dim = 256,
          .mlp_width = 6912,
          .vocabulary = 262144,
          .context = 32768,
          .window = 512,
          .window_period = 6,
          .rope_base = 1000000.0f};
}

SynthShape gemma4_e2b() {
  return {.architecture = "gemma4",
          .layers = 35,
          .width = 1536,
          .heads = 8,
          .kv_heads = 1,
          .head_dim = 512,
          .mlp_width = 6144,
          .vocabulary = 262144,
          .context = 131072,
          .window = 512,
          .window_period = 5,
          .window_head_dim = 256,
          .shared_kv_layers = 20,
          .layer_input_width = 256,
          .rope_base = 1000000.0f};
}

// Recurrent in every layer; what such a model was trained on does not bound what it can read.
SynthShape mamba(int32_t generation, int32_t layers, int32_t width, int32_t vocabulary) {
  return {.architecture = generation == 1 ? "mamba" : "mamba2",
          .layers = layers,
          .width = width,
          .vocabulary = vocabulary,
          .context = 1048576};
}

}  // namespace

std::span<const SynthField> synth_fields() {
  return kFields;
}

std::span<const SynthPreset> synth_presets() {
  static const SynthPreset presets[] = {
      {"llama-1b",
       "the shape of Llama 3.2 1B",
       {.architecture = "llama",
        .layers = 16,
        .width = 2048,
        .heads = 32,
        .kv_heads = 8,
        .head_dim = 64,
        .mlp_width = 8192,
        .vocabulary = 128256,
        .context = 131072,
        .rope_base = 500000.0f}},
      {"gemma3-1b", "the shape of Gemma 3 1B: five layers of six attend to a window", gemma3_1b()},
      {"gemma4-e2b",
       "the shape of Gemma 4 E2B: 20 layers share keys and values, each has inputs of its own",
       gemma4_e2b()},
      {"granite-h-1b",
       "near the shape of Granite 4 H 1B: Mamba-2 layers, one in ten attends",
       {.architecture = "granitehybrid",
        .layers = 40,
        .width = 1536,
        .heads = 12,
        .kv_heads = 4,
        .head_dim = 128,
        .mlp_width = 4096,
        .vocabulary = 100352,
        .context = 131072,
        .attention_every = 10}},
      {"qwen35-0.8b",
       "the shape of Qwen 3.5 0.8B: gated delta nets, one layer in four attends",
       {.architecture = "qwen35",
        .layers = 24,
        .width = 1024,
        .heads = 8,
        .kv_heads = 2,
        .head_dim = 256,
        .mlp_width = 3584,
        .vocabulary = 248320,
        .context = 262144,
        .attention_every = 4,
        .rope_base = 10000000.0f}},
      {"qwen3-moe-2b",
       "2 billion weights in 64 experts a layer, of which a token uses 8",
       {.architecture = "qwen3moe",
        .layers = 24,
        .width = 1024,
        .heads = 16,
        .kv_heads = 4,
        .head_dim = 128,
        .mlp_width = 3072,
        .vocabulary = 151936,
        .context = 40960,
        .experts = 64,
        .experts_used = 8,
        .expert_width = 512,
        .rope_base = 1000000.0f}},
      {"mamba2-370m", "the shape of Mamba-2 370M", mamba(2, 48, 1024, 50288)},
      {"mamba-130m", "the shape of Mamba 130M", mamba(1, 24, 768, 50280)},
      {"llama-8b", "the shape of Llama 3.1 8B", llama_8b()},
  };
  return presets;
}

namespace {

void shape_as_gemma(SynthShape& shape) {
  shape.window = 64;
  shape.window_period = contains(shape.architecture, "gemma2") ? 2 : 5;
  if (has_layer_inputs(shape)) {
    shape.layers = 10;
    shape.shared_kv_layers = 5;
    shape.layer_input_width = 32;
  }
  if (contains(shape.architecture, "gemma4")) shape.window_head_dim = shape.head_dim / 2;
}

}  // namespace

SynthShape default_shape(std::string_view architecture) {
  SynthShape shape{.architecture = std::string(architecture)};
  constexpr std::string_view kWithExperts[] = {"moe",     "next",      "gpt-oss", "llama4",
                                               "minimax", "deepseek2", "dbrx",    "kimi"};
  const bool has_experts =
      std::any_of(std::begin(kWithExperts), std::end(kWithExperts),
                  [&](std::string_view part) { return contains(architecture, part); });
  if (has_experts) {
    shape.experts = 8;
    shape.experts_used = 2;
    shape.expert_width = 256;
  }
  // Falcon-H1 attends and recurs in every layer.
  if (recurs(architecture) && architecture != "falcon-h1") shape.attention_every = 2;
  if (is_gemma(shape)) shape_as_gemma(shape);
  if (has_delta_nets(shape)) shape.attention_every = 4;
  return shape;
}

Result<SynthShape> preset_shape(std::string_view name) {
  std::string known;
  for (const SynthPreset& preset : synth_presets()) {
    if (preset.name == name) return preset.shape;
    known += (known.empty() ? "" : ", ") + std::string(preset.name);
  }
  return fail(ErrorCode::not_found, "preset: expected one of {}, found \"{}\"", known, name);
}

Status check(const SynthShape& shape) {
  for (const SynthField& field : kFields) {
    const int32_t value = shape.*field.member;
    if (value < field.min || value > field.max) {
      return fail(ErrorCode::invalid_argument, "{}: expected {} to {}, found {}", field.name,
                  field.min, field.max, value);
    }
  }
  if (shape.heads % shape.kv_heads != 0) {
    return fail(ErrorCode::invalid_argument, "kv-heads: expected a divisor of {} heads, found {}",
                shape.heads, shape.kv_heads);
  }
  if (has_delta_nets(shape) && shape.attention_every == 0) {
    return fail(ErrorCode::invalid_argument, "attention-every: expected at least 1 for {}, found 0",
                shape.architecture);
  }
  if (shape.head_dim % 2 != 0) {
    return fail(ErrorCode::invalid_argument, "head-dim: expected an even number, found {}",
                shape.head_dim);
  }
  if (shape.experts_used > shape.experts || (shape.experts > 0 && shape.experts_used == 0)) {
    return fail(ErrorCode::invalid_argument, "experts-used: expected 1 to {}, found {}",
                shape.experts, shape.experts_used);
  }
  return check_is_known(shape);
}

void add_shape(gguf::Writer& writer, const SynthShape& shape, uint64_t seed) {
  const std::string prefix = shape.architecture + ".";
  writer.add("general.architecture", shape.architecture);
  writer.add("general.type", "model");
  writer.add("general.name",
             fmt::format("synthetic {} (random weights, seed {})", shape.architecture, seed));
  writer.add(prefix + "block_count", uint32_t(shape.layers + shape.predicting_layers));
  if (shape.predicting_layers > 0) {
    writer.add(prefix + "nextn_predict_layers", uint32_t(shape.predicting_layers));
  }
  writer.add(prefix + "context_length", uint32_t(shape.context));
  writer.add(prefix + "embedding_length", uint32_t(shape.width));
  add_mlp_widths(writer, shape);
  if (is_gemma(shape)) add_gemma(writer, shape);
  writer.add(prefix + "vocab_size", uint32_t(shape.vocabulary));
  add_attention(writer, shape);
  if (shape.attention_every > 0 || recurs(shape.architecture)) add_recurrence(writer, shape);
  if (shape.experts > 0) add_experts(writer, shape);
  if (contains(shape.architecture, "cohere2") || shape.architecture == "command-r") {
    writer.add(prefix + "logit_scale", 0.25f);
  }
  if (shape.architecture == "mpt" || shape.architecture == "jais") {
    writer.add(prefix + "attention.max_alibi_bias", 8.0f);
  }
  if (shape.architecture == "modern-bert") {
    writer.add(prefix + "attention.sliding_window", uint32_t(64));
  }
  if (contains(shape.architecture, "bert") || contains(shape.architecture, "embedding")) {
    writer.add(prefix + "attention.causal", false);
    writer.add(prefix + "pooling_type", uint32_t(1));  // The mean.
  }
  if (shape.architecture == "dbrx") writer.add(prefix + "attention.clamp_kqv", 8.0f);
  if (contains(shape.architecture, "gpt-oss")) {
    writer.add(prefix + "attention.sliding_window", uint32_t(128));
  }
  if (contains(shape.architecture, "llama4")) {
    writer.add(prefix + "interleave_moe_layer_step", uint32_t(2));
  }
  if (is_granite(shape)) {
    writer.add(prefix + "embedding_scale", 12.0f);
    writer.add(prefix + "residual_scale", 0.22f);
    writer.add(prefix + "logit_scale", 6.0f);
    writer.add(prefix + "attention.scale", 1.0f / float(shape.head_dim));
  }
}

}  // namespace cairn::synth
