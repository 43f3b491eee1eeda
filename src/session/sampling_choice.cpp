// Putting sampling parameters together.
#include "session/sampling_choice.h"

#include <random>

namespace cairn::session {

namespace {

Status take_from_file(const gguf::Fields& fields, const sample::SamplingField& field,
                      sample::SamplingParams& params) {
  const gguf::Value* value = field.file_key.empty() ? nullptr : fields.find(field.file_key);
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

Status take_list_from_file(const gguf::Fields& fields, const sample::SamplingList& list,
                           sample::SamplingParams& params) {
  if (list.file_key.empty() || fields.find(list.file_key) == nullptr) return Ok{};
  CAIRN_TRY(const std::string_view text, fields.get<std::string_view>(list.file_key));
  const std::vector<std::string> values{std::string(text)};
  if (Status status = list.set(params, values); !status) {
    return fail(ErrorCode::invalid_data, "{}: {}", list.file_key, status.error().message);
  }
  return Ok{};
}

}  // namespace

uint64_t new_seed() {
  std::random_device device;
  // 32 bits: enough to be new, short enough to be typed again.
  return device();
}

Result<sample::SamplingParams> effective_sampling(const gguf::Fields& fields, bool is_builtin,
                                                  const SamplingChoice& choice) {
  sample::SamplingParams params;
  if (is_builtin) params.temperature = 0;
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    CAIRN_TRY(take_from_file(fields, field, params));
  }
  for (const sample::SamplingList& list : sample::sampling_lists()) {
    CAIRN_TRY(take_list_from_file(fields, list, params));
  }
  for (const auto& [field, value] : choice.said) CAIRN_TRY(set(params, *field, value));
  for (const auto& [list, values] : choice.lists) CAIRN_TRY(list->set(params, values));
  params.seed = choice.seed ? *choice.seed : new_seed();
  return params;
}

}  // namespace cairn::session
