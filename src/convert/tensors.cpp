// Planning: a tensor's name loses its layer and its ending, then the family's function or its table
// says what it is called in GGUF.
#include "convert/tensors.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace cairn::convert {
namespace {

constexpr int64_t kLayerNumberMax = 1 << 16, kExpertNumberMax = 1 << 16;
constexpr size_t kDimCountMax = 4;

// Of vision, audio and projection towers: this is about text.
bool is_of_another_tower(std::string_view name) {
  static constexpr std::string_view kStarts[] = {
      "vit.", "vpm.",       "siglip2.",       "conformer.",        "merger.",
      "mlp",  "resampler.", "sound_encoder.", "sound_projection.", "speech_embeddings."};
  static constexpr std::string_view kParts[] = {
      "visual.",         "vision.",        "audio.",      "talker.",       "vision_",
      "audio_",          "token2wav.",     "code2wav.",   "projector.",    "pre_mm_projector_norm",
      "image_newline",   "view_seperator", "patch_embed", "patch_merger.", "patch_merge_mlp.",
      "model.connector."};
  const auto starts = [&](std::string_view part) { return name.starts_with(part); };
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  return std::any_of(std::begin(kStarts), std::end(kStarts), starts) ||
         std::any_of(std::begin(kParts), std::end(kParts), has);
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

TensorName parse_name(std::string_view name) {
  static constexpr std::string_view kLayers[] = {
      "model.layers.",       "transformer.h.",     "gpt_neox.layers.",
      "transformer.blocks.", "encoder.layer.",     "layers.",
      "encoder.layers.",     "backbone.layers.",   "h.",
      "model.blocks.",       "bert.encoder.layer."};
  static constexpr std::string_view kExperts = ".experts.";
  TensorName parsed;
  for (const std::string_view ending : {".weight", ".bias"}) {
    if (!name.ends_with(ending)) continue;
    parsed.ending = ending;
    name.remove_suffix(ending.size());
    break;
  }
  for (const std::string_view layers : kLayers) {
    if (!name.starts_with(layers)) continue;
    const std::string_view tail = name.substr(layers.size());
    const size_t dot = tail.find('.');
    parsed.layer = read_number(tail.substr(0, dot), kLayerNumberMax);
    if (parsed.layer && dot != tail.npos) name = tail.substr(dot + 1);
    break;
  }
  parsed.rest = name;
  if (const size_t at = name.find(kExperts); at != name.npos) {
    const size_t begin = at + kExperts.size(), dot = name.find('.', begin);
    if (dot == name.npos) return parsed;
    parsed.expert = read_number(name.substr(begin, dot - begin), kExpertNumberMax);
    if (parsed.expert) parsed.rest.replace(begin, dot - begin, "*");
  }
  return parsed;
}

// Names of one thing that differ by where a library put it.
std::string usual_spelling(std::string_view source) {
  static constexpr std::string_view kTower = "language_model.", kScore = "e_score_correction_bias";
  std::string name(source);
  if (name.ends_with(kScore)) {
    name.replace(name.size() - kScore.size(), kScore.size(), "e_score_correction.bias");
  }
  for (size_t at = name.find(kTower); at != name.npos; at = name.find(kTower)) {
    name.erase(at, kTower.size());
  }
  return name;
}

Status add_source(TensorPlan& plan, const SourceTensor& source) {
  const Family& family = plan.family();
  const std::string name = usual_spelling(source.name);
  if (is_of_another_tower(source.name) || is_no_weight(name)) return Ok{};
  if (family.drops_output && name == "lm_head.weight") return Ok{};
  const TensorName parsed = parse_name(name);
  if (source.shape.empty() || source.shape.size() > kDimCountMax || source.number_count() == 0) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected 1 to {} dimensions, found shape {}",
                source.name, kDimCountMax, shape_text(source));
  }
  if (family.tensor != nullptr) {
    CAIRN_TRY(const bool is_done, family.tensor(plan, parsed, source));
    if (is_done) return Ok{};
  }
  const NameRow* row = find_name(family, parsed.rest);
  if (row == nullptr) {
    return fail(ErrorCode::unsupported, "tensor {}: expected a name of {}, found another",
                source.name, family.architecture);
  }
  return plan.add_row(parsed, *row, source);
}

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
  TensorPlan plan(checkpoint, config, family, type, token_count, out);
  CAIRN_TRY(plan.start_counts());
  if (family.extra_tensors != nullptr) CAIRN_TRY(family.extra_tensors(plan));
  for (const SourceTensor& source : checkpoint.tensors()) CAIRN_TRY(add_source(plan, source));
  return plan.finish();
}

}  // namespace cairn::convert
