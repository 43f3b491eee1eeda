// The frame that all decoders share: a list of parameters that starts and ends alike and has one
// part for each layer. The forward pass is each model's own, with its layer loop in sight.
// Immutable after its parameters are visited; thread-safe then.
#pragma once

#include <utility>
#include <vector>

#include "graph/blocks/ends.h"
#include "graph/parameters.h"
#include "models/common/config.h"
#include "models/model.h"

namespace cairn::models {

// `Config` derives from DecoderConfig; `Layer` holds the parameters of one layer.
template <class Config, class Layer>
class Decoder : public Model {
 public:
  explicit Decoder(Config config) : c_(std::move(config)), layers_(size_t(c_.size.layer_count)) {}

  const ModelSize& size() const override { return c_.size; }

  Status visit_parameters(ParameterVisitor& visitor) override {
    Parameters p(&visitor);
    ends_.parameters(p, c_.size.width, c_.size.vocabulary_count, output_norm_name());
    global_parameters(p);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      Parameters lp = p.layer(layer);
      layer_parameters(lp, layer, layers_[size_t(layer)]);
      p.join(std::move(lp));
    }
    return std::move(p).finish();
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state()};
  }

 protected:
  virtual void layer_parameters(Parameters& p, int32_t layer, Layer& l) = 0;
  // Those of no layer, besides embedding, last norm and output.
  virtual void global_parameters(Parameters&) {}
  virtual std::string_view output_norm_name() const { return "output_norm.weight"; }

  Config c_;
  blocks::Ends ends_;
  std::vector<Layer> layers_;
};

}  // namespace cairn::models
