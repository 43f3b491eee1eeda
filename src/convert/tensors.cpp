// Planning: a tensor's name loses its layer and its ending, the family's table says what it is
// called in GGUF, and experts wait until the last of their layer has come.
#include "convert/tensors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "convert/rope_factors.h"
#include "quant/quant.h"

namespace cairn::convert {
namespace {

constexpr int64_t kLayerCountMax = 1 << 16;
constexpr int64_t kExpertCountMax = 1 << 16;

uint32_t type_id_of(std::string_view name) {
  return quant::find(name)->gguf_id;
}

uint32_t type_id_of(OutType type) {
  return type_id_of(type == OutType::f32 ? "F32" : type == OutType::f16 ? "F16" : "BF16");
}

// Of vision, audio and projection towers: this is about text.
bool is_of_another_tower(std::string_view name) {
  static constexpr std::string_view kParts[] = {"visual.",       "vision.",     "audio.",
                                                "vision_",       "audio_",      "projector.",
                                                "image_newline", "patch_embed", "patch_merger."};
  for (const std::string_view part : kParts) {
    if (name.find(part) != name.npos) return true;
  }
  return false;
}

// What libraries store beside the weights, and what can be computed.
bool is_no_weight(std::string_view name) {
  return name.ends_with(".attention.masked_bias") || name.ends_with(".attention.bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

std::optional<int64_t> read_number(std::string_view digits, int64_t max) {
  if (digits.empty() || digits.size() > 6) return std::nullopt;
  int64_t number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = 10 * number + (digit - '0');
  }
  if (number >= max) return std::nullopt;
  return number;
}

// "model.layers.3.mlp.experts.5.w1.weight": layer 3, "mlp.experts.*.w1", expert 5, ".weight".
struct ParsedName {
  std::string rest;
  std::optional<int64_t> layer, expert;
  std::string_view ending;
};

ParsedName parse_name(std::string_view name) {
  static constexpr std::string_view kLayers = "model.layers.", kExperts = ".experts.";
  ParsedName parsed;
  for (const std::string_view ending : {".weight", ".bias"}) {
    if (!name.ends_with(ending)) continue;
    parsed.ending = ending;
    name.remove_suffix(ending.size());
    break;
  }
  if (name.starts_with(kLayers)) {
    const std::string_view tail = name.substr(kLayers.size());
    const size_t dot = tail.find('.');
    parsed.layer = read_number(tail.substr(0, dot), kLayerCountMax);
    if (parsed.layer && dot != tail.npos) name = tail.substr(dot + 1);
  }
  parsed.rest = name;
  if (const size_t at = name.find(kExperts); at != name.npos) {
    const size_t begin = at + kExperts.size(), dot = name.find('.', begin);
    if (dot == name.npos) return parsed;
    parsed.expert = read_number(name.substr(begin, dot - begin), kExpertCountMax);
    if (parsed.expert) parsed.rest.replace(begin, dot - begin, "*");
  }
  return parsed;
}

std::string target_name(const ParsedName& parsed, std::string_view target) {
  // Stacked experts come without an ending.
  const std::string_view ending = parsed.ending.empty() ? ".weight" : parsed.ending;
  if (!parsed.layer) return fmt::format("{}{}", target, ending);
  return fmt::format("blk.{}.{}{}", *parsed.layer, target, ending);
}

std::string shape_text(const SourceTensor& tensor) {
  std::string text = "[";
  for (const int64_t dim : tensor.shape)
    text += fmt::format("{}{}", text.size() > 1 ? ", " : "", dim);
  return text + "]";
}

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const Config& config, const Family& family, OutType type,
          int64_t token_count, KeyValues& out)
      : checkpoint_(checkpoint),
        config_(config),
        family_(family),
        type_(type),
        token_count_(token_count),
        out_(out) {}

  Result<std::vector<PlannedTensor>> plan() {
    CAIRN_TRY(heads_, config_.count("num_attention_heads"));
    CAIRN_TRY(kv_heads_, config_.count("num_key_value_heads"));
    CAIRN_TRY(const std::optional<int64_t> experts,
              config_.count_if_set({"num_local_experts", "num_experts"}));
    expert_count_ = experts.value_or(0);
    CAIRN_TRY(add_rope_factors());
    for (const SourceTensor& source : checkpoint_.tensors()) CAIRN_TRY(add(source));
    for (const auto& [layer, buffer] : experts_) {
      return fail(ErrorCode::invalid_data, "layer {}: expected {} tensors of experts, found {}",
                  layer, wanted_count(), buffer.size());
    }
    return std::move(planned_);
  }

