// Hyper-parameters by name, with the ranges of the table, and the relations between them.
#include "gguf/metadata.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gguf/hyperparameters.h"
#include "gguf/rules.h"

namespace cairn::gguf {
namespace {

constexpr size_t kArchitectureBytesMax = 64;

Error out_of_range(std::string_view key, int64_t min, int64_t max, int64_t found) {
  return fail(ErrorCode::invalid_data, "{}: expected {} to {}, found {}", key, min, max, found);
}

Error out_of_range(std::string_view key, const RealRange& range, float found) {
  return fail(ErrorCode::invalid_data, "{}: expected {} to {}, found {}", key, range.min, range.max,
              found);
}

bool is_architecture_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kArchitectureBytesMax &&
         std::all_of(name.begin(), name.end(), is_allowed);
}

}  // namespace

Result<Metadata> Metadata::of(const Fields& fields) {
  CAIRN_TRY(const std::string_view name, fields.get<std::string_view>("general.architecture"));
  if (!is_architecture_name(name)) {
    return fail(ErrorCode::invalid_data,
                "general.architecture: expected 1 to {} letters, digits, '-', '_' or '.', found "
                "\"{}\"",
                kArchitectureBytesMax, shown(name, kArchitectureBytesMax));
  }
  Metadata metadata(std::string(name), fields);
  CAIRN_TRY(metadata.check_relations());
  return metadata;
}

Metadata::Metadata(std::string architecture, const Fields& fields)
    : architecture_(std::move(architecture)), fields_(&fields) {}

std::string Metadata::key(std::string_view name) const {
  return fmt::format("{}.{}", architecture_, name);
}

bool Metadata::has(std::string_view name) const {
  return fields_->find(key(name)) != nullptr;
}

Metadata Metadata::with_count(std::string_view name, int32_t value) const {
  const CountRange range = count_range(name);
  CHECK(value >= range.min && value <= range.max);
  Metadata other = *this;
  other.replaced_.emplace(other.replaced_.begin(), name, value);  // The last one counts.
  return other;
}

Result<int32_t> Metadata::count(std::string_view name) const {
  for (const auto& [replaced, value] : replaced_) {
    if (replaced == name) return value;
  }
  const std::string full = key(name);
  CAIRN_TRY(const int64_t found, fields_->get<int64_t>(full));
  const CountRange range = count_range(name);
  if (found < range.min || found > range.max) {
    return out_of_range(full, range.min, range.max, found);
  }
  return int32_t(found);
}

Result<int32_t> Metadata::count_or(std::string_view name, int32_t fallback) const {
  return has(name) ? count(name) : Result<int32_t>(fallback);
}

Result<float> Metadata::real(std::string_view name) const {
  const std::string full = key(name);
  CAIRN_TRY(const float found, fields_->get<float>(full));
  const RealRange range = real_range(name);
  // Written so that NaN fails; the ends are finite, so infinities do too.
  if (!(found >= range.min && found <= range.max)) return out_of_range(full, range, found);
  return found;
}

Result<float> Metadata::real_or(std::string_view name, float fallback) const {
  return has(name) ? real(name) : Result<float>(fallback);
}

Result<bool> Metadata::flag(std::string_view name) const {
  return fields_->get<bool>(key(name));
}

Result<bool> Metadata::flag_or(std::string_view name, bool fallback) const {
  return fields_->get_or<bool>(key(name), fallback);
}

Result<std::string_view> Metadata::text(std::string_view name) const {
  return fields_->get<std::string_view>(key(name));
}

Result<std::string_view> Metadata::text_or(std::string_view name, std::string_view fallback) const {
  return fields_->get_or<std::string_view>(key(name), fallback);
}

