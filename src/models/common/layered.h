// The base class of models with layers: the configuration, the layers, and helpers to write a
// forward pass. Each model writes its own pass, with its layer loop. Immutable after its parameters
// are visited; thread-safe then.
#pragma once

#include <vector>

#include "graph/blocks/attention.h"
#include "graph/blocks/layer_norm.h"
#include "graph/parameters.h"
#include "models/common/config.h"
#include "models/model.h"

namespace cairn::models {

// `Config` derives from DecoderConfig. `Layer` holds the parameters of one layer; most have a
// `parameters(Parameters&, const Config&, layer)` that lists them.
template <class Config, class Layer>
class LayeredModel : public Model {
 public:
  // Before anything else. Errors: those of Config::read().
  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(c_.read(meta));
    layers_ = std::vector<Layer>(size_t(c_.size.layer_count));
    choose_running({});
    return Ok{};
  }

  Status skip_layers(const Program& program) override {
    for (const int32_t layer : program.skipped_layers) CAIRN_TRY(expect_unneeded(layer, program));
    choose_running(program);
    return Ok{};
  }

  const ModelSize& size() const override { return c_.size; }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state(c_.window(layer))};
  }

 protected:
  struct NumberedLayer {
    int32_t layer;
    const Layer& parameters;
  };
  class NumberedLayers {
   public:
    class Iterator {
     public:
      Iterator(const Layer* layers, const int32_t* layer) : layers_(layers), layer_(layer) {}
      NumberedLayer operator*() const { return {*layer_, layers_[*layer_]}; }
      Iterator& operator++() { return ++layer_, *this; }
      bool operator!=(const Iterator& other) const { return layer_ != other.layer_; }

     private:
      const Layer* layers_;
      const int32_t* layer_;
    };
    NumberedLayers(const std::vector<Layer>& layers, const std::vector<int32_t>& running)
        : layers_(layers), running_(running) {}
    Iterator begin() const { return {layers_.data(), running_.data()}; }
    Iterator end() const { return {layers_.data(), running_.data() + running_.size()}; }

   private:
    const std::vector<Layer>& layers_;
    const std::vector<int32_t>& running_;
  };
  // Those that run, for `for (const auto& [layer, l] : layers())`.
  NumberedLayers layers() const { return {layers_, running_}; }

  // Errors: unsupported where a layer that runs cannot do without this one.
  virtual Status expect_unneeded(int32_t, const Program&) const { return Ok{}; }

  // The list of one layer's parameters, where `Layer` has none of its own.
  virtual void layer_parameters(Parameters& p, int32_t layer, Layer& l) {
    if constexpr (requires { l.parameters(p, c_, layer); }) {
      l.parameters(p, c_, layer);
    } else {
      CHECK(false);
    }
  }
  void all_layer_parameters(Parameters& p) {
    for (const int32_t layer : running_) {
      Parameters lp = p.layer(layer);
      layer_parameters(lp, layer, layers_[size_t(layer)]);
      p.join(std::move(lp));
    }
  }

  // Of whole rows, or of each `group` columns.
  Tensor norm(Graph& g, Tensor x, const Vector& gain, int32_t group = 0) const {
    return g.rms_norm(x, gain, c_.norm_epsilon, group);
  }
  Tensor norm(Graph& g, Tensor x, const blocks::LayerNorm& weights) const {
    return blocks::layer_norm(g, x, weights, c_.norm_epsilon);
  }
  blocks::Qkv norm(Graph& g, const blocks::Qkv& qkv, const blocks::QkNorms& norms,
                   int32_t group = 0) const {
    return blocks::rms_normed(g, qkv, norms, c_.norm_epsilon, group);
  }
  blocks::Qkv rotate(Graph& g, const blocks::Qkv& qkv, const RopeSpec& rope) const {
    return blocks::rotated(g, qkv, c_.key_dim, rope);
  }
  blocks::Qkv project(Graph& g, int32_t layer, Tensor x, const blocks::Projections& weights) const {
    return weights.project(g, x, c_.attention(layer));
  }
  // Attention as c_.scores() says, behind it the last projection.
  Tensor attend(Graph& g, int32_t layer, const blocks::Qkv& qkv,
                const blocks::Projections& weights) const {
    return weights.attend(g, layer, qkv, c_.scores(layer));
  }
  // With nothing between the projections and attention but the rotation of queries and keys.
  Tensor rotary_attention(Graph& g, int32_t layer, Tensor x, const blocks::Projections& weights,
                          const RopeSpec& rope) const {
    return attend(g, layer, rotate(g, project(g, layer, x, weights), rope), weights);
  }

  Config c_;
  std::vector<Layer> layers_;

 private:
  void choose_running(const Program& program) {
    running_.clear();
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      if (!program.skips(layer)) running_.push_back(layer);
    }
  }

  std::vector<int32_t> running_;  // Ascending.
};

}  // namespace cairn::models
