// Attention's tasks. Many rows of a sequence: blocks of rows, each a task for every kv head. Few
// rows, and so few tasks: rows that walk together form a team. Sequences that begin with the same
// pages are one team, whose trunk (the runs in common) is read once for all of them; each member
// then reads the runs that are its own. Both are cut into parts by runs. Each run's sums go to a
// slot of their own, but for the trunk's first part, which fills one slot; whoever ends a member's
// last part merges its slots in ascending order. So the bits depend neither on the cut nor on time.
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
