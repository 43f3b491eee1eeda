// The tasks of attention. With many rows a task is a block of rows for one KV head. With few rows,
// slices whose sequences share their first pages form a shared-prefix group (as in cascade
// attention): the prefix is read once for all, then each branch reads its own blocks of 256 keys.
// Both are split by blocks (as in flash-decoding). Each block's sums get a slot, except that the
// prefix's first part has one slot; the task that finishes a branch last merges its slots in
// ascending order. So the bits depend neither on the split nor on timing.
#pragma once

#include "backends/cpu/ops_kernels.h"
#include "backends/host/host.h"

namespace cairn::cpu {

size_t attend_scratch_bytes(const Op& op);
size_t attend_notes_bytes(const Op& op);
size_t attend_shared_bytes(const Op& op);
int64_t cut_attend(const Op& op, const Step& step, std::byte* notes);
void run_attend(const OpsTable& table, const Op& op, const Step& step, int64_t task,
                const host::SharedRoom& room);

// One head of a page table as the kernels take it.
KvHeadArgs kv_head_args(const KvPlane& plane, const Slice& slice, int32_t kv_head);

template <const OpsTable& Table>
inline constexpr host::JointKernel kAttendKernel = {
    .scratch_bytes = &attend_scratch_bytes,
    .notes_bytes = &attend_notes_bytes,
    .shared_bytes = &attend_shared_bytes,
    .cut = &cut_attend,
    .run = [](const Op& op, const Step& step, int64_t task, const host::SharedRoom& room) {
      run_attend(Table, op, step, task, room);
    }};

}  // namespace cairn::cpu
