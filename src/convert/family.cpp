// Names that most families share. Class names are those of config.json's architectures, target
// names GGUF's.
#include "convert/family.h"

namespace cairn::convert {
namespace {

constexpr NameRow kCommon[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};

const NameRow* find_row(std::span<const NameRow> rows, std::string_view source) {
  for (const NameRow& row : rows) {
    if (row.source == source) return &row;
  }
  return nullptr;
}

}  // namespace

const Family* find_family(std::string_view class_name) {
  for (const FamilyGroup* group : all_family_groups()) {
    for (const Family& family : group->families) {
      for (const std::string_view known : family.classes) {
        if (known == class_name) return &family;
      }
    }
  }
  return nullptr;
}

const NameRow* find_name(const Family& family, std::string_view source) {
  const NameRow* own = find_row(family.names, source);
  return own != nullptr ? own : find_row(kCommon, source);
}

}  // namespace cairn::convert
