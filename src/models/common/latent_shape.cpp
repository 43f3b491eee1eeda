// Reading the sizes of latent attention.
#include "models/common/latent_shape.h"

namespace cairn::models {

Result<blocks::LatentShape> read_latent_shape(const gguf::Metadata& meta, const DecoderConfig& c) {
  blocks::LatentShape shape{.head_count = c.head_counts[0]};
  for (const int32_t count : c.head_counts) {
    if (count == shape.head_count) continue;
    return fail(ErrorCode::unsupported, "{}: expected {} in all layers, found {}",
                meta.key("attention.head_count"), shape.head_count, count);
  }
  shape.keeps_heads = !meta.has("attention.key_length_mla");
  CAIRN_TRY(const int32_t key_dim, meta.count_or("attention.key_length_mla", c.key_dim));
  CAIRN_TRY(shape.value_dim, meta.count_or("attention.value_length_mla", c.value_dim));
  CAIRN_TRY(shape.latent_width, meta.count("attention.kv_lora_rank"));
  CAIRN_TRY(shape.rotated_dim, meta.count("rope.dimension_count"));
  CAIRN_TRY(shape.query_rank, meta.count_or("attention.q_lora_rank", 0));
  shape.plain_dim = key_dim - shape.rotated_dim;
  if (shape.plain_dim <= 0 || shape.rotated_dim <= 0) {
    return fail(ErrorCode::invalid_data, "{}: expected 1 to {}, found {}",
                meta.key("rope.dimension_count"), key_dim - 1, shape.rotated_dim);
  }
  for (const int32_t count : c.kv_head_counts) {
    // Layers that recur have none.
    if (!shape.keeps_heads || count == 0 || count == shape.head_count) continue;
    return fail(ErrorCode::unsupported, "{}: expected {} where {} is not given, found {}",
                meta.key("attention.head_count_kv"), shape.head_count,
                meta.key("attention.key_length_mla"), count);
  }
  return shape;
}

}  // namespace cairn::models
