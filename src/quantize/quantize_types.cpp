// The mixes: a base type, and where more bits go. The places and types are facts of llama.cpp's
// quantizer (src/llama-quant.cpp there), found by trial over the years; the names promise them.
#include "quantize/quantize_types.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace cairn::quantize {

namespace {

constexpr QuantMix kMixes[] = {
    {"F32", "F32", 0},          {"F16", "F16", 1},        {"BF16", "BF16", 32},
    {"Q8_0", "Q8_0", 7},        {"Q6_K", "Q6_K", 18},     {"Q5_K_M", "Q5_K", 17},
    {"Q5_K_S", "Q5_K", 16},     {"Q5_1", "Q5_1", 9},      {"Q5_0", "Q5_0", 8},
    {"Q4_K_M", "Q4_K", 15},     {"Q4_K_S", "Q4_K", 14},   {"Q4_1", "Q4_1", 3},
    {"Q4_0", "Q4_0", 2},        {"IQ4_NL", "IQ4_NL", 25}, {"IQ4_XS", "IQ4_XS", 30},
    {"Q3_K_L", "Q3_K", 13},     {"Q3_K_M", "Q3_K", 12},   {"Q3_K_S", "Q3_K", 11},
    {"Q2_K", "Q2_K", 10},       {"Q2_K_S", "Q2_K", 21},   {"IQ3_M", "IQ3_S", 27},
    {"IQ3_S", "IQ3_S", 26},     {"IQ3_XS", "IQ3_S", 22},  {"IQ3_XXS", "IQ3_XXS", 23},
    {"IQ2_M", "IQ2_S", 29},     {"IQ2_S", "IQ2_XS", 28},  {"IQ2_XS", "IQ2_XS", 20},
    {"IQ2_XXS", "IQ2_XXS", 19}, {"IQ1_M", "IQ1_M", 31},   {"IQ1_S", "IQ1_S", 24},
    {"TQ2_0", "TQ2_0", 37},     {"TQ1_0", "TQ1_0", 36},   {"MXFP4_MOE", "MXFP4", 38},
};

struct Alias {
  std::string_view name, mix;
};
constexpr Alias kAliases[] = {{"Q3_K", "Q3_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"}};

// Matrices that are small and matter, by parts of their names, and what is no matrix of weights.
constexpr std::string_view kKept[] = {"_norm.weight",
                                      "ffn_gate_inp.weight",
                                      "ffn_gate_tid2eid.weight",
                                      "altup",
                                      "laurel",
                                      "per_layer_model_proj",
                                      "position_embd",
                                      "token_types",
                                      "ssm_conv1d",
                                      "shortconv.conv.weight",
                                      "indexer.k_proj.weight",
                                      "indexer.q_proj.weight",
                                      "time_mix_first.weight",
                                      "time_mix_w0.weight",
                                      "time_mix_w1.weight",
                                      "time_mix_w2.weight",
                                      "time_mix_v0.weight",
                                      "time_mix_v1.weight",
                                      "time_mix_v2.weight",
                                      "time_mix_a0.weight",
                                      "time_mix_a1.weight",
                                      "time_mix_a2.weight",
                                      "time_mix_g1.weight",
                                      "time_mix_g2.weight",
                                      "time_mix_decay_w1.weight",
                                      "time_mix_decay_w2.weight",
                                      "time_mix_lerp_fused.weight",
                                      "attn_rel_b.weight"};

enum class Part {
  embedding,
  output,
  values,
  keys,
  queries,
  attention_output,
  ffn_down,
  ffn_in,
  other
};

Part part_of(std::string_view name) {
  const auto has = [name](std::string_view text) { return name.find(text) != name.npos; };
  if (name == "output.weight") return Part::output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return Part::embedding;
  if (has("attn_qkv.weight") || has("attn_kv_b.weight") || has("attn_v.weight"))
    return Part::values;
  if (has("attn_k.weight")) return Part::keys;
  if (has("attn_q.weight")) return Part::queries;
  if (has("attn_output.weight")) return Part::attention_output;
  if (has("ffn_down")) return Part::ffn_down;
  return has("ffn_up") || has("ffn_gate") ? Part::ffn_in : Part::other;
}

// What a choice depends on besides the tensor.
struct ModelFacts {
  std::string architecture;
  int32_t layer_count = 0;
  int32_t expert_count = 0;
  int32_t query_heads_per_key = 1;
  int32_t values_count = 0;  // Tensors of Part::values.
  bool has_importance = false;
  bool is_tied = true;

