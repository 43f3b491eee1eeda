// Cuts attention into tasks, and gathers the kernels' arguments for each of them.
#include "backends/cpu/attention/ops_attend.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <span>
#include <variant>

#include "backends/cpu/slice_blocks.h"

namespace cairn::cpu {
namespace {

constexpr int32_t kBlockPages = kBlockPositions / kPageSlots;
// Tasks that are enough for any number of threads: more of them only cost slots.
constexpr int32_t kTaskGoal = 32;
// A task has at most so many queries where larger ones would leave too few tasks.
constexpr int32_t kFewQueries = kAttendQueries / 2;
// Keys and values of a part, at least: some microseconds of reading.
constexpr size_t kPartBytes = size_t(96) << 10;
// Room for slots. Of it only what is used costs memory.
constexpr int64_t kSharedFloats = int64_t(1) << 20;
constexpr int32_t kBranches = 64;
constexpr int32_t kCounters = 1024;

// How the query heads of one KV head are divided: as many a task as kFewQueries, and so many rows
// that it has up to kFewQueries, or up to kAttendQueries where that leaves enough tasks: keys and
// values are read and widened once for a task.
struct Shape {
  const KvPlane& plane;
  int32_t group_heads;  // Query heads of a kv head.
  int32_t chunk_count;  // Tasks that share a kv head's query heads.
  int32_t task_heads;   // Query heads of a task.
  int32_t part_count;   // Of all query heads.
  int32_t few_rows, task_rows;

  Shape(const op::Attend& op, const Step& step) : plane(step.kv_planes[size_t(op.plane)]) {
    group_heads = op.head_count / plane.kv_head_count;
    chunk_count = (group_heads + kFewQueries - 1) / kFewQueries;
    task_heads = (group_heads + chunk_count - 1) / chunk_count;
    part_count = plane.kv_head_count * chunk_count;
    few_rows = std::min(16, kFewQueries / task_heads);
    const int32_t many_rows = std::min(32, kAttendQueries / task_heads);
    const int64_t task_count = int64_t(block_count(step, many_rows)) * part_count;
    task_rows = task_count >= kTaskGoal ? many_rows : few_rows;
  }
  int32_t kv_head(int32_t part) const { return part / chunk_count; }
  int32_t first_head(int32_t part) const { return part % chunk_count * task_heads; }
  int32_t end_head(int32_t part) const {
    return std::min(group_heads, first_head(part) + task_heads);
  }
  int32_t slot_floats() const { return cpu::slot_floats(plane.value_dim); }
};

// One slice of a shared-prefix group.
struct Branch {
  const Slice* slice;
  int32_t first_block, end_block;  // Visible to its rows.
  int32_t own_parts, part_blocks;  // Of its own blocks.
  int64_t first_slot;              // Floats.
};

struct PrefixGroup {
  int32_t first_branch, branch_count;
  int32_t first_block, prefix_end;  // The prefix: for a single branch, all its blocks.
  int32_t stored_from;              // From this block on, every block has a slot.
  int32_t prefix_parts, part_blocks;

  int32_t slot_count(const Branch& branch) const { return 1 + branch.end_block - stored_from; }
};

// What a cut leaves for the tasks.
struct Notes {
  int32_t group_count = 0;  // 0: tasks are blocks of rows.
  int32_t branch_count = 0;
  int64_t prefix_tasks = 0;
  PrefixGroup groups[kBranches];
  Branch branches[kBranches];
  // Tasks that are left, by branch and part of the heads: atomic while tasks run. Plain numbers,
  // which nobody sets to zero for each step, since few of them are in use.
  int32_t left[kCounters];
};

// Behind the slice's last position.
int32_t end_of(const Slice& slice) {
  return slice.first_position + slice.row_count;
}

// One past the last block that the slice's rows see: its last row sees its last position.
int32_t end_block_of(const Slice& slice) {
  return (end_of(slice) - 1) / kBlockPositions + 1;
}

// The blocks before both slices' rows that lie in the same pages.
int32_t common_blocks(const Slice& a, const Slice& b, int32_t group) {
  const int32_t kv_block_count = std::min(a.first_position, b.first_position) / kBlockPositions;
  const PageId* pages = a.pages[group];
  const auto differing =
      std::mismatch(pages, pages + kv_block_count * kBlockPages, b.pages[group]).first;
  return int32_t(differing - pages) / kBlockPages;
}

// Cuts a step of few rows a slice.
class Cutter {
 public:
  Cutter(const op::Attend& op, const Step& step, const Shape& shape, Notes& notes)
      : op_(op), step_(step), shape_(shape), notes_(notes) {
    const int64_t slots_in_all = kSharedFloats / shape_.slot_floats();
    const int64_t queries = int64_t(step.tokens.size()) * shape.part_count * shape.task_heads;
    slots_max_ = int32_t(slots_in_all / std::max(int64_t(1), queries));
    const size_t block_bytes = kBlockPages * (shape.plane.key_bytes + shape.plane.value_bytes);
    part_blocks_min_ = int32_t((kPartBytes + block_bytes - 1) / block_bytes);
  }

