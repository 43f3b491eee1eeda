// The base classes of decoders: lists of parameters with the embedding table first, one part for
// each layer, and the head last. Immutable after its parameters are visited; thread-safe then.
#pragma once

#include <utility>
#include <vector>

#include "graph/blocks/embedding_and_head.h"
#include "graph/blocks/prediction.h"
#include "models/common/layered.h"
#include "models/common/layers.h"

namespace cairn::models {

// With a norm of root mean squares at the end.
template <class Config, class Layer>
class Decoder : public LayeredModel<Config, Layer> {
 public:
  Status visit_parameters(ParameterVisitor& visitor) override {
    Parameters p(&visitor);
    const ModelSize& size = this->c_.size;
    embedding_and_head_.parameters(p, size.width, size.vocabulary_count, output_norm_name());
    global_parameters(p);
    this->all_layer_parameters(p);
    return std::move(p).finish();
  }

 protected:
  // Those of no layer, besides embedding, last norm and output.
  virtual void global_parameters(Parameters&) {}
  virtual std::string_view output_norm_name() const { return "output_norm.weight"; }

  // Logits of the wanted outputs, or the vectors that they are made of.
  Tensor logits(Graph& g, Tensor x) const {
    return blocks::logits(g, x, embedding_and_head_, this->c_.norm_epsilon);
  }

  blocks::EmbeddingAndHead embedding_and_head_;
};

// With a layer behind the others that predicts further tokens, where the file has just one (and no
// model is known that has more); it is computed as the others are.
template <class Config, class Layer>
class PredictingDecoder : public Decoder<Config, Layer> {
 public:
  bool has_predictor() const override {
    const auto& kv_heads = this->c_.kv_head_counts;
    const size_t layer = size_t(own_layer());
    return kv_heads.size() == layer + 1 && kv_heads[layer] > 0;
  }
  Status visit_predictor(ParameterVisitor& visitor) override {
    Parameters all(&visitor);
    Parameters p = all.layer(own_layer());
    this->layer_parameters(p, own_layer(), predicting_layer_);
    prediction_.parameters(p, this->c_.size.width, this->c_.size.vocabulary_count);
    all.join(std::move(p));
    return std::move(all).finish();
  }
  std::vector<State> predictor_states() const override {
    return {this->c_.attention(own_layer()).state()};
  }
  Tensor predict(Graph& g) const override {
    const float epsilon = this->c_.norm_epsilon;
    const Tensor x = blocks::prediction_input(g, prediction_, this->embedding_and_head_, epsilon);
    return blocks::prediction_logits(
        g, through_layer(g, {.stored = 0, .layer = own_layer()}, predicting_layer_, x), prediction_,
        this->embedding_and_head_, epsilon);
  }

 protected:
  // A layer by its number in the layout and in the file.
  struct Place {
    int32_t stored = 0, layer = 0;
  };
  virtual Tensor through_layer(Graph& g, Place place, const Layer& l, Tensor x) const = 0;
  // All but the predicting one.
  Tensor through_layers(Graph& g, Tensor x) const {
    for (const auto& [layer, l] : this->layers()) x = through_layer(g, {layer, layer}, l, x);
    return x;
  }
  int32_t own_layer() const { return this->c_.size.layer_count; }

  blocks::Prediction prediction_;
  Layer predicting_layer_;
};

// With a norm around the mean at the end, and biases where a file has them.
template <class Config, class Layer>
class CentredDecoder : public Decoder<Config, Layer> {
 protected:
  void global_parameters(Parameters& p) override {
    biases_.parameters(p, this->c_.size.width, this->c_.size.vocabulary_count);
  }

  Tensor logits(Graph& g, Tensor x) const {
    return blocks::centred_logits(g, x, this->embedding_and_head_, biases_, this->c_.norm_epsilon);
  }

  blocks::HeadBiases biases_;
};

}  // namespace cairn::models