 private:
  // A layer's experts, until all have come: by row of the table, then by number.
  using Buffer = std::map<std::pair<const NameRow*, int64_t>, const SourceTensor*>;

  // Each expert has three matrices.
  size_t wanted_count() const { return 3 * size_t(expert_count_); }

  Status add_rope_factors() {
    if (family_.parameters == Parameters::llama || family_.parameters == Parameters::granite) {
      CAIRN_TRY(std::vector<float> factors, llama3_factors(config_));
      if (!factors.empty()) add_numbers("rope_freqs.weight", std::move(factors));
    }
    if (family_.parameters != Parameters::phi3) return Ok{};
    CAIRN_TRY(LongFactors factors, long_rope_factors(config_));
    if (factors.long_factors.empty()) return Ok{};
    out_.set(std::string(family_.architecture) + ".rope.scaling.attn_factor",
             factors.attention_factor);
    add_numbers("rope_factors_long.weight", std::move(factors.long_factors));
    add_numbers("rope_factors_short.weight", std::move(factors.short_factors));
    return Ok{};
  }

  void add_numbers(std::string name, std::vector<float> numbers) {
    const auto count = int64_t(numbers.size());
    planned_.push_back({.name = std::move(name),
                        .dims = {count},
                        .type_id = type_id_of("F32"),
                        .numbers = std::move(numbers),
                        .row_numbers = count});
  }

  Status add(const SourceTensor& source) {
    std::string name = source.name;
    if (const size_t at = name.find("language_model."); at != name.npos) {
      name.erase(at, std::string_view("language_model.").size());
    }
    if (is_of_another_tower(name) || is_no_weight(name)) return Ok{};
    if (family_.drops_output && name == "lm_head.weight") return Ok{};
    const ParsedName parsed = parse_name(name);
    const NameRow* row = find_name(family_, parsed.rest);
    if (row == nullptr) {
      return fail(ErrorCode::unsupported, "tensor {}: expected a name of {}, found another",
                  source.name, family_.architecture);
    }
    if (source.number == Number::other) {
      return fail(ErrorCode::unsupported, "tensor {}: expected F64, F32, F16 or BF16, found {}",
                  source.name, source.dtype);
    }
    if (source.shape.empty() || source.shape.size() > 3 || source.number_count() == 0) {
      return fail(ErrorCode::invalid_data, "tensor {}: expected 1 to 3 dimensions, found shape {}",
                  source.name, shape_text(source));
    }
    if (parsed.expert) return add_expert(parsed, *row, source);
    if (!row->second_target.empty()) return add_halves(parsed, *row, source);
    add_whole(parsed, *row, source);
    return Ok{};
  }

  PlannedTensor start(std::string name, std::vector<int64_t> dims) const {
    PlannedTensor tensor{.name = std::move(name), .dims = std::move(dims)};
    tensor.type_id = must_be_f32(tensor) ? type_id_of("F32") : type_id_of(type_);
    tensor.row_numbers = tensor.dims[0];
    return tensor;
  }

  // Vectors and routers lose too much in 16 bits, and cost nothing.
  static bool must_be_f32(const PlannedTensor& tensor) {
    const std::string_view name = tensor.name;
    return tensor.dims.size() <= 1 || !name.ends_with(".weight") ||
           name.ends_with("_norm.weight") || name.ends_with(".ffn_gate_inp.weight") ||
           name.ends_with(".ffn_gate_inp_shexp.weight");
  }

  void add_whole(const ParsedName& parsed, const NameRow& row, const SourceTensor& source) {
    std::vector<int64_t> dims(source.shape.rbegin(), source.shape.rend());
    const bool is_table = row.target == "token_embd";
    // Rows beyond the vocabulary stand for nothing.
    if (is_table && family_.parameters == Parameters::gemma3 && dims.size() == 2) {
      dims[1] = std::min(dims[1], token_count_);
    }
    PlannedTensor tensor = start(target_name(parsed, row.target), std::move(dims));
    tensor.adds_one = family_.norms_less_one && source.name.ends_with("norm.weight");
    if (family_.interleaves_heads) {
      const bool is_q = row.target == "attn_q", is_k = row.target == "attn_k";
      const int64_t heads = is_k && kv_heads_ > 0 ? kv_heads_ : heads_;
      if ((is_q || is_k) && heads > 0 && source.shape[0] % (2 * heads) == 0) {
        tensor.head_rows = source.shape[0] / heads;
        if (source.shape.size() == 1) tensor.row_numbers = 1;
      }
    }
    int64_t row_count = 1;
    for (const int64_t dim : tensor.dims) row_count *= dim;
    tensor.runs.push_back({&source, 0, row_count / tensor.row_numbers});
    planned_.push_back(std::move(tensor));
  }

