// BERT, RoBERTa, XLM-RoBERTa and Nomic's BERT: models that make embeddings, and rerankers. Heads
// that guess masked words are left out. RoBERTa's positions begin behind its padding.
#include "convert/sentence_modules.h"
#include "convert/shared_families.h"
#include "convert/special_tokens.h"

namespace cairn::convert {
namespace bert {

constexpr std::string_view kBertClasses[] = {"BertModel", "BertForMaskedLM",
                                             "BertForSequenceClassification"};
constexpr std::string_view kRobertaClasses[] = {"RobertaModel", "RobertaForSequenceClassification"};
constexpr std::string_view kXlmClasses[] = {"XLMRobertaModel",
                                            "XLMRobertaForSequenceClassification"};
constexpr std::string_view kNomicClasses[] = {"NomicBertModel"};

constexpr NameRow kNames[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"attention.self.query", "attn_q"},
    {"attention.self.key", "attn_k"},
    {"attention.self.value", "attn_v"},
    {"attention.output.dense", "attn_output"},
    {"attention.output.LayerNorm", "attn_output_norm"},
    {"intermediate.dense", "ffn_up"},
    {"output.dense", "ffn_down"},
    {"output.LayerNorm", "layer_output_norm"},
    {"classifier", "cls"},
    {"classifier.dense", "cls"},
    {"classifier.out_proj", "cls.output"},
    // Nomic's.
    {"emb_ln", "token_embd_norm"},
    {"attn.Wqkv", "attn_qkv"},
    {"attn.out_proj", "attn_output"},
    {"norm1", "attn_output_norm"},
    {"norm2", "layer_output_norm"},
    {"mlp.fc11", "ffn_up"},
    {"mlp.fc12", "ffn_gate"},
    {"mlp.fc1", "ffn_up"},
    {"mlp.fc2", "ffn_down"},
    {"mlp.router.layer", "ffn_gate_inp"},
};

bool is_roberta(std::string_view class_name) {
  return class_name.starts_with("Roberta") || class_name.starts_with("XLMRoberta");
}

// Rows of the table of positions that stand for none.
Result<int64_t> position_offset(const Config& config) {
  if (!is_roberta(config.class_name())) return 0;
  CAIRN_TRY(const std::optional<int64_t> padding, config.count_if_set({"pad_token_id"}));
  return padding ? *padding + 1 : 0;
}

// Nomic's first models are trained for less than they state, so are those with experts.
Result<int64_t> context_length(const Config& config) {
  CAIRN_TRY(const int64_t stated, config.count({"max_position_embeddings", "n_positions"}));
  CAIRN_TRY(const int64_t offset, position_offset(config));
  if (config.class_name() != "NomicBertModel") return std::max<int64_t>(stated - offset, 0);
  CAIRN_TRY(const std::optional<int64_t> trained, config.count_if_set({"max_trained_positions"}));
  if (trained.value_or(2048) == 2048 && stated == 8192) return 2048;
  if (trained.value_or(2048) == 2048 && stated == 2048) return 512;
  return fail(ErrorCode::unsupported, "n_positions: expected 2048 or 8192, found {}", stated);
}

Status add_bert(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_count("block_count", {"num_hidden_layers", "n_layer"}));
  CAIRN_TRY(const int64_t context, context_length(config));
  writer.set("context_length", uint32_t(context));
  CAIRN_TRY(writer.add_count("embedding_length", {"hidden_size", "n_embd"}));
  CAIRN_TRY(writer.add_count("feed_forward_length", {"intermediate_size", "n_inner"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"num_attention_heads", "n_head"}));
  CAIRN_TRY(writer.add_number_if_set("rope.freq_base", {"rotary_emb_base"}));
  CAIRN_TRY(
      writer.add_number("attention.layer_norm_epsilon", {"layer_norm_eps", "layer_norm_epsilon"}));
  CAIRN_TRY(writer.add_count_if_set("expert_count", {"num_local_experts", "num_experts"}));
  writer.add_file_type();
  writer.set("attention.causal", false);
  CAIRN_TRY(add_pooling(writer));
  if (std::vector<std::string> labels = labels_of(config); !labels.empty()) {
    writer.set("classifier.output_labels", std::move(labels));
  }
  CAIRN_TRY(const std::optional<int64_t> every, config.count_if_set({"moe_every_n_layers"}));
  if (every.value_or(0) == 0) return Ok{};
  writer.set("moe_every_n_layers", uint32_t(*every));
  return writer.add_count("expert_used_count", {"moe_top_k"});
}

// [experts * inner, width]: as it is for the way up; turned for each expert for the way down.
Status add_experts(TensorPlan& plan, const TensorName& name, bool is_up,
                   const SourceTensor& source) {
  CAIRN_TRY(const int64_t inner, plan.config().positive("n_inner"));
  CAIRN_TRY(const int64_t width, plan.config().positive("n_embd"));
  const int64_t count = plan.expert_count();
  if (source.shape.size() != 2 || source.shape[1] != width || count < 1 ||
      source.shape[0] / inner != count || source.shape[0] % inner != 0) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected {} experts of {} x {}, found {}",
                source.name, count, inner, width, shape_text(source));
  }
  const std::string target = TensorPlan::target_name(name, is_up ? "ffn_up_exps" : "ffn_down_exps");
  PlannedTensor tensor =
      is_up ? plan.start(target, {width, inner, count}) : plan.start(target, {inner, width, count});
  if (is_up) tensor.runs.push_back({&source, 0, inner * count, width});
  for (int64_t expert = 0; !is_up && expert < count; ++expert) {
    tensor.runs.push_back({&source, expert * inner * width, width, 1, width});
  }
  return plan.add(std::move(tensor));
}

