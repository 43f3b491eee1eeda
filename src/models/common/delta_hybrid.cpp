// What the files of Qwen3-Next and Qwen 3.5 say, and what their layers compute.
#include "models/common/delta_hybrid.h"

#include <algorithm>
#include <utility>

namespace cairn::models {

namespace {

Status read_delta(const gguf::Metadata& meta, blocks::DeltaNetShape& shape) {
  CAIRN_TRY(const int32_t inner_width, meta.count("ssm.inner_size"));
  CAIRN_TRY(shape.head_count, meta.count("ssm.time_step_rank"));
  CAIRN_TRY(shape.key_head_count, meta.count("ssm.group_count"));
  CAIRN_TRY(shape.key_dim, meta.count("ssm.state_size"));
  CAIRN_TRY(shape.conv_kernel, meta.count("ssm.conv_kernel"));
  if (inner_width % shape.head_count != 0 || shape.head_count % shape.key_head_count != 0) {
    return fail(ErrorCode::invalid_data,
                "{}: expected a divisor of {} and a multiple of {} groups, found {}",
                meta.key("ssm.time_step_rank"), inner_width, shape.key_head_count,
                shape.head_count);
  }
  shape.value_dim = inner_width / shape.head_count;
  return Ok{};
}

Result<std::vector<int32_t>> read_recurrent(const gguf::Metadata& meta, int32_t layer_count) {
  if (meta.has("attention.recurrent_layers")) {
    return meta.per_layer("attention.recurrent_layers", layer_count);
  }
  CAIRN_TRY(const int32_t interval, meta.count_or("full_attention_interval", 4));
  std::vector<int32_t> recurrent;
  for (int32_t layer = 0; layer < layer_count; ++layer) {
    recurrent.push_back((layer + 1) % interval == 0 ? 0 : 1);
  }
  return recurrent;
}

Result<ExpertsConfig> read_experts(const gguf::Metadata& meta) {
  ExpertsConfig experts{.router = {.score = RouterScore::softmax_all, .normalize = true}};
  CAIRN_TRY(experts.expert_count, meta.count("expert_count"));
  CAIRN_TRY(experts.router.expert_used_count, meta.count("expert_used_count"));
  CAIRN_TRY(experts.expert_width, meta.count("expert_feed_forward_length"));
  CAIRN_TRY(experts.shared_expert_width,
            meta.count_or("expert_shared_feed_forward_length", experts.expert_width));
  return experts;
}

}  // namespace

Status DeltaHybridConfig::read(const gguf::Metadata& meta) {
  CAIRN_TRY(static_cast<DecoderConfig&>(*this), read_decoder_config(meta));
  CAIRN_TRY(read_delta(meta, delta));
  delta.order = traits.order;
  delta.joined_rates = traits.joined_rates;
  CAIRN_TRY(rope, read_rope(meta, key_dim, RopeStyle::halves));
  CAIRN_TRY(recurrent, read_recurrent(meta, size.layer_count));
  CAIRN_TRY(const int32_t predicting_count, meta.count_or("nextn_predict_layers", 0));
  if (predicting_count >= size.layer_count) {
    return fail(ErrorCode::invalid_data, "{}: expected less than {} layers, found {}",
                meta.key("nextn_predict_layers"), size.layer_count, predicting_count);
  }
  size.layer_count -= predicting_count;
  std::fill(recurrent.begin() + size.layer_count, recurrent.end(), 0);
  for (int32_t layer = 0; layer < size.layer_count; ++layer) {
    if (!is_recurrent(layer) && kv_head_counts[size_t(layer)] == 0) {
      return fail(ErrorCode::invalid_data, "{}: expected heads in attending layer {}, found 0",
                  meta.key("attention.head_count_kv"), layer);
    }
  }
  if (key_dim != value_dim) {
    return fail(ErrorCode::unsupported, "{}: expected the key length {}, found {}",
                meta.key("attention.value_length"), key_dim, value_dim);
  }
  if (traits.has_experts) {
    CAIRN_TRY(experts, read_experts(meta));
  }
  return Ok{};
}

Tensor DeltaHybrid::forward(Graph& g) const {
  return logits(g, through_layers(g, g.embed(embedding_and_head_.embedding)));
}

Tensor DeltaHybrid::through_layer(Graph& g, Place place, const DeltaHybridLayer& l,
                                  Tensor x) const {
  x = g.add(x, mix(g, place, l, norm(g, x, l.mixer_norm)));
  return g.add(x, feed_forward(g, l, norm(g, x, l.mlp_norm)));
}

// The predictor was trained on rows behind the model's last norm, or behind its own.
PredictorInput DeltaHybrid::predictor_input() const {
  return {
      .model_gain = embedding_and_head_.norm,
      .own_gain = prediction_.head_norm.exists() ? prediction_.head_norm : embedding_and_head_.norm,
      .norm_epsilon = c_.norm_epsilon};
}

Tensor DeltaHybrid::mix(Graph& g, Place place, const DeltaHybridLayer& l, Tensor x) const {
  if (c_.is_recurrent(place.layer)) {
    return blocks::delta_net(g, place.stored, x, l.delta, c_.delta, c_.norm_epsilon);
  }
  return blocks::gated_attention(g, place.stored, x, l.attn, c_.rope,
                                 {.shape = c_.attention(place.layer),
                                  .scale = softmax_scale(c_.key_dim),
                                  .norm_epsilon = c_.norm_epsilon});
}

Tensor DeltaHybrid::feed_forward(Graph& g, const DeltaHybridLayer& l, Tensor x) const {
  if (!c_.experts) return blocks::gated_mlp(g, x, l.mlp, Activation::silu);
  const Tensor routed = blocks::mixture(g, x, l.experts, c_.experts->router, Activation::silu);
  return g.add(routed, blocks::shared_expert(g, x, l.shared, Activation::silu));
}

void DeltaHybrid::layer_parameters(Parameters& p, int32_t layer, DeltaHybridLayer& l) {
  const int32_t width = c_.size.width;
  p.vector("attn_norm.weight", l.mixer_norm, {width});
  if (c_.is_recurrent(layer)) {
    l.delta.parameters(p, width, c_.delta);
  } else {
    l.attn.parameters(p, width, c_.attention(layer));
  }
  p.vector("post_attention_norm.weight", l.mlp_norm, {width});
  if (c_.experts) {
    l.experts.parameters(p, width, c_.experts->expert_width, c_.experts->expert_count);
    l.shared.parameters(p, width, c_.experts->shared_expert_width);
  } else {
    l.mlp.parameters(p, width, c_.mlp_width);
  }
}

Result<std::unique_ptr<Model>> create_delta_hybrid(const gguf::Metadata& meta,
                                                   const DeltaHybridTraits& traits) {
  return create_model<DeltaHybrid>(meta, traits);
}

}  // namespace cairn::models
