// Before and behind a predicting layer.
#include "graph/blocks/prediction.h"

namespace cairn::blocks {

void Prediction::parameters(Parameters& p, int32_t width, int32_t vocabulary_count) {
  p.matrix("nextn.eh_proj.weight", projection, {2 * width, width});
  p.vector("nextn.enorm.weight", embedding_norm, {width});
  p.vector("nextn.hnorm.weight", hidden_norm, {width});
  p.optional_vector("nextn.shared_head_norm.weight", head_norm, {width});
  p.optional_matrix("nextn.embed_tokens.weight", embedding, {width, vocabulary_count});
  p.optional_matrix("nextn.shared_head_head.weight", head, {width, vocabulary_count});
}

Tensor prediction_input(Graph& g, const Prediction& weights, const EmbeddingAndHead& model,
                        float norm_epsilon) {
  const Weight& table = weights.embedding.exists() ? weights.embedding : model.embedding;
  const int32_t width = table.cols;
  const Tensor token = g.rms_norm(g.embed(table), weights.embedding_norm, norm_epsilon);
  const Tensor hidden = g.rms_norm(g.given(width), weights.hidden_norm, norm_epsilon);
  return g.matmul(weights.projection, g.join_columns(token, width, hidden, width));
}

Tensor prediction_logits(Graph& g, Tensor x, const Prediction& weights,
                         const EmbeddingAndHead& model, float norm_epsilon) {
  const Vector& gain = weights.head_norm.exists() ? weights.head_norm : model.norm;
  const Tensor last = g.rms_norm(g.outputs(x), gain, norm_epsilon);
  if (weights.head.exists()) return g.matmul(weights.head, last);
  return g.matmul(model.output.exists() ? model.output : model.embedding, last);
}

}  // namespace cairn::blocks
