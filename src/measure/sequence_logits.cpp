// Steps whose rows are all outputs.
#include "measure/sequence_logits.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "memory/memory.h"

namespace cairn::measure {

Status append_logits(Engine& engine, std::span<const Token> tokens, FileWriter& out) {
  memory::Memory& memory = engine.memory();
  Runner& runner = engine.runner();
  memory::Sequence sequence = memory.new_sequence();
  const size_t batch = size_t(std::min(runner.row_count_max(), runner.output_count_max()));
  std::vector<int32_t> outputs(batch);
  std::iota(outputs.begin(), outputs.end(), 0);
  while (!tokens.empty()) {
    const size_t count = std::min(batch, tokens.size());
    CAIRN_TRY(memory::Transaction transaction,
              memory.begin(sequence, {.tokens = tokens.first(count)}));
    const BatchPart part{.transaction = &transaction, .outputs = std::span(outputs).first(count)};
    runner.run({&part, 1});
    for (size_t row = 0; row < count; ++row) {
      CAIRN_TRY(out.append(std::as_bytes(runner.logits(int32_t(row)))));
    }
    transaction.commit(int32_t(count));
    tokens = tokens.subspan(count);
  }
  return Ok{};
}

}  // namespace cairn::measure