  bool is_falcon() const { return architecture == "falcon"; }
  // Large models whose values are shared by eight heads each: more bits cost them little.
  bool has_small_values() const {
    return layer_count == 80 &&
           (architecture == "llama" || architecture == "qwen2" || architecture == "deci");
  }
};

Result<ModelFacts> facts_of(const gguf::File& file, bool has_importance) {
  CAIRN_TRY(const gguf::Metadata meta, file.metadata());
  ModelFacts facts{.architecture = meta.architecture(), .has_importance = has_importance};
  CAIRN_TRY(facts.layer_count, meta.count("block_count"));
  CAIRN_TRY(facts.expert_count, meta.count_or("expert_count", 0));
  if (facts.layer_count > 0 && meta.has("attention.head_count")) {
    CAIRN_TRY(const auto heads, meta.per_layer("attention.head_count", facts.layer_count));
    CAIRN_TRY(const auto key_heads,
              meta.per_layer_or("attention.head_count_kv", facts.layer_count, heads[0]));
    if (key_heads[0] > 0) facts.query_heads_per_key = heads[0] / key_heads[0];
  }
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (part_of(tensor.name) == Part::values) ++facts.values_count;
    if (tensor.name == "output.weight") facts.is_tied = false;
  }
  return facts;
}

// The first and last eighth, and every third layer in between.
bool is_sensitive(int32_t layer, int32_t count) {
  return layer < count / 8 || layer >= 7 * count / 8 || (layer - count / 8) % 3 == 2;
}

bool is_one_of(std::string_view mix, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), mix) != names.end();
}

bool is_two_bit(std::string_view mix) {
  return mix.starts_with("IQ1") || mix.starts_with("IQ2");
}

// The mixes of one and two bits: the output matrix has more than they, and what is small.
std::string_view two_bit_type(std::string_view mix, std::string_view base, const ModelFacts& facts,
                              Part part, int32_t index) {
  const bool is_large = is_one_of(mix, {"IQ2_S", "IQ2_M"});
  const std::string_view richer = is_large ? "IQ3_S" : "Q2_K";
  switch (part) {
    case Part::values:
      return facts.query_heads_per_key >= 4 || facts.expert_count >= 4 ? "Q4_K" : richer;
    case Part::keys:
      return facts.expert_count == 8 ? "Q4_K" : base;
    case Part::ffn_down:
      return index < facts.layer_count / 8 ? richer : base;
    case Part::attention_output:
      if (facts.expert_count == 8) return "Q5_K";
      if (mix.starts_with("IQ1")) return "IQ2_XXS";
      return is_large ? "IQ3_S" : base;
    default:
      return base;
  }
}

std::string_view embedding_type(std::string_view mix, std::string_view base) {
  if (is_one_of(mix, {"TQ1_0", "TQ2_0"})) return "Q4_K";
  if (is_one_of(mix, {"IQ2_S", "IQ2_M", "IQ3_XXS"})) return "IQ3_S";
  return is_two_bit(mix) ? "Q2_K" : base;
}

std::string_view output_type(std::string_view mix, std::string_view base, bool takes_base) {
  if (mix == "MXFP4_MOE" || !takes_base) return "Q8_0";
  if (is_two_bit(mix) || mix == "IQ3_XXS") return "Q5_K";
  return base == "Q8_0" ? base : "Q6_K";
}

// Queries and keys.
std::string_view lookup_type(std::string_view mix, std::string_view base) {
  if (mix == "IQ3_XS") return "IQ3_XXS";
  return mix == "IQ3_XXS" ? "IQ2_S" : base;
}

