// What encoders have in common besides their frame.
#include "models/common/encoder.h"

#include <algorithm>

namespace cairn::models {

Status EncoderConfig::read(const gguf::Metadata& meta) {
  CAIRN_TRY(DecoderConfig::read(meta));
  constexpr std::string_view kTypeCount = "tokenizer.ggml.token_type_count";
  CAIRN_TRY(type_count, meta.fields().get_or<int32_t>(kTypeCount, 1));
  if (type_count < 1) {
    return fail(ErrorCode::invalid_data, "{}: expected at least 1, found {}", kTypeCount,
                type_count);
  }
  if (meta.has("classifier.output_labels")) {
    const std::string key = meta.key("classifier.output_labels");
    CAIRN_TRY(const gguf::Strings labels, meta.fields().get<gguf::Strings>(key));
    score_count = std::max(1, int32_t(labels.size()));
  }
  return Ok{};
}

void TokenEmbeddings::parameters(Parameters& p, const EncoderConfig& c) {
  p.matrix("token_embd.weight", tokens, {c.size.width, c.size.vocabulary_count});
  p.optional_matrix("token_types.weight", types, {c.size.width, c.type_count});
}

Tensor TokenEmbeddings::embed(Graph& g) const {
  const Tensor x = g.embed(tokens);
  return types.exists() ? g.add(x, g.embed_row(types, 0)) : x;
}

void Classifier::parameters(Parameters& p, const EncoderConfig& c) {
  p.optional_matrix("cls.weight", dense, {c.size.width, c.size.width});
  p.optional_vector("cls.bias", dense_bias, {c.size.width});
  p.optional_matrix("cls.output.weight", out, {c.size.width, c.score_count});
  p.optional_vector("cls.output.bias", out_bias, {c.score_count});
}

Tensor Classifier::scores(Graph& g, Tensor x) const {
  if (dense.exists()) x = g.activate(g.matmul(dense, x, dense_bias), Activation::tanh);
  return out.exists() ? g.matmul(out, x, out_bias) : x;
}

}  // namespace cairn::models
