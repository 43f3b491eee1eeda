// What the metadata of many decoders has in common, read once here: sizes, heads, norms, rotation,
// recurrent mixers.
#pragma once

#include <span>
#include <vector>

#include "gguf/metadata.h"
#include "graph/blocks/attention.h"
#include "graph/blocks/mamba1.h"
#include "graph/blocks/mamba2.h"
#include "graph/graph.h"
#include "models/model.h"

namespace cairn::models {

struct DecoderConfig {
  ModelSize size;
  std::vector<int32_t> head_counts;     // By layer.
  std::vector<int32_t> kv_head_counts;  // By layer; 0: no attention there.
  int32_t key_dim = 0, value_dim = 0;
  int32_t mlp_width = 0;  // The widest of all layers; 0 where only experts stand in its place.
  float norm_epsilon = 0;
  float attention_scale = 0;     // Of scores: the usual one, unless the model says otherwise.
  int32_t original_context = 0;  // Positions before the rotation was stretched.
  std::vector<int32_t> windows;  // By layer: tokens that attention sees, 0 for all; or empty.

  // What most decoders begin with. Errors: those of read_attending_config().
  Status read(const gguf::Metadata& meta);

  // Whether the model is made for texts longer than those that its rotation was made for. This
  // decides which factors of LongRoPE count, for all positions and whatever the context's length
  // is, so that bits do not depend on it.
  bool reads_long_texts() const { return size.context_length > original_context; }
  int32_t window(int32_t layer) const { return windows.empty() ? 0 : windows[size_t(layer)]; }
  AttentionSpec scores(int32_t layer) const {
    return {.head_count = head_counts[size_t(layer)],
            .scale = attention_scale,
            .window = window(layer)};
  }
  blocks::AttentionShape attention(int32_t layer) const {
    return {.head_count = head_counts[size_t(layer)],
            .kv_head_count = kv_head_counts[size_t(layer)],
            .key_dim = key_dim,
            .value_dim = value_dim};
  }
};

// Of models in which the layers without key/value heads do something else than attend.
struct HybridConfig : DecoderConfig {
  Status read(const gguf::Metadata& meta);
  bool is_attention(int32_t layer) const { return kv_head_counts[size_t(layer)] > 0; }
};

// The usual scale of attention scores, 1 / sqrt(key_dim), rounded once.
float softmax_scale(int32_t key_dim);

// How fast the scores of each head fall with distance, of models that have this for positions
// (Press et al., 2022): from attention.max_alibi_bias, or `unsaid` where the file does not say it.
// Errors: unsupported where that is 0, or where layers have different numbers of heads.
Result<std::vector<float>> read_slopes(const gguf::Metadata& meta, const DecoderConfig& c,
                                       float unsaid);

// In which layers may do without attention; read_attending_config() is for all others.
Result<DecoderConfig> read_decoder_config(const gguf::Metadata& meta);

// How many tokens the attention of each layer sees, 0 for all: attention.sliding_window in the
// layers that attention.sliding_window_pattern marks (a flag for each layer, or a period: the last
// layer of each period sees everything). `period` and `window` are those of models whose files do
// not say.
Result<std::vector<int32_t>> read_windows(const gguf::Metadata& meta, int32_t layer_count,
                                          int32_t period, int32_t window = 0);
// The same window in all layers.
Result<std::vector<int32_t>> read_same_windows(const gguf::Metadata& meta, int32_t layer_count);

// That each layer attends, with a number of key/value heads that divides that of its heads. For
// models in which no layer may do without. Errors: invalid_data.
Status expect_attention(const gguf::Metadata& meta, const DecoderConfig& c);

// Both of the above: what most decoders begin with.
Result<DecoderConfig> read_attending_config(const gguf::Metadata& meta);

// Subtracts the layers for multi-token prediction (MTP, nextn_predict_layers), which follow the
// others in a file, from the count of layers. Errors: there are no others.
Status drop_mtp_layers(const gguf::Metadata& meta, DecoderConfig& c);

// By layer: whose keys and values it reads. The last `shared_count` layers read those of the last
// layer before them that has the same window; all others their own. Errors: there is none.
Result<std::vector<int32_t>> layers_of_kv(const gguf::Metadata& meta,
                                          std::span<const int32_t> windows, int32_t shared_count);

// Where YaRN begins and ends to interpolate: rounded outwards to whole pairs, or as computed.
enum class YarnRange : uint8_t { whole_pairs, real };

// Frequencies base^(-2i/dims), scaled as rope.scaling.* says: none, linear or YaRN (Peng et al.,
// 2023). The kind "longrope" leaves them to common/long_rope.h. Errors: unsupported for others.
Result<RopeSpec> read_rope(const gguf::Metadata& meta, int32_t head_dim, RopeStyle style,
                           YarnRange range = YarnRange::whole_pairs);

// The same with base^(-2i/dims) as it stands, whatever rope.scaling.* says.
Result<RopeSpec> read_unscaled_rope(const gguf::Metadata& meta, float base, int32_t head_dim,
                                    RopeStyle style);

// That of layers with windows, unscaled, in halves: by rope.freq_base_swa, or `unsaid_base`.
Result<RopeSpec> read_window_rope(const gguf::Metadata& meta, float unsaid_base, int32_t head_dim);

// Frequencies base^(-2i/dims). REQUIRES: dims is even.
RopeSpec plain_rope(float base, int32_t dims, RopeStyle style);

// Of decoders that rotate queries and keys.
template <RopeStyle style, class Base = DecoderConfig>
struct RotaryConfig : Base {
  RopeSpec rope;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(Base::read(meta));
    CAIRN_TRY(rope, read_rope(meta, this->key_dim, style));
    return Ok{};
  }
};

// Of decoders whose scores fall with distance.
struct SlopedConfig : DecoderConfig {
  std::vector<float> slopes;

  Status read(const gguf::Metadata& meta, float unsaid_bias = 8.0f);
  AttentionSpec scores(int32_t layer) const {
    AttentionSpec spec = DecoderConfig::scores(layer);
    spec.slopes = slopes;
    return spec;
  }
};

Result<blocks::Mamba1Shape> read_mamba1(const gguf::Metadata& meta);
Result<blocks::Mamba2Shape> read_mamba2(const gguf::Metadata& meta);

// Divides each frequency by its factor (the tensor rope_freqs of Llama 3.1 and others); nothing
// where the model has no factors.
RopeSpec with_factors(RopeSpec rope, const Vector& factors);

}  // namespace cairn::models
