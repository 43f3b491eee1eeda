// Looks filters up in the two tables.
#include "jinja/builtins/filters.h"

namespace cairn::jinja {

std::optional<uint32_t> find_filter(std::string_view name) {
  uint32_t index = 0;
  for (const std::span<const Callable> table : {sequence_filters(), text_filters()}) {
    for (const Callable& filter : table) {
      if (filter.name == name) return index;
      ++index;
    }
  }
  return std::nullopt;
}

Result<Value> call_filter(Runtime& runtime, uint32_t index, const Value& subject,
                          const Arguments& arguments) {
  const std::span<const Callable> sequences = sequence_filters();
  const Callable& filter =
      index < sequences.size() ? sequences[index] : text_filters()[index - sequences.size()];
  CAIRN_TRY(runtime.enter_filter());
  auto value = invoke(runtime, filter, subject, arguments);
  runtime.leave_filter();
  return value;
}

}  // namespace cairn::jinja
