// gpt-oss. Its experts come as MXFP4 blocks, which stay what they are: only the order of the
// nibbles is another. Rows of gate and up alternate.
#include <algorithm>
#include <string>
#include <utility>

#include "convert/shared_families.h"
#include "quant/quant.h"

namespace cairn::convert {
namespace gpt_oss {

constexpr NameRow kNames[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"self_attn.sinks", "attn_sinks"},
    {"mlp.router", "ffn_gate_inp"},
    {"mlp.experts.down_proj", "ffn_down_exps", {}, Edit::transpose},
};
constexpr std::string_view kClasses[] = {"GptOssForCausalLM"};

constexpr uint32_t kPackedFile = 38;  // The type of files whose experts are MXFP4.
constexpr int64_t kBlockBytes = 16, kBlockNumbers = 32;

Status add_gpt_oss(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_common());
  if (writer.config().find("quantization_config") != nullptr) {
    writer.out().set("general.file_type", kPackedFile);
  }
  CAIRN_TRY(writer.add_count("attention.sliding_window", {"sliding_window"}));
  return writer.add_count("expert_feed_forward_length", {"intermediate_size"});
}

// [experts, rows, blocks, 16] with [experts, rows, blocks]: of each expert the rows from
// `first_row` in steps of `step`. In a source's block byte i holds numbers 2 i (low) and 2 i + 1;
// in GGUF's, behind the scale, byte i holds numbers i (low) and i + 16.
Status add_blocks(TensorPlan& plan, std::string name, const SourceTensor& blocks,
                  const SourceTensor& scales, int64_t first_row, int64_t step) {
  const auto& shape = blocks.shape;
  const bool fits = shape.size() == 4 && shape[3] == kBlockBytes && scales.shape.size() == 3 &&
                    std::equal(scales.shape.begin(), scales.shape.end(), shape.begin()) &&
                    blocks.dtype == "U8" && scales.dtype == "U8" && shape[1] % step == 0 &&
                    blocks.number_count() > 0;
  if (!fits) {
    return fail(ErrorCode::invalid_data,
                "tensor {}: expected blocks of MXFP4 with scales, found {} of shape {} and {}",
                blocks.name, blocks.dtype, shape_text(blocks), shape_text(scales));
  }
  const int64_t block_count = shape[2], rows = shape[1] / step, all_rows = shape[1];
  PlannedTensor tensor = plan.start(std::move(name), {block_count * kBlockNumbers, rows, shape[0]});
  tensor.type_id = quant::find("MXFP4")->gguf_id;
  tensor.make_row = [=, &blocks, &scales](int64_t row, std::span<std::byte> out) {
    const int64_t in_row = row / rows * all_rows + row % rows * step + first_row;
    for (int64_t block = 0; block < block_count; ++block) {
      const int64_t at = in_row * block_count + block;
      const std::byte* in = blocks.bytes.data() + at * kBlockBytes;
      std::byte* to = out.data() + block * (1 + kBlockBytes);
      to[0] = scales.bytes[size_t(at)];
      const auto nibble = [&](int64_t i) { return in[i / 2] >> int(i % 2 * 4) & std::byte(15); };
      for (int64_t i = 0; i < kBlockBytes; ++i) {
        to[1 + i] = nibble(i) | nibble(i + kBlockBytes) << 4;
      }
    }
  };
  return plan.add(std::move(tensor));
}

// The packed experts of all layers come before the other tensors.
Status add_packed(TensorPlan& plan) {
  static constexpr std::string_view kStart = "model.layers.", kEnd = "_scales";
  for (const SourceTensor& scales : plan.checkpoint().tensors()) {
    const std::string_view name = scales.name;
    if (!name.starts_with(kStart) || !name.ends_with(kEnd)) continue;
    const std::string_view stem = name.substr(0, name.size() - kEnd.size());
    const SourceTensor* blocks = plan.checkpoint().find(std::string(stem) + "_blocks");
    if (blocks == nullptr) {
      return fail(ErrorCode::invalid_data, "tensor {}: expected its blocks, found none", name);
    }
    const std::string_view layer =
        stem.substr(kStart.size(), stem.find('.', kStart.size()) - kStart.size());
    const auto target = [&](std::string_view part) {
      return fmt::format("blk.{}.ffn_{}_exps.weight", layer, part);
    };
    if (stem.ends_with(".mlp.experts.down_proj")) {
      CAIRN_TRY(add_blocks(plan, target("down"), *blocks, scales, 0, 1));
    } else if (stem.ends_with(".mlp.experts.gate_up_proj")) {
      CAIRN_TRY(add_blocks(plan, target("gate"), *blocks, scales, 0, 2));
      CAIRN_TRY(add_blocks(plan, target("up"), *blocks, scales, 1, 2));
    }
  }
  return Ok{};
}

// Every second number of each expert's vector, or every second column of its matrix as a row.
Status add_alternating(TensorPlan& plan, const TensorName& name, const SourceTensor& source,
                       bool is_vector) {
  const size_t dim_count = is_vector ? 2 : 3;
  if (source.shape.size() != dim_count || source.shape.back() % 2 != 0) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected {} dimensions, found shape {}",
                source.name, dim_count, shape_text(source));
  }
  const int64_t experts = source.shape[0], both = source.shape.back();
  TensorName target = name;
  if (is_vector) target.ending = ".bias";
  static constexpr std::string_view kTargets[] = {"ffn_gate_exps", "ffn_up_exps"};
  for (int64_t part = 0; part < 2; ++part) {
    const int64_t width = is_vector ? both / 2 : source.shape[1];
    std::vector<int64_t> dims = {width, experts};
    if (!is_vector) dims.insert(dims.begin() + 1, both / 2);
    PlannedTensor tensor = plan.start(TensorPlan::target_name(target, kTargets[part]), dims);
    if (is_vector) {
      tensor.runs.push_back({&source, part, experts, both, 2});
    } else {
      for (int64_t expert = 0; expert < experts; ++expert) {
        tensor.runs.push_back({&source, expert * width * both + part, both / 2, 2, both});
      }
    }
    CAIRN_TRY(plan.add(std::move(tensor)));
  }
  return Ok{};
}

Result<bool> add_tensor(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.rest.ends_with("_proj_blocks") || name.rest.ends_with("_proj_scales")) return true;
  if (name.rest == "mlp.experts.gate_up_proj_bias" || name.rest == "mlp.experts.gate_up_proj") {
    CAIRN_TRY(add_alternating(plan, name, source, name.rest.ends_with("_bias")));
    return true;
  }
  if (name.rest != "mlp.experts.down_proj_bias") return false;
  TensorName target = name;
  target.ending = ".bias";
  CAIRN_TRY(plan.add_whole(target, "ffn_down_exps", source));
  return true;
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "gpt-oss",
     .names = kNames,
     .parameters = add_gpt_oss,
     .extra_tensors = add_packed,
     .tensor = add_tensor},
};

constexpr ConfigDefault kDefaults[] = {
    {"gpt_oss", "rms_norm_eps", 1e-5},
    {"gpt_oss", "head_dim", 64},
    {"gpt_oss", "sliding_window", 128},
    {"gpt_oss", "rope_theta", 150000},
};

}  // namespace gpt_oss

extern const FamilyGroup families_gpt_oss;
constinit const FamilyGroup families_gpt_oss = {gpt_oss::kFamilies, gpt_oss::kDefaults};

}  // namespace cairn::convert
