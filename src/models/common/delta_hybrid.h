// Qwen3-Next and Qwen 3.5: most layers use gated delta nets (Yang et al., 2024), one in a few gated
// attention; each is followed by a gated feed-forward block, or by a mixture of experts with a
// shared expert. One layer loop for all of them; traits say the order of heads and rates in their
// files.
#pragma once

#include <optional>
#include <vector>

#include "graph/blocks/delta_net.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/gated_attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

struct ExpertsConfig {
  RouterSpec router;
  int32_t expert_count = 0, expert_width = 0, shared_expert_width = 0;
};

// What their files have in other ways.
struct DeltaHybridTraits {
  bool has_experts = false;
  HeadOrder order = HeadOrder::grouped;  // Of the delta nets' value heads.
  bool joined_rates = false;             // Rates and decays come from one matrix.
};

struct DeltaHybridConfig : DecoderConfig {
  DeltaHybridTraits traits;
  blocks::DeltaNetShape delta;
  RopeSpec rope;
  std::vector<int32_t> recurrent;        // By layer: 1 where a delta net mixes.
  std::optional<ExpertsConfig> experts;  // None: the feed-forward block is dense.

  // Layers that predict further tokens (nextn_predict_layers) stand behind the others in a file, do
  // not count, and attend.
  Status read(const gguf::Metadata& meta);

  bool is_recurrent(int32_t layer) const { return recurrent[size_t(layer)] != 0; }
  State state(int32_t layer) const {
    return is_recurrent(layer) ? delta.state() : attention(layer).state();
  }
};

struct DeltaHybridLayer {
  Vector mixer_norm, mlp_norm;
  blocks::DeltaNet delta;       // Or
  blocks::GatedAttention attn;  // this.
  blocks::GatedMlp mlp;         // Or
  blocks::Experts experts;      // these.
  blocks::SharedExpert shared;
};

class DeltaHybrid : public PredictingDecoder<DeltaHybridConfig, DeltaHybridLayer> {
 public:
  explicit DeltaHybrid(const DeltaHybridTraits& traits) { c_.traits = traits; }

  std::vector<State> layer_states(int32_t layer) const override { return {c_.state(layer)}; }
  Tensor forward(Graph& g) const override;

 private:
  PredictorInput predictor_input() const override;
  Tensor through_layer(Graph& g, Place place, const DeltaHybridLayer& l, Tensor x) const override;
  Tensor mix(Graph& g, Place place, const DeltaHybridLayer& l, Tensor x) const;
  Tensor feed_forward(Graph& g, const DeltaHybridLayer& l, Tensor x) const;
  void layer_parameters(Parameters& p, int32_t layer, DeltaHybridLayer& l) override;
};

Result<std::unique_ptr<Model>> create_delta_hybrid(const gguf::Metadata& meta,
                                                   const DeltaHybridTraits& traits);

}  // namespace cairn::models
