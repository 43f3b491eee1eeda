// The frame that encoders share (BERT and its relatives): tokens see each other in both directions,
// and what comes out are their vectors, or what a classifier makes of them. The layer loop is each
// model's own. Immutable after its parameters are visited; thread-safe then.
#pragma once

#include <utility>
#include <vector>

#include "graph/blocks/layer_norm.h"
#include "graph/parameters.h"
#include "models/common/config.h"
#include "models/model.h"

namespace cairn::models {

struct EncoderConfig : DecoderConfig {
  int32_t type_count = 0;   // Kinds of segments that the embeddings tell apart.
  int32_t score_count = 1;  // Of the classifier, where the file has one.
};

// Errors: as read_attending_config(); invalid_data: kinds of segments or labels that are none.
Result<EncoderConfig> read_encoder_config(const gguf::Metadata& meta);

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
class Encoder : public Model {
 public:
  explicit Encoder(Config config) : c_(std::move(config)), layers_(size_t(c_.size.layer_count)) {}

  const ModelSize& size() const override { return c_.size; }
  bool makes_text() const override { return false; }
  bool makes_scores() const override { return classifier_.exists(); }

  Status visit_parameters(ParameterVisitor& visitor) override {
    Parameters p(&visitor);
    embeddings_.parameters(p, c_);
    global_parameters(p);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      Parameters lp = p.layer(layer);
      layer_parameters(lp, layer, layers_[size_t(layer)]);
      p.join(std::move(lp));
    }
    classifier_.parameters(p, c_);
    return std::move(p).finish();
  }

  // Of the text that is just being read.
  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state()};
  }

 protected:
  virtual void layer_parameters(Parameters& p, int32_t layer, Layer& l) = 0;
  virtual void global_parameters(Parameters&) {}

  AttentionSpec attention_spec(int32_t layer) const {
    return {.head_count = c_.head_counts[size_t(layer)],
            .scale = softmax_scale(c_.key_dim),
            .is_causal = false};
  }
  Tensor end(Graph& g, Tensor x) const {
    const Tensor rows = g.outputs(x);
    return g.deliver(g.makes() == Makes::scores ? classifier_.scores(g, rows) : rows);
  }

  Config c_;
  TokenEmbeddings embeddings_;
  std::vector<Layer> layers_;
  Classifier classifier_;
};

}  // namespace cairn::models
