// Which tensors a GGUF file gets from a checkpoint, in which order, type and shape, and their
// bytes. Rows of outputs come from rows of sources; nothing is held in memory but a piece of rows.
// Thread rule: planning is pure; writing belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "convert/tensor_plan.h"
#include "gguf/writer.h"

namespace cairn::convert {

// f32, f16 or bf16: what stands for `automatic` is what the checkpoint's first matrix has, f16 if
// that is f32.
OutType choose_type(const Checkpoint& checkpoint, OutType wanted);
uint32_t file_type_of(OutType type);  // The number of general.file_type.

// Errors: unsupported (a tensor that the family does not know; numbers of another type),
// invalid_data (experts are missing, shapes disagree). Keys that go with a generated tensor are
// added to `out`. `token_count` is the rows that the embedding keeps at most.
Result<std::vector<PlannedTensor>> plan_tensors(const Checkpoint& checkpoint, const Config& config,
                                                const Family& family, OutType type,
                                                int64_t token_count, KeyValues& out);

using OnBytes = std::function<void(uint64_t bytes)>;

// Appends all of it to the stream, in order. REQUIRES: planned from the same checkpoint.
Status write_tensors(const Checkpoint& checkpoint, const std::vector<PlannedTensor>& tensors,
                     gguf::TensorStream& stream, const OnBytes& on_bytes);

}  // namespace cairn::convert