  // Whether groups help: if not, tasks are blocks of rows.
  bool cut() {
    if (slots_max_ < 2) return false;
    bool is_taken[kBranches] = {};
    for (size_t i = 0; i < step_.slices.size(); ++i) {
      if (!is_taken[i]) add_group(i, is_taken);
    }
    bool is_useful = false;
    for (int32_t group = 0; group < notes_.group_count; ++group) {
      cut_prefix(notes_.groups[group]);
      is_useful = is_useful || notes_.groups[group].branch_count > 1 ||
                  notes_.groups[group].prefix_parts > 1;
    }
    return is_useful;
  }

  int64_t task_count() const { return task_count_; }

  void place_slots_and_count() {
    for (int32_t t = 0; t < notes_.group_count; ++t) {
      const PrefixGroup& group = notes_.groups[t];
      notes_.prefix_tasks += int64_t(group.prefix_parts) * shape_.part_count;
      for (int32_t m = group.first_branch; m < group.first_branch + group.branch_count; ++m) {
        Branch& branch = notes_.branches[m];
        branch.first_slot = slot_end_;
        slot_end_ += int64_t(shape_.part_count) * branch.slice->row_count * shape_.task_heads *
                     group.slot_count(branch) * shape_.slot_floats();
        cut_own(group, branch);
        task_count_ += int64_t(branch.own_parts) * shape_.part_count;
        for (int32_t part = 0; part < shape_.part_count; ++part) {
          notes_.left[m * shape_.part_count + part] = group.prefix_parts + branch.own_parts;
        }
      }
    }
    CHECK(slot_end_ <= kSharedFloats);
    task_count_ += notes_.prefix_tasks;
  }

 private:
  void add_branch(const Slice& slice) {
    notes_.branches[notes_.branch_count++] = {
        .slice = &slice,
        .first_block = op_.first_visible(slice.first_position) / kBlockPositions,
        .end_block = end_block_of(slice)};
  }

  // The slice and those after it that should share its prefix. Each one saves a reading of the
  // prefix, but must not shorten it so much that the others lose more than that.
  void add_group(size_t first, bool* is_taken) {
    const Slice& first_slice = step_.slices[first];
    PrefixGroup& group = notes_.groups[notes_.group_count++];
    group = {.first_branch = notes_.branch_count, .branch_count = 1};
    add_branch(first_slice);
    int32_t prefix = 0, row_count = first_slice.row_count;
    int32_t end_block = notes_.branches[group.first_branch].end_block;
    for (size_t i = first + 1; i < step_.slices.size() && op_.window == 0; ++i) {
      const Slice& slice = step_.slices[i];
      if (is_taken[i] || (row_count + slice.row_count) * shape_.task_heads > kAttendQueries) {
        continue;
      }
      int32_t common = common_blocks(first_slice, slice, shape_.plane.group);
      if (group.branch_count > 1) common = std::min(common, prefix);
      const bool has_slots = std::max(end_block, end_block_of(slice)) - common + 1 <= slots_max_;
      if (common == 0 || !has_slots) continue;
      if (common * group.branch_count < prefix * (group.branch_count - 1)) continue;
      is_taken[i] = true;
      add_branch(slice);
      ++group.branch_count;
      prefix = common;
      row_count += slice.row_count;
      end_block = std::max(end_block, end_block_of(slice));
    }
    group.first_block = notes_.branches[group.first_branch].first_block;
    group.prefix_end = group.branch_count > 1 ? prefix : end_block;
    group.stored_from = std::max(group.first_block + 1, end_block + 1 - slots_max_);
  }

