// Walks the table of sampling.
#include "serve/llama/settings_json.h"

#include <cmath>

namespace cairn::serve::llama {

namespace {

json::Value biases_json(const sample::SamplingParams& sampling) {
  json::Value list = json::Value::array();
  for (const sample::LogitBias& bias : sampling.logit_bias) {
    json::Value value = double(bias.bias);
    if (std::isinf(bias.bias)) value = false;
    json::Value one;
    if (bias.text.empty()) {
      one = {{"token", index_of(bias.token)}, {"bias", std::move(value)}};
    } else {
      one = {{"text", bias.text}, {"bias", std::move(value)}};
    }
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

json::Value settings_json(const AnswerSettings& settings) {
  const sample::SamplingParams& sampling = settings.sampling;
  json::Value json = {{"n_predict", settings.token_count_max},
                      {"max_tokens", settings.token_count_max},
                      {"seed", sampling.seed}};
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    json::Value& value = json[field.name];
    if (field.flag != nullptr) {
      value = sampling.*field.flag;
    } else if (field.count != nullptr) {
      value = sampling.*field.count;
    } else {
      value = double(sampling.*field.real);
    }
  }
  json["dry_sequence_breakers"] = sampling.dry_breakers;
  json["logit_bias"] = biases_json(sampling);
  json["samplers"] = sampling.samplers;
  json["stop"] = settings.stop;
  json["stream"] = settings.is_stream;
  json["grammar"] = settings.constraint.grammar.value_or("");
  return json;
}

}  // namespace cairn::serve::llama
