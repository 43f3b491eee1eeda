// The shape of a synthetic model: sizes by name, presets of real models, and the metadata keys that
// say them in a file. Knows the conventional keys of model files, not what an architecture does
// with them. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/writer.h"

namespace cairn::synth {

struct SynthShape {
  std::string architecture;
  int32_t layers = 4;
  int32_t width = 256;
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t head_dim = 64;
  int32_t mlp_width = 768;
  int32_t vocabulary = 2048;
  int32_t context = 8192;
  int32_t experts = 0;  // 0: a plain feed-forward block.
  int32_t experts_used = 0;
  int32_t expert_width = 0;       // 0: mlp_width.
  int32_t attention_every = 0;    // Of so many layers one attends, the others recur; 0: all attend.
  int32_t window = 0;             // Tokens that a windowed layer attends to.
  int32_t window_period = 0;      // Of so many layers one attends to all, the others to a window.
  int32_t window_head_dim = 0;    // Of windowed layers, where it is not head_dim.
  int32_t shared_kv_layers = 0;   // The last so many read keys and values of earlier layers.
  int32_t layer_input_width = 0;  // Of each layer's own input.
  int32_t predicting_layers = 0;    // Behind the others, of the architectures that know them.
  bool tied_output = true;        // The output matrix is the embedding table.
  float rope_base = 10000.0f;
};

// A number of the shape that can be set by name. Errors about one begin with its name.
struct SynthField {
  std::string_view name;  // "kv-heads"
  int32_t SynthShape::*member;
  int32_t min, max;
  std::string_view doc;
};
std::span<const SynthField> synth_fields();

struct SynthPreset {
  std::string_view name;
  std::string_view doc;
  SynthShape shape;
};
std::span<const SynthPreset> synth_presets();

// A small model of an architecture, of the kind that the architecture is for: with experts, or with
// recurrent layers, where its name says so.
SynthShape default_shape(std::string_view architecture);
// Errors: not_found ("preset: …"), with the names there are.
Result<SynthShape> preset_shape(std::string_view name);

// Errors: invalid_argument for sizes out of range or that do not fit together.
Status check(const SynthShape& shape);

// Adds general.* and the architecture's keys. REQUIRES: check() is fine.
void add_shape(gguf::Writer& writer, const SynthShape& shape, uint64_t seed);

}  // namespace cairn::synth
