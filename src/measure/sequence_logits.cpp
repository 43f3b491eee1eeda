// Steps whose rows are all outputs.
#include "measure/sequence_logits.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "memory/memory.h"

namespace cairn::measure {

Status append_logits(Engine& engine, std::span<const Token> tokens, OutputFile& out) {
  memory::Sequence sequence = engine.memory().new_sequence();
  const size_t batch = size_t(engine.runner().row_count_max());
  std::vector<int32_t> outputs(batch);
  std::iota(outputs.begin(), outputs.end(), 0);
  while (!tokens.empty()) {
    const size_t count = std::min(batch, tokens.size());
    const StepItem item{.sequence = &sequence,
                        .tokens = tokens.first(count),
                        .outputs = std::span(outputs).first(count)};
    Status written = Ok{};
    CAIRN_TRY(engine.step({&item, 1}, [&](size_t, const StepOutputs& rows) {
      for (int32_t row = 0; row < rows.count() && written; ++row) {
        written = out.append(std::as_bytes(rows.logits(row)));
      }
      return int32_t(count);
    }));
    CAIRN_TRY(std::move(written));
    tokens = tokens.subspan(count);
  }
  return Ok{};
}

}  // namespace cairn::measure