Result<std::vector<int32_t>> Metadata::per_layer(std::string_view name, int32_t layer_count) const {
  CHECK(layer_count > 0);
  const std::string full = key(name);
  const Value* value = fields_->find(full);
  if (value != nullptr && !value->is_array()) {
    int32_t all = 0;
    if (const auto flag = boolean_in(*value)) {
      all = *flag ? 1 : 0;
    } else {
      CAIRN_TRY(const int64_t found, convert<int64_t>(full, *value));
      const CountRange range = count_range(name);
      if (found < range.per_layer_min || found > range.max) {
        return out_of_range(full, range.per_layer_min, range.max, found);
      }
      all = int32_t(found);
    }
    return std::vector<int32_t>(size_t(layer_count), all);
  }
  CAIRN_TRY(std::vector<int32_t> values, counts(name));
  if (values.size() == size_t(layer_count)) return values;
  return fail(ErrorCode::invalid_data, "{}: expected {} values, one for each layer, found {}", full,
              layer_count, values.size());
}

Result<std::vector<int32_t>> Metadata::per_layer_or(std::string_view name, int32_t layer_count,
                                                    int32_t fallback) const {
  if (has(name)) return per_layer(name, layer_count);
  return std::vector<int32_t>(size_t(layer_count), fallback);
}

Result<std::vector<float>> Metadata::per_layer_reals(std::string_view name,
                                                     int32_t layer_count) const {
  CHECK(layer_count > 0);
  const std::string full = key(name);
  const Value* value = fields_->find(full);
  if (value != nullptr && !value->is_array()) {
    CAIRN_TRY(const float all, real(name));
    return std::vector<float>(size_t(layer_count), all);
  }
  CAIRN_TRY(const Reals found, fields_->get<Reals>(full));
  if (found.size() != size_t(layer_count)) {
    return fail(ErrorCode::invalid_data, "{}: expected {} values, one for each layer, found {}",
                full, layer_count, found.size());
  }
  std::vector<float> values(found.size());
  for (size_t layer = 0; layer < values.size(); ++layer) {
    values[layer] = found[layer];
    if (std::isnan(values[layer])) {
      return fail(ErrorCode::invalid_data, "{}: layer {}: expected a number, found nan", full,
                  layer);
    }
  }
  return values;
}

Result<std::vector<int32_t>> Metadata::counts(std::string_view name) const {
  const std::string full = key(name);
  CAIRN_TRY(const Integers found, fields_->get<Integers>(full));
  const CountRange range = count_range(name);
  std::vector<int32_t> values;
  for (size_t index = 0; index < found.size(); ++index) {
    const int64_t value = found[index];
    if (value < range.per_layer_min || value > range.max) {
      return out_of_range(fmt::format("{}: element {}", full, index), range.per_layer_min,
                          range.max, value);
    }
    values.push_back(int32_t(value));
  }
  return values;
}

// Only scalars that are there: whether one must be there is for the model to say, and a model
// without attention writes 0 heads.
Status Metadata::check_relations() const {
  const auto scalar = [&](std::string_view name) -> int64_t {
    const Value* value = fields_->find(key(name));
    return value == nullptr ? 0 : integer_in(*value).value_or(0);
  };
  const int64_t heads = scalar("attention.head_count");
  const int64_t kv_heads = scalar("attention.head_count_kv");
  if (heads > 0 && kv_heads > 0 && heads % kv_heads != 0) {
    return fail(ErrorCode::invalid_data, "{}: expected a divisor of the {} heads, found {}",
                key("attention.head_count_kv"), heads, kv_heads);
  }
  const int64_t experts = scalar("expert_count");
  const int64_t used = scalar("expert_used_count");
  if (used > experts) {
    return fail(ErrorCode::invalid_data, "{}: expected at most the {} experts, found {}",
                key("expert_used_count"), experts, used);
  }
  const int64_t groups = scalar("expert_group_count");
  const int64_t used_groups = scalar("expert_group_used_count");
  // Some files of one group say only that one is used.
  if (used_groups > std::max<int64_t>(1, groups) || (groups > 0 && experts % groups != 0)) {
    return fail(
        ErrorCode::invalid_data,
        "{}: expected a divisor of the {} experts and at least the {} used groups, found {}",
        key("expert_group_count"), experts, used_groups, groups);
  }
  return Ok{};
}

}  // namespace cairn::gguf
