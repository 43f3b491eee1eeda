// Baichuan and Baichuan 2: q, k and v in one matrix, in thirds.
#include "convert/shared_families.h"

namespace cairn::convert {
namespace baichuan {

constexpr std::string_view kClasses[] = {"BaichuanForCausalLM", "BaiChuanForCausalLM"};

Status add_baichuan(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  writer.set("tensor_data_layout", std::string("Meta AI original pth"));
  CAIRN_TRY(const int64_t width, config.count("hidden_size"));
  CAIRN_TRY(const int64_t heads, config.positive("num_attention_heads"));
  writer.set("rope.dimension_count", uint32_t(width / heads));
  return Ok{};
}

Result<bool> split_thirds(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.rest != "self_attn.W_pack") return false;
  const int64_t heads = plan.head_count(), third = source.shape[0] / 3;
  if (heads < 1 || third * 3 != source.shape[0] || third % (2 * heads) != 0 ||
      plan.kv_head_count() != heads) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected three times {} heads, found shape {}",
                source.name, heads, shape_text(source));
  }
  const TensorPlan::Rows q[] = {{0, third}}, k[] = {{third, third}}, v[] = {{2 * third, third}};
  CAIRN_TRY(plan.add_rows(name, "attn_q", source, q, third / heads));
  CAIRN_TRY(plan.add_rows(name, "attn_k", source, k, third / heads));
  CAIRN_TRY(plan.add_rows(name, "attn_v", source, v));
  return true;
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "baichuan",
     .parameters = add_baichuan,
     .tensor = split_thirds,
     .vocabulary = VocabularyFile::sentencepiece_first},
};

}  // namespace baichuan

extern const FamilyGroup families_baichuan;
constinit const FamilyGroup families_baichuan = {baichuan::kFamilies};

}  // namespace cairn::convert
