// The older decoders: GPT-2, GPT-NeoX, StarCoder (GPTBigCode), Bloom, Falcon, MPT. Positions are
// learned, rotated or a slope; q, k and v come in one matrix, and two of them keep it head by head.
#include <vector>

#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace gpt {

constexpr NameRow kGpt2[] = {
    {"wte", "token_embd"},
    {"wpe", "position_embd"},
    {"transformer.wte", "token_embd"},
    {"transformer.wpe", "position_embd"},
    {"ln_f", "output_norm"},
    {"transformer.ln_f", "output_norm"},
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"attn.c_attn", "attn_qkv", {}, Edit::transpose},
    {"attn.c_proj", "attn_output", {}, Edit::transpose},
    {"mlp.c_fc", "ffn_up", {}, Edit::transpose},
    {"mlp.c_proj", "ffn_down", {}, Edit::transpose},
};
constexpr NameRow kStarcoder[] = {
    {"transformer.wte", "token_embd"},
    {"transformer.wpe", "position_embd"},
    {"transformer.ln_f", "output_norm"},
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"attn.c_attn", "attn_qkv"},
    {"attn.c_proj", "attn_output"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
};
constexpr NameRow kGptNeox[] = {
    {"gpt_neox.embed_in", "token_embd"},
    {"embed_out", "output"},
    {"gpt_neox.final_layer_norm", "output_norm"},
    {"attention.query_key_value", "attn_qkv"},
    {"attention.dense", "attn_output"},
    {"mlp.dense_h_to_4h", "ffn_up"},
    {"mlp.dense_4h_to_h", "ffn_down"},
};
constexpr NameRow kBloom[] = {
    {"transformer.word_embeddings", "token_embd"},
    {"word_embeddings", "token_embd"},
    {"transformer.word_embeddings_layernorm", "token_embd_norm"},
    {"word_embeddings_layernorm", "token_embd_norm"},
    {"transformer.ln_f", "output_norm"},
    {"ln_f", "output_norm"},
    {"self_attention.dense", "attn_output"},
    {"mlp.dense_h_to_4h", "ffn_up"},
    {"mlp.dense_4h_to_h", "ffn_down"},
};
constexpr NameRow kFalcon[] = {
    {"transformer.word_embeddings", "token_embd"},
    {"transformer.ln_f", "output_norm"},
    {"ln_attn", "attn_norm_2"},
    {"ln_mlp", "attn_norm"},
    {"self_attention.dense", "attn_output"},
    {"mlp.dense_h_to_4h", "ffn_up"},
    {"mlp.dense_4h_to_h", "ffn_down"},
};
constexpr NameRow kMpt[] = {
    {"transformer.wte", "token_embd"},
    {"transformer.wpe", "position_embd"},
    {"transformer.norm_f", "output_norm"},
    {"norm_1", "attn_norm"},
    {"norm_2", "ffn_norm"},
    {"attn.Wqkv", "attn_qkv"},
    {"attn.out_proj", "attn_output"},
    {"attn.q_ln", "attn_q_norm"},
    {"attn.k_ln", "attn_k_norm"},
    {"ffn.up_proj", "ffn_up"},
    {"ffn.down_proj", "ffn_down"},
    {"ffn.act", "ffn.act"},
};

constexpr std::string_view kGpt2Classes[] = {"GPT2LMHeadModel"};
constexpr std::string_view kStarcoderClasses[] = {"GPTBigCodeForCausalLM"};
constexpr std::string_view kGptNeoxClasses[] = {"GPTNeoXForCausalLM"};
constexpr std::string_view kBloomClasses[] = {"BloomForCausalLM", "BloomModel"};
constexpr std::string_view kFalconClasses[] = {"FalconForCausalLM", "RWForCausalLM"};
constexpr std::string_view kMptClasses[] = {"MPTForCausalLM", "MptForCausalLM"};

Status add_four_times(ParameterWriter& writer, ParameterWriter::Keys width_keys) {
  CAIRN_TRY(const int64_t width, writer.config().count(width_keys));
  writer.set("embedding_length", uint32_t(width));
  writer.set("feed_forward_length", uint32_t(4 * width));
  return Ok{};
}

Status add_gpt2(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_count("block_count", {"n_layer"}));
  CAIRN_TRY(writer.add_count("context_length", {"n_ctx", "n_positions"}));
  CAIRN_TRY(add_four_times(writer, {"n_embd"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"n_head"}));
  CAIRN_TRY(writer.add_number("attention.layer_norm_epsilon", {"layer_norm_epsilon"}));
  writer.add_file_type();
  return Ok{};
}

