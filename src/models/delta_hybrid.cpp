// The common part of Qwen3-Next and Qwen3.5.
#include "models/delta_hybrid.h"

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

}  // namespace

Result<DeltaHybridConfig> read_delta_hybrid(const gguf::Metadata& meta) {
  CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
  DeltaHybridConfig c{std::move(common), {}, {}, {}};
  CAIRN_TRY(read_delta(meta, c.delta));
  CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
  CAIRN_TRY(c.recurrent, read_recurrent(meta, c.size.layer_count));
  CAIRN_TRY(const int32_t predicting_count, meta.count_or("nextn_predict_layers", 0));
  if (predicting_count >= c.size.layer_count) {
    return fail(ErrorCode::invalid_data, "{}: expected less than {} layers, found {}",
                meta.key("nextn_predict_layers"), c.size.layer_count, predicting_count);
  }
  c.size.layer_count -= predicting_count;
  for (int32_t layer = 0; layer < c.size.layer_count; ++layer) {
    if (!c.is_recurrent(layer) && c.kv_head_counts[size_t(layer)] == 0) {
      return fail(ErrorCode::invalid_data, "{}: expected heads in attending layer {}, found 0",
                  meta.key("attention.head_count_kv"), layer);
    }
  }
  if (c.key_dim != c.value_dim) {
    return fail(ErrorCode::unsupported, "{}: expected the key length {}, found {}",
                meta.key("attention.value_length"), c.key_dim, c.value_dim);
  }
  return c;
}

Result<ExpertsConfig> read_delta_hybrid_experts(const gguf::Metadata& meta) {
  ExpertsConfig c{.router = {.score = RouterScore::softmax_all, .normalize = true}};
  CAIRN_TRY(c.expert_count, meta.count("expert_count"));
  CAIRN_TRY(c.router.expert_used_count, meta.count("expert_used_count"));
  CAIRN_TRY(c.expert_width, meta.count("expert_feed_forward_length"));
  CAIRN_TRY(c.shared_expert_width,
            meta.count_or("expert_shared_feed_forward_length", c.expert_width));
  return c;
}

void DeltaHybridMixer::parameters(Parameters& p, int32_t layer, const DeltaHybridConfig& c) {
  if (c.is_recurrent(layer)) {
    delta.parameters(p, c.size.width, c.delta);
  } else {
    attn.parameters(p, c.size.width, c.attention(layer));
  }
}

Tensor DeltaHybridMixer::mix(Graph& g, int32_t layer, Tensor x, const DeltaHybridConfig& c) const {
  if (c.is_recurrent(layer)) {
    return blocks::delta_net(g, layer, x, delta, c.delta, c.norm_epsilon);
  }
  return blocks::gated_attention(g, layer, x, attn, c.rope,
                                 {.shape = c.attention(layer),
                                  .scale = softmax_scale(c.key_dim),
                                  .norm_epsilon = c.norm_epsilon});
}

}  // namespace cairn::models