std::string_view ffn_in_type(std::string_view mix, std::string_view base, const ModelFacts& facts,
                             int32_t layer) {
  const int32_t count = facts.layer_count;
  const bool is_inner = layer >= count / 8 && layer < 7 * count / 8;
  return mix == "IQ3_XS" && is_inner ? "IQ3_XXS" : base;
}

std::string_view values_type(std::string_view mix, std::string_view base, const ModelFacts& facts,
                             int32_t index) {
  const bool is_shared = facts.query_heads_per_key >= 4;
  if (facts.expert_count == 8) return "Q8_0";
  std::string_view type = base;
  if (mix == "Q2_K") type = is_shared ? "Q4_K" : "Q3_K";
  if (mix == "Q2_K_S" && is_shared) type = "Q4_K";
  if (mix == "IQ3_XXS" && !facts.has_importance) type = "IQ3_S";
  if (is_one_of(mix, {"IQ3_XXS", "IQ3_XS", "IQ3_S"}) && is_shared) type = "Q4_K";
  if (mix == "IQ3_M") type = "Q4_K";
  if (mix == "Q3_K_M") type = index < 2 ? "Q5_K" : "Q4_K";
  if (mix == "Q3_K_L") type = "Q5_K";
  if (is_one_of(mix, {"IQ4_NL", "IQ4_XS"}) && is_shared) type = "Q5_K";
  if (is_one_of(mix, {"Q4_K_M", "Q5_K_M"}) && is_sensitive(index, facts.values_count))
    type = "Q6_K";
  if (mix == "Q4_K_S" && index < 4) type = "Q5_K";
  if (facts.has_small_values() && (type == "Q3_K" || type == "Q4_K")) type = "Q5_K";
  return type;
}

std::string_view ffn_down_type(std::string_view mix, std::string_view base, const ModelFacts& facts,
                               int32_t layer) {
  const int32_t count = facts.layer_count;
  const bool is_first_eighth = layer < count / 8;
  if (mix == "Q2_K") return "Q3_K";
  if (mix == "Q2_K_S") return is_first_eighth ? "Q4_K" : base;
  if (mix == "IQ3_XXS" && !facts.has_importance) return is_first_eighth ? "Q4_K" : "Q3_K";
  if (mix == "IQ3_M") {
    const bool has_more = facts.expert_count == 8 && is_sensitive(layer, count);
    return is_first_eighth || has_more ? "Q4_K" : base;
  }
  if (mix == "Q3_K_M") {
    if (layer < count / 16) return "Q5_K";
    return !facts.is_falcon() || is_sensitive(layer, count) ? "Q4_K" : "Q3_K";
  }
  if (mix == "Q3_K_L") return facts.is_falcon() ? "Q4_K" : "Q5_K";
  if (mix == "Q4_K_M" && facts.is_falcon()) {
    if (layer < count / 16) return "Q6_K";
    return is_sensitive(layer, count) ? "Q5_K" : "Q4_K";
  }
  if (is_one_of(mix, {"Q4_K_M", "Q5_K_M"})) return is_sensitive(layer, count) ? "Q6_K" : base;
  if (is_one_of(mix, {"IQ4_NL", "IQ4_XS"})) {
    return is_first_eighth && !facts.has_importance ? "Q5_K" : base;
  }
  if (mix == "Q4_K_S") return is_first_eighth && !facts.is_falcon() ? "Q5_K" : base;
  if (is_first_eighth && facts.has_importance) {
    if (mix == "Q4_0") return "Q4_1";
    if (mix == "Q5_0") return "Q5_1";
  }
  return base;
}

