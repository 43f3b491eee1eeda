// Both forms hold sums of squared inputs; what counts is their mean.
#include "quantize/importance.h"

#include <algorithm>
#include <cmath>

#include "base/mapped_file.h"
#include "base/text/byte_text.h"
#include "gguf/gguf.h"

namespace cairn::quantize {

namespace {

// Bounds of what a .dat file may claim.
constexpr uint32_t kEntriesMax = 1 << 20;
constexpr uint32_t kNameBytesMax = 1 << 10;

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

Status check_finite(std::string_view name, std::span<const float> values) {
  const auto bad = std::find_if(values.begin(), values.end(),
                                [](float value) { return !std::isfinite(value) || value < 0; });
  if (bad == values.end()) return Ok{};
  return fail(ErrorCode::invalid_data, "{}: expected sums of squares, found {}", name, *bad);
}

// Sums of an expert that saw no token say nothing: all of its inputs count the same.
Result<std::vector<float>> means(std::string_view name, const gguf::Tensor& sums,
                                 const gguf::Tensor& counts) {
  const int64_t inputs = sums.dims[0], experts = sums.row_count();
  if (counts.weight_count != experts) {
    return fail(ErrorCode::invalid_data, "{}: expected {} counts, found {}", name, experts,
                counts.weight_count);
  }
  std::vector<float> values = floats_of(sums.bytes);
  const std::vector<float> divisors = floats_of(counts.bytes);
  CAIRN_TRY(check_finite(name, values));
  CAIRN_TRY(check_finite(name, divisors));
  for (int64_t i = 0; i < inputs * experts; ++i) {
    const float count = divisors[size_t(i / inputs)];
    values[size_t(i)] = count > 0 ? values[size_t(i)] / count : 1.0f;
  }
  return values;
}

}  // namespace

Result<Importance> Importance::load(const std::string& path) {
  CAIRN_TRY(const MappedFile file, MappedFile::open(path));
  Importance importance;
  importance.path_ = path;
  const bool is_gguf = file.bytes().size() >= 4 && as_text(file.bytes().first(4)) == "GGUF";
  Status status =
      is_gguf ? importance.load_gguf(file.bytes(), path) : importance.load_dat(file.bytes(), path);
  if (!status) return std::move(status).error();
  if (importance.factors_.empty()) {
    return fail(ErrorCode::invalid_data, "{}: expected importances of matrices, found none", path);
  }
  return importance;
}

// NAME.in_sum2 [inputs, experts] and NAME.counts [1, experts], both f32.
Status Importance::load_gguf(std::span<const std::byte> bytes, const std::string& path) {
  CAIRN_TRY(const gguf::File file, gguf::File::from_bytes(bytes, path));
  constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with(kSums)) continue;
    const std::string name(tensor.name.substr(0, tensor.name.size() - kSums.size()));
    const gguf::Tensor* counts = file.find(name + std::string(kCounts));
    const quant::Type* f32 = quant::find("F32");
    if (counts == nullptr || counts->type != f32 || tensor.type != f32) {
      return fail(ErrorCode::invalid_data, "{}: {}: expected sums and counts in F32", path, name);
    }
    Result<std::vector<float>> values = means(name, tensor, *counts);
    if (!values) {
      return fail(ErrorCode::invalid_data, "{}: {}", path, values.error().message);
    }
    factors_[name] = std::move(values).value();
  }
  if (const gguf::Value* names = file.fields().find("imatrix.datasets")) {
    if (names->is_array() && names->element == gguf::ValueType::string) {
      for (const std::string_view name : gguf::Strings(*names)) datasets_.emplace_back(name);
    }
  }
  return Ok{};
}

// A count of entries, and for each the length of a name, the name, how many calls were added up, a
// count of values and the values; then the number of the last call and a data set's name, perhaps.
Status Importance::load_dat(std::span<const std::byte> bytes, const std::string& path) {
  gguf::Cursor cursor(bytes);
  const auto in_range = [&](std::string_view what, uint32_t value, uint32_t max) -> Status {
    if (value >= 1 && value <= max) return Ok{};
    return fail(ErrorCode::invalid_data, "{}: {}: expected 1 to {}, found {}", path, what, max,
                value);
  };
  CAIRN_TRY(const uint32_t entry_count, cursor.u32("entries"));
  CAIRN_TRY(in_range("entries", entry_count, kEntriesMax));
  for (uint32_t entry = 0; entry < entry_count; ++entry) {
    CAIRN_TRY(const uint32_t name_bytes, cursor.u32("a name's length"));
    CAIRN_TRY(in_range("a name's length", name_bytes, kNameBytesMax));
    CAIRN_TRY(const auto name, cursor.take(gguf::FileInt(name_bytes), "a name"));
    CAIRN_TRY(const uint32_t call_count, cursor.u32("calls"));
    CAIRN_TRY(const uint32_t value_count, cursor.u32("values"));
    CAIRN_TRY(in_range("values", value_count, uint32_t(1) << 30));
    CAIRN_TRY(const auto raw,
              cursor.take(gguf::FileInt(uint64_t(value_count) * sizeof(float)), "values"));
    std::vector<float> values = floats_of(raw);
    CAIRN_TRY(check_finite(as_text(name), values));
    const float divisor = int32_t(call_count) > 0 ? float(call_count) : 1.0f;
    for (float& value : values) value /= divisor;
    factors_[std::string(as_text(name))] = std::move(values);
  }
  if (cursor.remaining() < 8) return Ok{};
  CAIRN_TRY([[maybe_unused]] const uint32_t last_call, cursor.u32("calls"));
  CAIRN_TRY(const uint32_t set_bytes, cursor.u32("a data set's name"));
  CAIRN_TRY(const auto set, cursor.take(gguf::FileInt(set_bytes), "a data set's name"));
  if (!set.empty()) datasets_.emplace_back(as_text(set));
  return Ok{};
}

Result<std::span<const float>> Importance::of(std::string_view tensor, int64_t inputs,
                                              int64_t expert_count) const {
  const auto at = factors_.find(tensor);
  if (at == factors_.end()) return std::span<const float>();
  const std::vector<float>& factors = at->second;
  if (int64_t(factors.size()) == inputs * expert_count) return std::span<const float>(factors);
  return fail(ErrorCode::invalid_data, "{}: {}: expected {} factors, found {}", path_, tensor,
              inputs * expert_count, factors.size());
}

}  // namespace cairn::quantize
