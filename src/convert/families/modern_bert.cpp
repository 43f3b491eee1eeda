// ModernBERT, which makes embeddings: the head that guesses masked words is left out. Published
// configurations name the rotary bases after what a layer sees.
#include <algorithm>

#include "convert/rope_factors.h"
#include "convert/sentence_modules.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace modern_bert {

constexpr std::string_view kClasses[] = {"ModernBertModel", "ModernBertForMaskedLM"};

constexpr int64_t kUsualPeriod = 3;

constexpr NameRow kNames[] = {
    {"embeddings.tok_embeddings", "token_embd"},
    {"embeddings.norm", "token_embd_norm"},
    {"final_norm", "output_norm"},
    {"model.embeddings.tok_embeddings", "token_embd"},
    {"model.embeddings.norm", "token_embd_norm"},
    {"model.final_norm", "output_norm"},
    {"attn_norm", "attn_norm"},
    {"attn.Wqkv", "attn_qkv"},
    {"attn.Wo", "attn_output"},
    {"mlp_norm", "ffn_norm"},
    {"mlp.Wi", "ffn_up"},
    {"mlp.Wo", "ffn_down"},
};

// Layers with a window may have no base of their own.
Status add_bases(ParameterWriter& writer) {
  const Config& config = writer.config();
  const bool is_stated = config.states_rope_base();
  CAIRN_TRY(const double base,
            is_stated ? rope_number(config, "rope_theta") : config.number("global_rope_theta"));
  writer.set("rope.freq_base", float(base));
  double window_base = config.sliding_rope_base().value_or(base);
  if (!config.sliding_rope_base() && config.find("local_rope_theta") != nullptr) {
    CAIRN_TRY(window_base, config.number("local_rope_theta"));
  }
  writer.set("rope.freq_base_swa", float(window_base));
  return Ok{};
}

// The file has a period: its first layer sees everything. A list may say the same.
Status add_windows(ParameterWriter& writer) {
  const Config& config = writer.config();
  constexpr std::string_view kPeriod = "global_attn_every_n_layers";
  CAIRN_TRY(const std::optional<int64_t> stated, config.count_if_set({kPeriod}));
  CAIRN_TRY(writer.add_count("attention.sliding_window", {"local_attention"}));
  if (stated) writer.set("attention.sliding_window_pattern", uint32_t(*stated));
  if (config.find("layer_types") == nullptr) return Ok{};
  const int64_t period = std::max<int64_t>(stated.value_or(kUsualPeriod), 1);
  CAIRN_TRY(const std::vector<bool> sliding, writer.sliding_layers());
  for (size_t layer = 0; layer < sliding.size(); ++layer) {
    if (sliding[layer] == (int64_t(layer) % period != 0)) continue;
    return fail(ErrorCode::unsupported,
                "layer_types: expected full attention in the first of every {} layers, found "
                "otherwise at {}",
                period, layer);
  }
  return Ok{};
}

// mean or cls, before a classifier; the library's class says cls where the file says nothing.
Status add_classifier_pooling(ParameterWriter& writer) {
  const Json* stated = writer.config().find("classifier_pooling");
  const std::string_view mode = stated == nullptr ? "cls" : stated->as_text().value_or("");
  if (mode != "cls" && mode != "mean") {
    return fail(ErrorCode::unsupported, "classifier_pooling: expected cls or mean, found {}",
                stated->describe());
  }
  writer.set("classifier.pooling_type", uint32_t(mode == "mean" ? 1 : 2));
  return Ok{};
}

Status add_modern_bert(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_layer_count());
  CAIRN_TRY(writer.add_context());
  CAIRN_TRY(writer.add_count("embedding_length", {"hidden_size"}));
  CAIRN_TRY(writer.add_count("feed_forward_length", {"intermediate_size"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"num_attention_heads"}));
  CAIRN_TRY(add_bases(writer));
  CAIRN_TRY(writer.add_number("attention.layer_norm_rms_epsilon", {"norm_eps"}));
  CAIRN_TRY(writer.add_number_if_set("attention.layer_norm_epsilon", {"layer_norm_eps"}));
  writer.add_file_type();
  writer.set("attention.causal", false);
  CAIRN_TRY(add_pooling(writer));
  CAIRN_TRY(add_classifier_pooling(writer));
  if (std::vector<std::string> labels = labels_of(config); !labels.empty()) {
    writer.set("classifier.output_labels", std::move(labels));
  }
  CAIRN_TRY(add_windows(writer));
  writer.set("rope.scaling.type", std::string("none"));
  CAIRN_TRY(writer.add_count("vocab_size", {"vocab_size"}));
  const Json* activation = config.find("hidden_activation");
  writer.set("hidden_activation",
             std::string(activation == nullptr ? "gelu" : activation->as_text().value_or("")));
  return Ok{};
}

Result<bool> drop_head(TensorPlan&, const TensorName& name, const SourceTensor&) {
  return name.rest == "head.dense" || name.rest == "head.norm" || name.rest == "decoder";
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "modern-bert",
     .names = kNames,
     .parameters = add_modern_bert,
     .tensor = drop_head,
     .adds_ends = true,
     .gpt2_name = "modern-bert"},
};

constexpr ConfigDefault kDefaults[] = {
    {"modernbert", "norm_eps", 1e-5},
    {"modernbert", "local_attention", 128},
    {"modernbert", "global_rope_theta", 160000},
    {"modernbert", "local_rope_theta", 10000},
};

}  // namespace modern_bert

extern const FamilyGroup families_modern_bert;
constinit const FamilyGroup families_modern_bert = {modern_bert::kFamilies, modern_bert::kDefaults};

}  // namespace cairn::convert