Status add_starcoder(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_count("context_length", {"n_positions"}));
  CAIRN_TRY(add_four_times(writer, {"n_embd"}));
  CAIRN_TRY(writer.add_count("block_count", {"n_layer"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"n_head"}));
  writer.set("attention.head_count_kv", uint32_t(1));
  CAIRN_TRY(writer.add_number("attention.layer_norm_epsilon", {"layer_norm_epsilon"}));
  writer.add_file_type();
  return Ok{};
}

Status add_gptneox(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const int64_t width, config.count("hidden_size"));
  CAIRN_TRY(const int64_t heads, config.positive("num_attention_heads"));
  // The second name is the newer one.
  CAIRN_TRY(const double part, config.find("rotary_pct") != nullptr ? config.number("rotary_pct")
                                                                    : rotated_part(config));
  if (!(part >= 0 && part <= 1)) {
    return fail(ErrorCode::invalid_data, "rotary_pct: expected 0 to 1, found {}", part);
  }
  CAIRN_TRY(writer.add_context());
  writer.set("embedding_length", uint32_t(width));
  CAIRN_TRY(writer.add_count("block_count", {"num_hidden_layers"}));
  CAIRN_TRY(writer.add_count("feed_forward_length", {"intermediate_size"}));
  writer.set("rope.dimension_count", uint32_t(part * double(width / heads)));
  writer.set("attention.head_count", uint32_t(heads));
  const Json* parallel = config.find("use_parallel_residual");
  writer.set("use_parallel_residual", parallel == nullptr || parallel->as_boolean().value_or(true));
  return writer.add_number("attention.layer_norm_epsilon", {"layer_norm_eps"});
}

Status add_bloom(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_count("context_length", {"seq_length", "hidden_size", "n_embed"}));
  CAIRN_TRY(add_four_times(writer, {"hidden_size", "n_embed"}));
  CAIRN_TRY(writer.add_count("block_count", {"n_layer", "num_hidden_layers"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"n_head", "num_attention_heads"}));
  CAIRN_TRY(writer.add_count("attention.head_count_kv", {"n_head", "num_attention_heads"}));
  CAIRN_TRY(writer.add_number("attention.layer_norm_epsilon", {"layer_norm_epsilon"}));
  writer.add_file_type();
  return Ok{};
}

// How many heads of keys a Falcon has. The first ones say only whether there is one for all.
Result<int64_t> falcon_kv_heads(const Config& config) {
  CAIRN_TRY(const std::optional<int64_t> stated,
            config.count_if_set({"num_kv_heads", "n_head_kv"}));
  const Json* newer = config.find("new_decoder_architecture");
  const Json* one = config.find("multi_query");
  const bool is_newer = newer != nullptr && newer->as_boolean().value_or(false);
  if (is_newer) return stated.value_or(1);
  if (one == nullptr || one->as_boolean().value_or(true)) return int64_t(1);
  return config.count({"num_attention_heads", "n_head"});
}

Status add_falcon(ParameterWriter& writer) {
  CAIRN_TRY(const int64_t kv_heads, falcon_kv_heads(writer.config()));
  writer.set("context_length", uint32_t(2048));  // What all of them were trained for.
  writer.set("tensor_data_layout", std::string("jploski"));
  CAIRN_TRY(add_four_times(writer, {"hidden_size"}));
  CAIRN_TRY(writer.add_count("block_count", {"num_hidden_layers", "n_layer"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"num_attention_heads", "n_head"}));
  writer.set("attention.head_count_kv", uint32_t(kv_heads));
  CAIRN_TRY(writer.add_number("attention.layer_norm_epsilon", {"layer_norm_epsilon"}));
  writer.add_file_type();
  return Ok{};
}

Status add_mpt(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_count("context_length", {"max_seq_len"}));
  CAIRN_TRY(const int64_t width, config.count("d_model"));
  writer.set("embedding_length", uint32_t(width));
  CAIRN_TRY(writer.add_count("block_count", {"n_layers"}));
  writer.set("feed_forward_length", uint32_t(4 * width));
  CAIRN_TRY(writer.add_count("attention.head_count", {"n_heads"}));
  const Json* attention = config.find("attn_config");
  const auto number_at = [&](std::string_view key) -> std::optional<double> {
    const Json* value = attention == nullptr ? nullptr : attention->find_set(key);
    return value == nullptr ? std::nullopt : value->as_real();
  };
  if (const auto kv_heads = number_at("kv_n_heads");
      kv_heads && *kv_heads > 0 && *kv_heads < double(INT32_MAX)) {
    writer.set("attention.head_count_kv", uint32_t(*kv_heads));
  }
  writer.set("attention.layer_norm_epsilon", 1e-5f);
  if (const auto clip = number_at("clip_qkv")) writer.set("attention.clamp_kqv", float(*clip));
  const Json* slopes = attention == nullptr ? nullptr : attention->find_set("alibi");
  const bool has_slopes = slopes == nullptr || slopes->as_boolean().value_or(false);
  const double slope_max = number_at("alibi_bias_max").value_or(8);
  writer.set("attention.max_alibi_bias", has_slopes ? float(slope_max) : 0.0f);
  return Ok{};
}

