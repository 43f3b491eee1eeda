// Refact: slopes for positions, one head of keys for all, a fused gate. Its inner width is
// computed.
#include "convert/shared_families.h"

namespace cairn::convert {
namespace refact {

constexpr NameRow kNames[] = {
    {"transformer.wte", "token_embd"},
    {"transformer.ln_f", "output_norm"},
    {"ln_f", "output_norm"},
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"attn.q", "attn_q"},
    {"attn.kv", "attn_k", "attn_v"},
    {"attn.c_proj", "attn_output"},
    {"mlp.gate_up_proj", "ffn_gate", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
};
constexpr std::string_view kClasses[] = {"GPTRefactForCausalLM"};

// Two thirds of four times the width, up to the next 256.
Status add_refact(ParameterWriter& writer) {
  CAIRN_TRY(const int64_t width, writer.config().count("n_embd"));
  CAIRN_TRY(writer.add_count("context_length", {"n_positions"}));
  writer.set("embedding_length", uint32_t(width));
  writer.set("feed_forward_length", uint32_t((8 * width / 3 + 255) / 256 * 256));
  CAIRN_TRY(writer.add_count("block_count", {"n_layer"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"n_head"}));
  writer.set("attention.head_count_kv", uint32_t(1));
  CAIRN_TRY(writer.add_number("attention.layer_norm_rms_epsilon", {"layer_norm_epsilon"}));
  writer.add_file_type();
  return Ok{};
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "refact",
     .names = kNames,
     .parameters = add_refact,
     .digits_name = "refact"},
};

}  // namespace refact

extern const FamilyGroup families_refact;
constinit const FamilyGroup families_refact = {refact::kFamilies};

}  // namespace cairn::convert
