// What Qwen3-Next and Qwen3.5 have in common: most layers mix by gated delta nets, one of a few by
// gated attention. Their metadata and a layer's mixer; each model's file has its own layer loop.
#pragma once

#include <vector>

#include "graph/blocks/delta_net.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/gated_attention.h"
#include "models/config.h"

namespace cairn::models {

struct DeltaHybridConfig : DecoderConfig {
  blocks::DeltaNetShape delta;
  RopeSpec rope;
  std::vector<int32_t> recurrent;  // By layer: 1 where a delta net mixes.

  bool is_recurrent(int32_t layer) const { return recurrent[size_t(layer)] != 0; }
  State state(int32_t layer) const {
    return is_recurrent(layer) ? delta.state() : attention(layer).state();
  }
};

// With delta heads grouped; the caller says so where they are not. Layers that predict further
// tokens (nextn_predict_layers) stand behind the others in a file and are left out.
Result<DeltaHybridConfig> read_delta_hybrid(const gguf::Metadata& meta);

struct ExpertsConfig {
  RouterSpec router;
  int32_t expert_count = 0, expert_width = 0, shared_expert_width = 0;
};

Result<ExpertsConfig> read_delta_hybrid_experts(const gguf::Metadata& meta);

// One of the two.
struct DeltaHybridMixer {
  blocks::DeltaNet delta;
  blocks::GatedAttention attn;

  void parameters(Parameters& p, int32_t layer, const DeltaHybridConfig& c);
  Tensor mix(Graph& g, int32_t layer, Tensor x, const DeltaHybridConfig& c) const;
};

}  // namespace cairn::models