std::string_view attention_output_type(std::string_view mix, std::string_view base,
                                       const ModelFacts& facts) {
  if (facts.is_falcon()) return mix == "Q3_K_L" ? "Q4_K" : base;
  if (facts.expert_count == 8) {
    return is_one_of(mix, {"Q2_K", "Q3_K_S", "Q3_K_M", "IQ4_NL", "IQ4_XS", "Q4_K_S", "Q4_K_M",
                           "IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M"})
               ? "Q5_K"
               : base;
  }
  if (mix == "IQ3_XXS") return "IQ3_S";
  if (mix == "IQ3_M") return "Q4_K";
  if (mix == "Q2_K") return "Q3_K";
  if (mix == "Q3_K_M") return "Q4_K";
  return mix == "Q3_K_L" ? "Q5_K" : base;
}

// What takes the rows that the wanted type's blocks do not divide.
std::string_view fallback_of(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kFallbacks[] = {
      {"IQ1_S", "IQ4_NL"}, {"IQ1_M", "IQ4_NL"},   {"IQ2_XXS", "IQ4_NL"}, {"IQ2_XS", "IQ4_NL"},
      {"IQ2_S", "IQ4_NL"}, {"IQ3_XXS", "IQ4_NL"}, {"IQ3_S", "IQ4_NL"},   {"IQ4_XS", "IQ4_NL"},
      {"Q2_K", "Q4_0"},    {"Q3_K", "Q4_0"},      {"TQ1_0", "Q4_0"},     {"TQ2_0", "Q4_0"},
      {"Q4_K", "Q5_0"},    {"Q5_K", "Q5_1"},      {"Q6_K", "Q8_0"}};
  for (const auto& [from, to] : kFallbacks) {
    if (from == type) return to;
  }
  return "F16";
}

// Types of so few bits that importances matter much.
bool wants_importance(std::string_view type) {
  return is_two_bit(type) || type == "IQ3_XXS";
}

int32_t layer_of(std::string_view name) {
  int32_t layer = -1;
  if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer;
}

bool is_quantizable(const gguf::Tensor& tensor) {
  if (tensor.type == nullptr || tensor.row_count() < 2 || !tensor.name.ends_with("weight")) {
    return false;
  }
  return std::none_of(std::begin(kKept), std::end(kKept), [&](std::string_view kept) {
    return tensor.name.find(kept) != tensor.name.npos;
  });
}

// The mix's choice, by the place of a tensor among those of its part.
class Chooser {
 public:
  Chooser(const QuantMix& mix, const ModelFacts& facts) : mix_(mix), facts_(facts) {}

  std::string_view choose(const gguf::Tensor& tensor) {
    const Part part = part_of(tensor.name);
    const std::string_view base = mix_.base_type, mix = mix_.name;
    const bool is_output = part == Part::output || (facts_.is_tied && part == Part::embedding);
    if (is_output) {
      const bool fits_base = tensor.dims[0] % quant::find(base)->block_weights == 0;
      return output_type(mix, base, fits_base && !facts_.is_falcon());
    }
    if (mix == "MXFP4_MOE") return tensor.dims[2] > 1 ? "MXFP4" : "Q8_0";
    if (part == Part::embedding) return embedding_type(mix, base);
    if (is_two_bit(mix)) {
      const int32_t index = part == Part::ffn_down ? ffn_down_index_++ : 0;
      return two_bit_type(mix, base, facts_, part, index);
    }
    switch (part) {
      case Part::values:
        return values_type(mix, base, facts_, values_index_++);
      case Part::keys:
        return facts_.expert_count == 8 ? "Q8_0" : lookup_type(mix, base);
      case Part::queries:
        return lookup_type(mix, base);
      case Part::ffn_in:
        return ffn_in_type(mix, base, facts_, layer_of(tensor.name));
      case Part::ffn_down: {
        const int32_t index = ffn_down_index_++;
        const int32_t layer = facts_.expert_count > 1 ? layer_of(tensor.name) : index;
        return ffn_down_type(mix, base, facts_, layer);
      }
      case Part::attention_output:
        return attention_output_type(mix, base, facts_);
      case Part::embedding:
      case Part::output:
      case Part::other:
        return base;
    }
    return base;
  }

 private:
  const QuantMix& mix_;
  const ModelFacts& facts_;
  int32_t values_index_ = 0;
  int32_t ffn_down_index_ = 0;
};

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  return out;
}

