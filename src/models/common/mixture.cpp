// Reading what models with experts have in common.
#include "models/common/mixture.h"

namespace cairn::models {

namespace {

// The values of expert_gating_func; 0 stands for nothing said.
Result<RouterScore> read_score(const gguf::Metadata& meta, RouterScore unsaid) {
  CAIRN_TRY(const int32_t number, meta.count_or("expert_gating_func", 0));
  switch (number) {
    case 0:
      return unsaid;
    case 1:
      return RouterScore::softmax_all;
    case 2:
      return RouterScore::sigmoid;
    case 3:
      return RouterScore::softmax_chosen;
    default:
      return fail(ErrorCode::unsupported, "{}: expected 0 to 3, found {}",
                  meta.key("expert_gating_func"), number);
  }
}

// What speaks for a group: the best of its experts, or, where each has a score of its own, the best
// two (DeepSeek V2 and V3).
Status read_groups(const gguf::Metadata& meta, MixtureConfig& m) {
  CAIRN_TRY(const int32_t group_count, meta.count_or("expert_group_count", 0));
  if (group_count <= 1) return Ok{};
  m.router.group_count = group_count;
  CAIRN_TRY(m.router.group_used_count, meta.count("expert_group_used_count"));
  m.router.group_best_count = m.router.score == RouterScore::sigmoid ? 2 : 1;
  const int32_t group_size = m.expert_count / group_count;
  if (m.expert_count % group_count != 0 || group_size < m.router.group_best_count) {
    return fail(
        ErrorCode::invalid_data,
        "{}: expected groups of equally many of {} experts, at least {} each, found {} groups",
        meta.key("expert_group_count"), m.expert_count, m.router.group_best_count, group_count);
  }
  const int64_t open_count = int64_t(m.router.group_used_count) * group_size;
  if (m.router.group_used_count <= group_count && open_count >= m.router.expert_used_count) {
    return Ok{};
  }
  return fail(ErrorCode::invalid_data,
              "{}: expected at most {} groups, with {} experts or more together, found {}",
              meta.key("expert_group_used_count"), group_count, m.router.expert_used_count,
              m.router.group_used_count);
}

}  // namespace

Result<MixtureConfig> read_mixture(const gguf::Metadata& meta, const RouterDefaults& defaults) {
  MixtureConfig m;
  CAIRN_TRY(m.expert_count, meta.count_or("expert_count", 0));
  if (m.expert_count == 0) return m;
  CAIRN_TRY(m.router.expert_used_count, meta.count("expert_used_count"));
  CAIRN_TRY(m.router.score, read_score(meta, defaults.score));
  CAIRN_TRY(m.router.normalize, meta.flag_or("expert_weights_norm", defaults.normalize));
  CAIRN_TRY(m.router.scale, meta.real_or("expert_weights_scale", 1.0f));
  if (m.router.scale == 0) m.router.scale = 1.0f;  // Files mean by it that there is none.
  CAIRN_TRY(const int32_t plain_width, meta.count_or("feed_forward_length", 0));
  CAIRN_TRY(m.expert_width, meta.count_or("expert_feed_forward_length", plain_width));
  CAIRN_TRY(const int32_t shared_count, meta.count_or("expert_shared_count", 0));
  const int64_t shared_width = int64_t(shared_count) * m.expert_width;
  if (shared_width > INT32_MAX) {
    return fail(ErrorCode::invalid_data,
                "{}: expected experts of less than 2^31 together, found {}",
                meta.key("expert_shared_count"), shared_count);
  }
  CAIRN_TRY(m.shared_width,
            meta.count_or("expert_shared_feed_forward_length", int32_t(shared_width)));
  CAIRN_TRY(read_groups(meta, m));
  CAIRN_TRY(m.dense_layer_count, meta.count_or("leading_dense_block_count", 0));
  return m;
}

Status expect_experts(const gguf::Metadata& meta, const MixtureConfig& mixture) {
  if (mixture.expert_count > 0) return Ok{};
  return fail(ErrorCode::invalid_data, "{}: expected at least 1, found 0",
              meta.key("expert_count"));
}

}  // namespace cairn::models
