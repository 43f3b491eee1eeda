// f32 where the usual converter has f32, so that both write the same bits.
#include "convert/rope_factors.h"

#include <cmath>
#include <numbers>

namespace cairn::convert {
namespace {

// Far above every model: a file cannot ask for gigabytes of factors.
constexpr int64_t kHeadDimsMax = 1 << 16;

double number_or(const Json& rope, std::string_view key, double otherwise) {
  const Json* value = rope.find_set(key);
  return value == nullptr ? otherwise : value->as_real().value_or(otherwise);
}

}  // namespace

Result<std::vector<float>> factor_list(const Json& rope, std::string_view key, int64_t count) {
  const Json* list = rope.find_set(key);
  if (list == nullptr || !list->is_array() || int64_t(list->items().size()) != count) {
    return fail(ErrorCode::invalid_data, "{}: expected a list of {}, found {}", key, count,
                list == nullptr ? "none" : list->describe());
  }
  std::vector<float> factors;
  for (const Json& item : list->items()) {
    if (!item.as_real()) {
      return fail(ErrorCode::invalid_data, "{}: expected numbers, found {}", key, item.describe());
    }
    factors.push_back(float(*item.as_real()));
  }
  return factors;
}

Result<double> rope_number(const Config& config, std::string_view key) {
  const Json* value = config.rope().find_set(key);
  if (value != nullptr && value->as_real()) return *value->as_real();
  return fail(ErrorCode::invalid_data, "rotary parameters: {}: expected a number, found {}", key,
              value == nullptr ? "none" : value->describe());
}

Result<double> rotated_part(const Config& config) {
  CAIRN_TRY(const double part, rope_number(config, "partial_rotary_factor"));
  if (part >= 0 && part <= 1) return part;
  return fail(ErrorCode::invalid_data, "partial_rotary_factor: expected 0 to 1, found {}", part);
}

Result<int64_t> rotated_dims(const Config& config) {
  CAIRN_TRY(const int64_t width, config.count("hidden_size"));
  CAIRN_TRY(const int64_t heads, config.positive("num_attention_heads"));
  CAIRN_TRY(const double part, rotated_part(config));
  return int64_t(part * double(width)) / heads;
}

Result<std::vector<float>> llama3_factors(const Config& config) {
  const Json& rope = config.rope();
  std::vector<float> factors;
  if (rope.text_at("rope_type") != "llama3") return factors;
  CAIRN_TRY(std::optional<int64_t> dims, config.count_if_set({"head_dim"}));
  if (!dims) {
    CAIRN_TRY(const int64_t width, config.count("hidden_size"));
    CAIRN_TRY(const int64_t heads, config.positive("num_attention_heads"));
    dims = width / heads;
  }
  if (*dims > kHeadDimsMax) {
    return fail(ErrorCode::invalid_data, "head_dim: expected at most {}, found {}", kHeadDimsMax,
                *dims);
  }
  const double base = number_or(rope, "rope_theta", 10000);
  const double factor = number_or(rope, "factor", 8), low = number_or(rope, "low_freq_factor", 1);
  const double high = number_or(rope, "high_freq_factor", 4);
  const double context = number_or(rope, "original_max_position_embeddings", 8192);
  // Waves shorter than the one stay, longer than the other are stretched, between they blend.
  const auto short_wave = float(context / high), long_wave = float(context / low);
  for (int64_t dim = 0; dim < *dims; dim += 2) {
    const float exponent = float(dim) / float(*dims);
    const float frequency = 1.0f / float(std::pow(base, double(exponent)));
    const float wave = float(2 * std::numbers::pi) / frequency;
    if (wave < short_wave) {
      factors.push_back(1);
    } else if (wave > long_wave) {
      factors.push_back(float(factor));
    } else {
      const float blend = (float(context) / wave - float(low)) / float(high - low);
      factors.push_back(1.0f / ((1.0f - blend) / float(factor) + blend));
    }
  }
  return factors;
}

Result<LongFactors> long_rope_factors(const Config& config) {
  const Json& rope = config.rope();
  LongFactors factors;
  const Json* list = rope.find_set("long_factor");
  if (list == nullptr || list->items().empty()) return factors;
  CAIRN_TRY(const int64_t context, config.count("max_position_embeddings"));
  CAIRN_TRY(const int64_t dims, rotated_dims(config));
  const double original = number_or(rope, "original_max_position_embeddings", 0);
  if (!(original > 1)) {
    return fail(ErrorCode::invalid_data,
                "original_max_position_embeddings: expected more than 1, found {}", original);
  }
  CAIRN_TRY(factors.long_factors, factor_list(rope, "long_factor", dims / 2));
  CAIRN_TRY(factors.short_factors, factor_list(rope, "short_factor", dims / 2));
  // "yarn" is what the first of these models called the same thing.
  const std::string_view type = rope.text_at("rope_type").value_or("");
  if (type != "longrope" && type != "su" && type != "yarn") {
    return fail(ErrorCode::unsupported, "rotary scaling: expected longrope, found {}", type);
  }
  const double scale = double(context) / original;
  if (scale > 1) {
    factors.attention_factor = float(std::sqrt(1 + std::log(scale) / std::log(original)));
  }
  return factors;
}

}  // namespace cairn::convert