const quant::Type* encodable(std::string_view name) {
  const quant::Type* type = quant::find(upper(name));
  return type != nullptr && type->encode != nullptr ? type : nullptr;
}

// The order of layers, whatever the file's: places among the layers are counted in it.
std::vector<size_t> by_layer(const gguf::File& file) {
  const auto tensors = file.tensors();
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int32_t left = layer_of(tensors[a].name), right = layer_of(tensors[b].name);
    return left != right ? left < right : tensors[a].name < tensors[b].name;
  });
  return order;
}

}  // namespace

std::span<const QuantMix> quant_mixes() {
  return kMixes;
}

Result<const QuantMix*> find_mix(std::string_view name) {
  std::string wanted = upper(name), known;
  for (const Alias& alias : kAliases) {
    if (alias.name == wanted) wanted = alias.mix;
  }
  for (const QuantMix& mix : kMixes) {
    if (mix.name == wanted) return &mix;
    known += (known.empty() ? "" : ", ") + std::string(mix.name);
  }
  return fail(ErrorCode::invalid_argument, "type: expected one of {}, found \"{}\"", known, name);
}

bool fits(std::string_view name, std::string_view pattern) {
  // The last star that was met may stand for more and more.
  size_t n = 0, p = 0, star = pattern.npos, after = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++after;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<TypeOverride> parse_override(std::string_view source, std::string_view text) {
  const size_t sign = text.rfind('=');
  const quant::Type* type = sign == text.npos ? nullptr : encodable(text.substr(sign + 1));
  if (type != nullptr && sign > 0) {
    return TypeOverride{std::string(text.substr(0, sign)), type, std::string(source)};
  }
  std::string known;
  for (const quant::Type* other : quant::all()) {
    if (other->encode != nullptr) known += (known.empty() ? "" : ", ") + std::string(other->name);
  }
  return fail(ErrorCode::invalid_argument, "{}: expected PATTERN=TYPE with one of {}, found \"{}\"",
              source, known, text);
}

Result<TypeChoice> choose_types(const gguf::File& file, const QuantMix& mix,
                                std::span<const TypeOverride> overrides, bool has_importance) {
  CAIRN_TRY(const ModelFacts facts, facts_of(file, has_importance));
  const bool is_float = quant::find(mix.base_type)->is_float();
  TypeChoice choice{.types = std::vector<const quant::Type*>(file.tensors().size(), nullptr)};
  std::vector<bool> was_used(overrides.size(), false);
  std::map<std::string, int> replaced;
  Chooser chooser(mix, facts);
  for (const size_t at : by_layer(file)) {
    const gguf::Tensor& tensor = file.tensors()[at];
    if (!is_quantizable(tensor)) continue;
    const quant::Type* type = quant::find(is_float ? mix.base_type : chooser.choose(tensor));
    for (size_t i = overrides.size(); i-- > 0;) {  // The first that fits counts.
      if (!fits(tensor.name, overrides[i].pattern)) continue;
      type = overrides[i].type;
      was_used[i] = true;
    }
    if (tensor.dims[0] % type->block_weights != 0) {
      const quant::Type* other = quant::find(fallback_of(type->name));
      if (tensor.dims[0] % other->block_weights != 0) other = quant::find("F16");
      ++replaced[fmt::format("rows of {} weights are {}: {} has blocks of {}", tensor.dims[0],
                             other->name, type->name, type->block_weights)];
      type = other;
    }
    choice.types[at] = type;
    if (!has_importance && wants_importance(type->name)) ++choice.blind_count;
  }
  for (const auto& [what, count] : replaced) {
    choice.notes.push_back(fmt::format("{} matrices with {}", count, what));
  }
  for (size_t i = 0; i < overrides.size(); ++i) {
    if (was_used[i]) continue;
    return fail(ErrorCode::invalid_argument,
                "{}: expected a pattern that fits a matrix, found \"{}\"", overrides[i].source,
                overrides[i].pattern);
  }
  return choice;
}

}  // namespace cairn::quantize