// Rows [heads, 3, dim] become all of q, then k, then v.
Result<bool> sort_heads(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (!name.rest.ends_with("query_key_value")) return false;
  const int64_t heads = plan.head_count(), row_count = source.shape[0];
  if (heads < 1 || row_count % (3 * heads) != 0) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected rows of {} heads, found shape {}",
                source.name, heads, shape_text(source));
  }
  const int64_t dim = row_count / 3 / heads;
  std::vector<TensorPlan::Rows> rows;
  for (int64_t part = 0; part < 3; ++part) {
    for (int64_t head = 0; head < heads; ++head) rows.push_back({(3 * head + part) * dim, dim});
  }
  CAIRN_TRY(plan.add_rows(name, "attn_qkv", source, rows));
  return true;
}

// Rows [groups, queries of one + 2, dim] become the queries, then the keys, then the values.
Result<bool> sort_groups(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (!name.rest.ends_with("query_key_value")) return false;
  CAIRN_TRY(const int64_t groups, falcon_kv_heads(plan.config()));
  const int64_t heads = plan.head_count(), row_count = source.shape[0];
  if (groups < 1 || heads < 1 || heads % groups != 0 || row_count % (heads + 2 * groups) != 0) {
    return fail(ErrorCode::invalid_data,
                "tensor {}: expected rows of {} heads in {} groups, found shape {}", source.name,
                heads, groups, shape_text(source));
  }
  const int64_t dim = row_count / (heads + 2 * groups), queries = heads / groups;
  std::vector<TensorPlan::Rows> rows;
  for (int64_t group = 0; group < groups; ++group) {
    rows.push_back({group * (queries + 2) * dim, queries * dim});
  }
  for (int64_t part = 0; part < 2; ++part) {
    for (int64_t group = 0; group < groups; ++group) {
      rows.push_back({(group * (queries + 2) + queries + part) * dim, dim});
    }
  }
  CAIRN_TRY(plan.add_rows(name, "attn_qkv", source, rows));
  return true;
}

// Masks that old files keep beside the weights.
Result<bool> skip_masks(TensorPlan&, const TensorName& name, const SourceTensor&) {
  return name.rest == "attn" || name.rest == "attn.masked_bias";
}

constexpr Family kFamilies[] = {
    {.classes = kGpt2Classes,
     .architecture = "gpt2",
     .names = kGpt2,
     .parameters = add_gpt2,
     .tensor = skip_masks},
    {.classes = kStarcoderClasses,
     .architecture = "starcoder",
     .names = kStarcoder,
     .parameters = add_starcoder,
     .tensor = skip_masks,
     .digits_name = "starcoder"},
    {.classes = kGptNeoxClasses,
     .architecture = "gptneox",
     .names = kGptNeox,
     .parameters = add_gptneox,
     .tensor = sort_heads},
    {.classes = kBloomClasses,
     .architecture = "bloom",
     .names = kBloom,
     .parameters = add_bloom,
     .tensor = sort_heads},
    {.classes = kFalconClasses,
     .architecture = "falcon",
     .names = kFalcon,
     .parameters = add_falcon,
     .tensor = sort_groups},
    {.classes = kMptClasses,
     .architecture = "mpt",
     .names = kMpt,
     .parameters = add_mpt,
     .gpt2_name = "mpt"},
};

constexpr ConfigDefault kDefaults[] = {
    {"gpt2", "layer_norm_epsilon", 1e-5},
    {"gpt_bigcode", "layer_norm_epsilon", 1e-5},
    {"gpt_neox", "layer_norm_eps", 1e-5},
    {"gpt_neox", "partial_rotary_factor", 0.25},
    {"bloom", "layer_norm_epsilon", 1e-5},
    {"bloom", "n_layer", 2},
    {"bloom", "n_head", 8},
    {"falcon", "layer_norm_epsilon", 1e-5},
};

}  // namespace gpt

extern const FamilyGroup families_gpt;
constinit const FamilyGroup families_gpt = {gpt::kFamilies, gpt::kDefaults};

}  // namespace cairn::convert
