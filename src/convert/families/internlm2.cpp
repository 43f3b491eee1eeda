// InternLM 2: q, k and v in one matrix, group by group; the names are those of its own code.
#include <cstdlib>
#include <vector>

#include "convert/shared_families.h"
#include "convert/special_tokens.h"

namespace cairn::convert {
namespace internlm2 {

constexpr std::string_view kTurnEnd = "<|im_end|>";

constexpr NameRow kNames[] = {
    {"model.tok_embeddings", "token_embd"}, {"output", "output"},
    {"attention_norm", "attn_norm"},        {"ffn_norm", "ffn_norm"},
    {"attention.wo", "attn_output"},        {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w2", "ffn_down"},        {"feed_forward.w3", "ffn_up"},
};
constexpr std::string_view kClasses[] = {"InternLM2ForCausalLM"};

// Rows [groups, queries of one + key + value, dim].
Result<bool> split_groups(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.rest != "attention.wqkv") return false;
  const int64_t heads = plan.head_count(), groups = plan.kv_head_count();
  const int64_t parts = heads + 2 * groups, row_count = source.shape[0];
  if (groups < 1 || heads % groups != 0 || row_count % parts != 0 || row_count / parts % 2 != 0) {
    return fail(ErrorCode::invalid_data,
                "tensor {}: expected rows of {} heads in {} groups, found shape {}", source.name,
                heads, groups, shape_text(source));
  }
  const int64_t dim = row_count / parts, queries = heads / groups;
  std::vector<TensorPlan::Rows> q, k, v;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t first = group * (queries + 2) * dim;
    q.push_back({first, queries * dim});
    k.push_back({first + queries * dim, dim});
    v.push_back({first + (queries + 1) * dim, dim});
  }
  CAIRN_TRY(plan.add_rows(name, "attn_q", source, q, dim));
  CAIRN_TRY(plan.add_rows(name, "attn_k", source, k, dim));
  CAIRN_TRY(plan.add_rows(name, "attn_v", source, v));
  return true;
}

// A model that talks ends with its turn.
void add_tokens(const Config&, const TokenizerFiles& files, KeyValues& out) {
  const Json* added = files.tokenizer_config.find("added_tokens_decoder");
  if (added == nullptr) return;
  for (const auto& [key, value] : added->members()) {
    if (value.text_at("content") != kTurnEnd || key.empty() || key.size() > 9) continue;
    const int64_t id = std::strtol(key.c_str(), nullptr, 10);
    out.set("tokenizer.ggml.eos_token_id", uint32_t(id));
  }
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "internlm2",
     .names = kNames,
     .tensor = split_groups,
     .tokens = add_tokens,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::internlm},
};

}  // namespace internlm2

extern const FamilyGroup families_internlm2;
constinit const FamilyGroup families_internlm2 = {internlm2::kFamilies};

}  // namespace cairn::convert