  // [experts, 2 rows, columns] or [2 rows, columns]: of each the first half of the rows, then of
  // each the second.
  Status add_halves(const ParsedName& parsed, const NameRow& row, const SourceTensor& source) {
    std::vector<int64_t> dims(source.shape.rbegin(), source.shape.rend());
    if (dims.size() < 2 || dims[1] % 2 != 0 || (dims.size() == 3 && dims[2] > kExpertCountMax)) {
      return fail(ErrorCode::invalid_data,
                  "tensor {}: expected two matrices in one, found shape {}", source.name,
                  shape_text(source));
    }
    const int64_t half = dims[1] / 2, count = dims.size() == 3 ? dims[2] : 1;
    dims[1] = half;
    const std::string_view targets[] = {half_target(row.target), half_target(row.second_target)};
    for (int64_t part = 0; part < 2; ++part) {
      PlannedTensor tensor = start(target_name(parsed, targets[part]), dims);
      for (int64_t i = 0; i < count; ++i) {
        tensor.runs.push_back({&source, (2 * i + part) * half, half});
      }
      planned_.push_back(std::move(tensor));
    }
    return Ok{};
  }

  // Without experts, Granite's shared one is the layer's only one.
  std::string_view half_target(std::string_view target) const {
    if (expert_count_ > 0) return target;
    if (target == "ffn_gate_shexp") return "ffn_gate";
    return target == "ffn_up_shexp" ? "ffn_up" : target;
  }

  Status add_expert(const ParsedName& parsed, const NameRow& row, const SourceTensor& source) {
    const bool is_matrix = source.shape.size() == 2 && parsed.ending == ".weight";
    if (!parsed.layer || !is_matrix || *parsed.expert >= expert_count_) {
      return fail(ErrorCode::invalid_data,
                  "tensor {}: expected a matrix of one of {} experts, found shape {}", source.name,
                  expert_count_, shape_text(source));
    }
    Buffer& buffer = experts_[*parsed.layer];
    buffer[{&row, *parsed.expert}] = &source;
    if (buffer.size() < wanted_count()) return Ok{};
    CAIRN_TRY(write_experts(parsed, buffer));
    experts_.erase(*parsed.layer);
    return Ok{};
  }

  Status write_experts(const ParsedName& parsed, const Buffer& buffer) {
    const SourceTensor* first = nullptr;
    for (const auto& [key, source] : buffer) {
      const auto& [row, expert] = key;
      if (expert == 0) {
        first = source;
        planned_.push_back(start(fmt::format("blk.{}.{}.weight", *parsed.layer, row->target),
                                 {source->shape[1], source->shape[0], expert_count_}));
      }
      if (first == nullptr || source->shape != first->shape) {
        return fail(ErrorCode::invalid_data, "tensor {}: expected the shape of expert 0, found {}",
                    source->name, shape_text(*source));
      }
      planned_.back().runs.push_back({source, 0, source->shape[0]});
    }
    return Ok{};
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  const Family& family_;
  OutType type_;
  int64_t token_count_, heads_ = 0, kv_heads_ = 0, expert_count_ = 0;
  KeyValues& out_;
  std::map<int64_t, Buffer> experts_;
  std::vector<PlannedTensor> planned_;
};

}  // namespace

OutType choose_type(const Checkpoint& checkpoint, OutType wanted) {
  if (wanted != OutType::automatic) return wanted;
  for (const SourceTensor& source : checkpoint.tensors()) {
    if (source.shape.size() < 2) continue;
    if (source.number == Number::bf16) return OutType::bf16;
    if (source.number == Number::f16) return OutType::f16;
  }
  return OutType::f16;
}

uint32_t file_type_of(OutType type) {
  return type == OutType::f32 ? 0 : type == OutType::f16 ? 1 : 32;
}

Result<std::vector<PlannedTensor>> plan_tensors(const Checkpoint& checkpoint, const Config& config,
                                                const Family& family, OutType type,
                                                int64_t token_count, KeyValues& out) {
  CHECK(type != OutType::automatic);
  return Planner(checkpoint, config, family, type, token_count, out).plan();
}

}  // namespace cairn::convert
