// Hunyuan's dense models. "Dynamic" scaling is a larger base here, computed once.
#include <cmath>
#include <filesystem>

#include "convert/rope_factors.h"
#include "convert/shared_families.h"
#include "convert/special_tokens.h"

namespace cairn::convert {
namespace hunyuan {

constexpr uint32_t kLongContext = 256 * 1024;

constexpr NameRow kNames[] = {
    {"self_attn.query_layernorm", "attn_q_norm"},
    {"self_attn.key_layernorm", "attn_k_norm"},
};
constexpr PretokenizerAlias kPretokenizers[] = {{"deepseek-v3", "hunyuan-dense"}};
constexpr std::string_view kClasses[] = {"HunYuanDenseV1ForCausalLM"};

Status add_hunyuan(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  const std::string_view type = config.rope().text_at("rope_type").value_or("default");
  if (type != "dynamic" && type != "xdrope") return Ok{};
  CAIRN_TRY(const double base, rope_number(config, "rope_theta"));
  double alpha = 50;
  if (config.rope().find_set("alpha") != nullptr) {
    CAIRN_TRY(alpha, rope_number(config, "alpha"));
  }
  CAIRN_TRY(const int64_t dims, config.count("head_dim"));
  if (dims <= 2 || !(alpha > 0)) {
    return fail(ErrorCode::invalid_data,
                "head_dim, alpha: expected more than 2 and more than 0, found {} and {}", dims,
                alpha);
  }
  const double power = double(dims) / double(dims - 2);
  writer.set("rope.freq_base", float(base * std::pow(alpha, power)));
  writer.set("rope.scaling.type", std::string("none"));
  writer.set("rope.scaling.factor", 1.0f);
  if (type == "dynamic") {
    writer.set("rope.scaling.original_context_length", kLongContext);
    writer.set("context_length", kLongContext);
  }
  return Ok{};
}

Result<bool> skip_tied(TensorPlan& plan, const TensorName& name, const SourceTensor&) {
  return is_tied_output(plan, name);
}

// What ends a text is named apart from the other special tokens.
void add_tokens(const Config& config, const TokenizerFiles& files, KeyValues& out) {
  const Json* end = config.find("eod_token_id");
  if (end != nullptr && end->as_integer().value_or(-1) >= 0) {
    out.set("tokenizer.ggml.eos_token_id", uint32_t(*end->as_integer()));
  }
  const std::filesystem::path path = std::filesystem::path(files.folder) / "generation_config.json";
  Result<Json> json = read_json_file(path.string());
  const Json* ends = json ? json->find("eos_token_id") : nullptr;
  if (ends == nullptr || ends->items().size() < 2) return;
  const int64_t turn = ends->items()[0].as_integer().value_or(-1);
  if (turn >= 0) out.set("tokenizer.ggml.eot_token_id", uint32_t(turn));
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "hunyuan-dense",
     .names = kNames,
     .parameters = add_hunyuan,
     .tensor = skip_tied,
     .tokens = add_tokens,
     .pretokenizers = kPretokenizers},
};

constexpr ConfigDefault kDefaults[] = {
    {"hunyuan_v1_dense", "rms_norm_eps", 1e-5},
    {"hunyuan_v1_dense", "eod_token_id", 3},
};

}  // namespace hunyuan

extern const FamilyGroup families_hunyuan;
constinit const FamilyGroup families_hunyuan = {hunyuan::kFamilies, hunyuan::kDefaults};

}  // namespace cairn::convert