  int32_t parts_of(int32_t kv_block_count, int32_t units) const {
    const int32_t goal = (kTaskGoal + units - 1) / units;
    return std::max(1, std::min(goal, kv_block_count / part_blocks_min_));
  }

  void cut_prefix(PrefixGroup& group) {
    const int32_t kv_block_count = group.prefix_end - group.first_block;
    const int32_t parts = parts_of(kv_block_count, notes_.group_count * shape_.part_count);
    group.part_blocks = (kv_block_count + parts - 1) / parts;
    // The first part is longer where there are too few slots.
    group.stored_from = std::min(
        group.prefix_end, std::max(group.stored_from, group.first_block + group.part_blocks));
    group.prefix_parts =
        1 + (group.prefix_end - group.stored_from + group.part_blocks - 1) / group.part_blocks;
  }

  void cut_own(const PrefixGroup& group, Branch& branch) {
    const int32_t kv_block_count = branch.end_block - group.prefix_end;
    const int32_t parts = parts_of(kv_block_count, notes_.branch_count * shape_.part_count);
    branch.part_blocks = std::max(1, (kv_block_count + parts - 1) / parts);
    branch.own_parts = (kv_block_count + branch.part_blocks - 1) / branch.part_blocks;
  }

  const op::Attend& op_;
  const Step& step_;
  const Shape& shape_;
  Notes& notes_;
  int32_t slots_max_ = 0;  // Of a query.
  int32_t part_blocks_min_ = 1;
  int64_t slot_end_ = 0, task_count_ = 0;
};

// One call of the kernel: queries, what they read, where their sums go.
class Call {
 public:
  Call(const OpsTable& table, const op::Attend& op, const Step& step, const Shape& shape,
       int32_t part)
      : table_(table), op_(op), step_(step), shape_(shape), part_(part) {}

  // The queries of some rows of a slice. A query's slots are `query_floats` apart.
  void add_rows(int32_t first_row, int32_t row_count, float* slots, int32_t query_floats) {
    for (int32_t row = first_row; row < first_row + row_count; ++row) {
      const int32_t position = step_.positions[size_t(row)];
      const int32_t slice_end = end_of(step_.slices[size_t(step_.slice_of_row[size_t(row)])]);
      for (int32_t i = shape_.first_head(part_); i < shape_.end_head(part_); ++i) {
        queries_[count_++] = {.q = step_.row(op_.q, row) + head(i) * shape_.plane.key_dim,
                              .slot = slots,
                              .begin = op_.first_visible(position),
                              .end = op_.end_visible(position, slice_end),
                              .position = position,
                              .slope = op_.slopes.exists() ? op_.slopes[head(i)] : 0.0f};
        slots += query_floats;
      }
    }
  }
  void attend(const Slice& slice, int32_t first_block, int32_t end_block, int32_t block_step,
              std::byte* scratch) const {
    table_.attend({.head = kv_head_args(shape_.plane, slice, shape_.kv_head(part_)),
                   .queries = queries_,
                   .query_count = count_,
                   .key_type = int32_t(shape_.plane.key_type),
                   .value_type = int32_t(shape_.plane.value_type),
                   .queries_on_pages = table_.queries_on_pages,
                   .scale = op_.scale,
                   .softcap = op_.softcap,
                   .first_block = first_block,
                   .end_block = end_block,
                   .block_step = block_step,
                   .scratch = reinterpret_cast<float*>(scratch)});
  }
  // Merges the slots of the rows that add_rows() named, all of them with slot 0 for the blocks
  // before `stored_from`, and writes the rows' output.
  void finish(int32_t first_row, int32_t row_count, int32_t stored_from) const {
    const AttendQuery* query = queries_;
    for (int32_t row = first_row; row < first_row + row_count; ++row) {
      for (int32_t i = shape_.first_head(part_); i < shape_.end_head(part_); ++i, ++query) {
        const int32_t first = slot_of(query->begin, stored_from);
        table_.finish_attention(
            {.slots = query->slot + first * shape_.slot_floats(),
             .slot_count = slot_of(query->end - 1, stored_from) - first + 1,
             .value_dim = shape_.plane.value_dim,
             .sink = op_.sinks.from(head(i)),
             .out = step_.row(op_.out, row) + head(i) * shape_.plane.value_dim});
      }
    }
  }