bool is_left_out(std::string_view rest) {
  return rest == "embeddings.position_ids" || rest == "pooler.dense" ||
         rest.starts_with("cls.predictions") || rest.starts_with("cls.seq_relationship") ||
         rest.starts_with("lm_head") || rest == "mlp.experts";
}

// "roberta.encoder.layer.3.x" and "bert.embeddings.y" as the bare models call them.
TensorName without_model(TensorName name) {
  constexpr std::string_view kLayer = "encoder.layer.";
  for (const std::string_view model : {"bert.", "roberta."}) {
    if (name.rest.starts_with(model)) name.rest.erase(0, model.size());
  }
  if (name.layer || !name.rest.starts_with(kLayer)) return name;
  const size_t dot = name.rest.find('.', kLayer.size());
  const std::string digits = name.rest.substr(kLayer.size(), dot - kLayer.size());
  const bool is_number =
      !digits.empty() && digits.size() < 5 && digits.find_first_not_of("0123456789") == digits.npos;
  if (dot == name.rest.npos || !is_number) return name;
  name.layer = std::stoll(digits);
  name.rest.erase(0, dot + 1);
  return name;
}

Result<bool> add_tensor(TensorPlan& plan, const TensorName& given, const SourceTensor& source) {
  TensorName name = without_model(given);
  for (const auto& [old, ending] : {std::pair(".gamma", ".weight"), std::pair(".beta", ".bias")}) {
    if (!name.rest.ends_with(old)) continue;
    name.rest.erase(name.rest.rfind('.'));
    name.ending = ending;
  }
  if (is_left_out(name.rest)) return true;
  if (name.rest == "mlp.experts.mlp.w1" || name.rest == "mlp.experts.mlp.w2") {
    CAIRN_TRY(add_experts(plan, name, name.rest.ends_with('1'), source));
    return true;
  }
  if (name.rest == "classifier" && !labels_of(plan.config()).empty()) {
    name.rest = "classifier.out_proj";
  }
  const NameRow* row = find_name(plan.family(), name.rest);
  if (row == nullptr) return false;
  CAIRN_TRY(const int64_t offset, position_offset(plan.config()));
  if (row->target == "position_embd" && offset > 0) {
    if (source.shape[0] <= offset) {
      return fail(ErrorCode::invalid_data, "tensor {}: expected more than {} rows, found shape {}",
                  source.name, offset, shape_text(source));
    }
    const TensorPlan::Rows rows[] = {{offset, source.shape[0] - offset}};
    CAIRN_TRY(plan.add_rows(name, row->target, source, rows));
    return true;
  }
  CAIRN_TRY(plan.add_row(name, *row, source));
  return true;
}

void adapt_nomic(const Config& config, Family& family) {
  const Json* every = config.find("moe_every_n_layers");
  if (every != nullptr && every->as_integer().value_or(0) > 0) {
    family.architecture = "nomic-bert-moe";
  }
}

// Byte-level vocabularies say it at last.
void say_types(const Config& config, const TokenizerFiles&, KeyValues& out) {
  Result<std::optional<int64_t>> count = config.count_if_set({"type_vocab_size"});
  out.set("tokenizer.ggml.token_type_count", uint32_t(count && *count ? **count : 1));
}

constexpr Family kFamilies[] = {
    {.classes = kBertClasses,
     .architecture = "bert",
     .names = kNames,
     .parameters = add_bert,
     .tensor = add_tensor},
    {.classes = kRobertaClasses,
     .architecture = "bert",
     .names = kNames,
     .parameters = add_bert,
     .tensor = add_tensor,
     .tokens = say_types},
    {.classes = kXlmClasses,
     .architecture = "bert",
     .names = kNames,
     .parameters = add_bert,
     .tensor = add_tensor,
     .vocabulary = VocabularyFile::xlm_roberta},
    {.classes = kNomicClasses,
     .architecture = "nomic-bert",
     .names = kNames,
     .parameters = add_bert,
     .tensor = add_tensor,
     .adapt = adapt_nomic},
};

constexpr ConfigDefault kDefaults[] = {
    {"bert", "layer_norm_eps", 1e-12},  {"roberta", "layer_norm_eps", 1e-12},
    {"roberta", "pad_token_id", 1},     {"xlm-roberta", "layer_norm_eps", 1e-12},
    {"xlm-roberta", "pad_token_id", 1},
};

}  // namespace bert

extern const FamilyGroup families_bert;
constinit const FamilyGroup families_bert = {bert::kFamilies, bert::kDefaults};

}  // namespace cairn::convert
