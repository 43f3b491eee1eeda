// Putting sampling parameters together.
#include "cli/sampling_choice.h"

#include <random>

namespace cairn::cli {

namespace {

Status take_from_file(const gguf::Fields& fields, const sample::SamplingField& field,
                      sample::SamplingParams& params) {
  const gguf::Value* value = fields.find(field.file_key);
  if (value == nullptr) return Ok{};
  std::optional<double> number = gguf::real_in(*value);
  if (!number) {
    if (const auto integer = gguf::integer_in(*value)) number = double(*integer);
  }
  if (!number) {
    return fail(ErrorCode::invalid_data, "{}: expected a number, found {}", field.file_key,
                gguf::describe(*value));
  }
  if (Status status = set(params, field, *number); !status) {
    return fail(ErrorCode::invalid_data, "{}: {}", field.file_key, status.error().message);
  }
  return Ok{};
}

uint64_t new_seed() {
  std::random_device device;
  // 32 bits: enough to be new, short enough to be typed again.
  return device();
}

}  // namespace

Result<sample::SamplingParams> effective_sampling(const gguf::Fields& fields, bool is_builtin,
                                                  const SamplingChoice& choice) {
  sample::SamplingParams params;
  if (is_builtin) params.temperature = 0;
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    CAIRN_TRY(take_from_file(fields, field, params));
  }
  for (const auto& [field, value] : choice.said) CAIRN_TRY(set(params, *field, value));
  params.seed = choice.seed ? *choice.seed : new_seed();
  return params;
}

}  // namespace cairn::cli