 private:
  static int32_t slot_of(int32_t position, int32_t stored_from) {
    return std::max(0, position / kBlockPositions - stored_from + 1);
  }
  int64_t head(int32_t i) const { return int64_t(shape_.kv_head(part_)) * shape_.group_heads + i; }

  const OpsTable& table_;
  const op::Attend& op_;
  const Step& step_;
  const Shape& shape_;
  int32_t part_;
  int32_t count_ = 0;
  AttendQuery queries_[kAttendQueries];
};

// The tasks of shared-prefix groups.
class PrefixGroupTasks {
 public:
  PrefixGroupTasks(const OpsTable& table, const op::Attend& op, const Step& step,
                   const Shape& shape, const host::SharedRoom& room)
      : table_(table),
        op_(op),
        step_(step),
        shape_(shape),
        room_(room),
        notes_(*reinterpret_cast<Notes*>(room.notes)) {}

  void run(int64_t task) const {
    if (task < notes_.prefix_tasks) {
      const PrefixGroup* group = notes_.groups;
      for (; task >= int64_t(group->prefix_parts) * shape_.part_count; ++group) {
        task -= int64_t(group->prefix_parts) * shape_.part_count;
      }
      run_prefix(*group, int32_t(task) / group->prefix_parts, int32_t(task) % group->prefix_parts);
      return;
    }
    task -= notes_.prefix_tasks;
    for (const PrefixGroup& group : std::span(notes_.groups, size_t(notes_.group_count))) {
      for (int32_t m = group.first_branch; m < group.first_branch + group.branch_count; ++m) {
        const int64_t count = int64_t(notes_.branches[m].own_parts) * shape_.part_count;
        if (task < count) {
          const int32_t own_parts = notes_.branches[m].own_parts;
          return run_own(group, m, int32_t(task) / own_parts, int32_t(task) % own_parts);
        }
        task -= count;
      }
    }
  }

 private:
  void run_prefix(const PrefixGroup& group, int32_t part, int32_t index) const {
    Call call(table_, op_, step_, shape_, part);
    // The first part fills slot 0, the others one slot for each block.
    const int32_t first =
        index == 0 ? group.first_block : group.stored_from + (index - 1) * group.part_blocks;
    const int32_t end =
        index == 0 ? group.stored_from : std::min(group.prefix_end, first + group.part_blocks);
    const int32_t slot = index == 0 ? 0 : 1 + first - group.stored_from;
    for (int32_t m = group.first_branch; m < group.first_branch + group.branch_count; ++m) {
      add_branch(call, group, m, part, slot);
    }
    const Slice& slice = *notes_.branches[group.first_branch].slice;
    call.attend(slice, first, end, index == 0 ? 0 : shape_.slot_floats(), room_.scratch);
    for (int32_t m = group.first_branch; m < group.first_branch + group.branch_count; ++m) {
      finish_if_last(group, m, part);
    }
  }

  void run_own(const PrefixGroup& group, int32_t m, int32_t part, int32_t index) const {
    const Branch& branch = notes_.branches[m];
    Call call(table_, op_, step_, shape_, part);
    const int32_t first = group.prefix_end + index * branch.part_blocks;
    const int32_t end = std::min(branch.end_block, first + branch.part_blocks);
    add_branch(call, group, m, part, 1 + first - group.stored_from);
    call.attend(*branch.slice, first, end, shape_.slot_floats(), room_.scratch);
    finish_if_last(group, m, part);
  }

  void add_branch(Call& call, const PrefixGroup& group, int32_t m, int32_t part,
                  int32_t slot) const {
    const Branch& branch = notes_.branches[m];
    const int32_t rows = branch.slice->row_count;
    const int32_t query_floats = group.slot_count(branch) * shape_.slot_floats();
    const int64_t first = branch.first_slot +
                          int64_t(part) * rows * shape_.task_heads * query_floats +
                          int64_t(slot) * shape_.slot_floats();
    call.add_rows(branch.slice->first_row, rows, reinterpret_cast<float*>(room_.shared) + first,
                  query_floats);
  }

