// The base classes of decoders: lists of parameters with the embedding table first, one part for
// each layer, and the head last. Immutable after its parameters are visited; thread-safe then.
#pragma once

#include <utility>
#include <vector>

#include "graph/blocks/embedding_and_head.h"
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
