// The base class of encoders (BERT and related models): attention is bidirectional, and the output
// is the tokens' vectors, or a classifier's scores of them. Each model writes its own layer loop.
// Immutable after its parameters are visited; thread-safe then.
#pragma once

#include <utility>
#include <vector>

#include "models/common/layered.h"
#include "models/common/layers.h"

namespace cairn::models {

struct EncoderConfig : DecoderConfig {
  int32_t type_count = 0;   // Kinds of segments that the embeddings tell apart.
  int32_t score_count = 1;  // Of the classifier, where the file has one.

  // Errors: as DecoderConfig::read(); invalid_data: kinds of segments or labels that are none.
  Status read(const gguf::Metadata& meta);
  AttentionSpec scores(int32_t layer) const {
    AttentionSpec spec = DecoderConfig::scores(layer);
    spec.is_causal = false;
    return spec;
  }
};

// Table rows of tokens, plus the first kind of segment's row (all text is of the first kind).
struct TokenEmbeddings {
  Weight tokens, types;

  void parameters(Parameters& p, const EncoderConfig& c);
  Tensor embed(Graph& g) const;
};

// Scores of a text: out(tanh(dense(x))), where the file has either of the two.
struct Classifier {
  Weight dense, out;
  Vector dense_bias, out_bias;

  bool exists() const { return dense.exists() || out.exists(); }
  void parameters(Parameters& p, const EncoderConfig& c);
  Tensor scores(Graph& g, Tensor x) const;
};

// `Config` derives from EncoderConfig; `Layer` holds the parameters of one layer.
template <class Config, class Layer>
class Encoder : public LayeredModel<Config, Layer> {
 public:
  bool makes_text() const override { return false; }
  bool makes_scores() const override { return classifier_.exists(); }

  Status visit_parameters(ParameterVisitor& visitor) override {
    Parameters p(&visitor);
    embeddings_.parameters(p, this->c_);
    global_parameters(p);
    this->all_layer_parameters(p);
    classifier_.parameters(p, this->c_);
    return std::move(p).finish();
  }

  // Of the text that is just being read: all of it, also where a layer sees a part.
  std::vector<State> layer_states(int32_t layer) const override {
    return {this->c_.attention(layer).state()};
  }

 protected:
  virtual void global_parameters(Parameters&) {}

  Tensor end(Graph& g, Tensor x) const {
    const Tensor rows = g.outputs(x);
    return g.set_output(g.output_kind() == OutputKind::scores ? classifier_.scores(g, rows) : rows);
  }

  TokenEmbeddings embeddings_;
  Classifier classifier_;
};

}  // namespace cairn::models