  void finish_if_last(const PrefixGroup& group, int32_t m, int32_t part) const {
    // Whoever comes last sees what the others have written.
    const std::atomic_ref<int32_t> left(notes_.left[m * shape_.part_count + part]);
    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Call call(table_, op_, step_, shape_, part);
    add_branch(call, group, m, part, 0);
    const Slice& slice = *notes_.branches[m].slice;
    call.finish(slice.first_row, slice.row_count, group.stored_from);
  }

  const OpsTable& table_;
  const op::Attend& op_;
  const Step& step_;
  const Shape& shape_;
  const host::SharedRoom& room_;
  Notes& notes_;
};

void run_block(const OpsTable& table, const op::Attend& op, const Step& step, const Shape& shape,
               int64_t task, std::byte* scratch) {
  const int32_t part = int32_t(task % shape.part_count);
  const SliceBlock block = find_block(step, shape.task_rows, int32_t(task / shape.part_count));
  Call call(table, op, step, shape, part);
  call.add_rows(block.first_row, block.row_count, reinterpret_cast<float*>(scratch),
                shape.slot_floats());
  scratch += sizeof(float) * size_t(kAttendQueries * shape.slot_floats());
  const int32_t first = step.positions[size_t(block.first_row)];
  const int32_t last = first + block.row_count - 1;
  const int32_t end_block = (op.end_visible(last, end_of(*block.slice)) - 1) / kBlockPositions + 1;
  call.attend(*block.slice, op.first_visible(first) / kBlockPositions, end_block, 0, scratch);
  call.finish(block.first_row, block.row_count, end_block);
}

}  // namespace

KvHeadArgs kv_head_args(const KvPlane& plane, const Slice& slice, int32_t kv_head) {
  const size_t key_bytes = plane.key_bytes;
  const size_t value_bytes = plane.values_in_keys ? key_bytes : plane.value_bytes;
  return {.keys = plane.keys + size_t(kv_head) * key_bytes,
          .values = plane.values + size_t(kv_head) * value_bytes,
          .keys_page_bytes = plane.keys_page_bytes,
          .values_page_bytes = plane.values_page_bytes,
          .pages = slice.pages[plane.group],
          .key_dim = plane.key_dim,
          .value_dim = plane.value_dim,
          .values_in_keys = plane.values_in_keys};
}

size_t attend_scratch_bytes(const Op& any) {
  const auto& op = std::get<op::Attend>(any);
  const int32_t key_dim = op.q.width / op.head_count, value_dim = op.out.width / op.head_count;
  return sizeof(float) * size_t(attend_scratch_floats(key_dim, value_dim) +
                                kAttendQueries * slot_floats(value_dim));
}

size_t attend_notes_bytes(const Op&) {
  return sizeof(Notes);
}

size_t attend_shared_bytes(const Op&) {
  return sizeof(float) * size_t(kSharedFloats);
}

int64_t cut_attend(const Op& any, const Step& step, std::byte* notes_bytes) {
  const auto& op = std::get<op::Attend>(any);
  const Shape shape(op, step);
  Notes& notes = *new (notes_bytes) Notes;
  const bool has_few_rows =
      step.slices.size() <= size_t(kBranches) &&
      int64_t(step.slices.size()) * shape.part_count <= kCounters &&
      std::all_of(step.slices.begin(), step.slices.end(),
                  [&](const Slice& slice) { return slice.row_count <= shape.few_rows; });
  if (has_few_rows) {
    Cutter cutter(op, step, shape, notes);
    if (cutter.cut()) {
      cutter.place_slots_and_count();
      return cutter.task_count();
    }
  }
  notes.group_count = 0;
  return int64_t(block_count(step, shape.task_rows)) * shape.part_count;
}

void run_attend(const OpsTable& table, const Op& any, const Step& step, int64_t task,
                const host::SharedRoom& room) {
  const auto& op = std::get<op::Attend>(any);
  const Shape shape(op, step);
  if (reinterpret_cast<const Notes*>(room.notes)->group_count == 0) {
    run_block(table, op, step, shape, task, room.scratch);
  } else {
    PrefixGroupTasks(table, op, step, shape, room).run(task);
  }
}

}  // namespace cairn::cpu
