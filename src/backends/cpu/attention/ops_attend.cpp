// Cutting attention into tasks, and gathering what the kernels take for each of them.
#include "backends/cpu/attention/ops_attend.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <span>
#include <variant>

#include "backends/cpu/slice_blocks.h"

namespace cairn::cpu {
namespace {

constexpr int32_t kRunPages = kRunPositions / kPageSlots;
// Tasks that are enough for any number of threads: more of them only cost slots.
constexpr int32_t kTaskGoal = 32;
// Keys and values of a part, at least: some microseconds of reading.
constexpr size_t kPartBytes = size_t(96) << 10;
// Room for slots. Of it only what is used costs memory.
constexpr int64_t kSharedFloats = int64_t(1) << 20;
constexpr int32_t kMembers = 64;
constexpr int32_t kCounters = 1024;

// How the heads of one kv head are dealt out: as many a task as one call takes, and so many rows
// that it has up to kAttendQueries queries.
struct Shape {
  const KvPlane& plane;
  int32_t group_heads;  // Query heads of a kv head.
  int32_t chunk_count;  // Tasks that share a kv head's query heads.
  int32_t task_heads;   // Query heads of a task.
  int32_t part_count;   // Of all query heads.
  int32_t task_rows;

  Shape(const op::Attend& op, const Step& step) : plane(step.kv_planes[size_t(op.plane)]) {
    group_heads = op.head_count / plane.kv_head_count;
    chunk_count = (group_heads + kAttendQueries - 1) / kAttendQueries;
    task_heads = (group_heads + chunk_count - 1) / chunk_count;
    part_count = plane.kv_head_count * chunk_count;
    task_rows = std::min(16, kAttendQueries / task_heads);
  }
  int32_t kv_head(int32_t part) const { return part / chunk_count; }
  int32_t first_head(int32_t part) const { return part % chunk_count * task_heads; }
  int32_t end_head(int32_t part) const {
    return std::min(group_heads, first_head(part) + task_heads);
  }
  int32_t slot_floats() const { return cpu::slot_floats(plane.value_dim); }
};

// One slice of a team.
struct Member {
  const Slice* slice;
  int32_t first_run, end_run;    // That its rows see.
  int32_t own_parts, part_runs;  // Of its own runs.
  int64_t first_slot;            // Floats.
};

struct Team {
  int32_t first_member, member_count;
  int32_t first_run, trunk_end;  // The trunk's runs: for a member alone, all of them.
  int32_t stored_from;           // From this run on, every run has a slot.
  int32_t trunk_parts, part_runs;

  int32_t slot_count(const Member& member) const { return 1 + member.end_run - stored_from; }
};

// What a cut leaves for the tasks.
struct Notes {
  int32_t team_count = 0;  // 0: blocks of rows.
  int32_t member_count = 0;
  int64_t trunk_tasks = 0;
  Team teams[kMembers];
  Member members[kMembers];
  // Tasks to come, by member and part of the heads: atomic while tasks run. Plain numbers, which
  // nobody sets to zero for each step, since few of them are in use.
  int32_t left[kCounters];
};

// Behind the slice's last position.
int32_t end_of(const Slice& slice) {
  return slice.first_position + slice.row_count;
}

// Behind the last run that the slice's rows see: its last row sees its last position.
int32_t end_run_of(const Slice& slice) {
  return (end_of(slice) - 1) / kRunPositions + 1;
}

// Runs of positions before both slices' rows that lie in the same pages.
int32_t common_runs(const Slice& a, const Slice& b, int32_t group) {
  const int32_t run_count = std::min(a.first_position, b.first_position) / kRunPositions;
  const PageId* pages = a.pages[group];
  const auto differing = std::mismatch(pages, pages + run_count * kRunPages, b.pages[group]).first;
  return int32_t(differing - pages) / kRunPages;
}

// Cuts a step of few rows a slice.
class Cutter {
 public:
  Cutter(const op::Attend& op, const Step& step, const Shape& shape, Notes& notes)
      : op_(op), step_(step), shape_(shape), notes_(notes) {
    const int64_t slots_in_all = kSharedFloats / shape_.slot_floats();
    const int64_t queries = int64_t(step.tokens.size()) * shape.part_count * shape.task_heads;
    slots_max_ = int32_t(slots_in_all / std::max(int64_t(1), queries));
    const size_t run_bytes = kRunPages * (shape.plane.key_bytes + shape.plane.value_bytes);
    part_runs_min_ = int32_t((kPartBytes + run_bytes - 1) / run_bytes);
  }

  // Whether teams are of use: if not, blocks of rows do as well.
  bool cut() {
    if (slots_max_ < 2) return false;
    bool is_taken[kMembers] = {};
    for (size_t i = 0; i < step_.slices.size(); ++i) {
      if (!is_taken[i]) add_team(i, is_taken);
    }
    bool is_useful = false;
    for (int32_t team = 0; team < notes_.team_count; ++team) {
      cut_trunk(notes_.teams[team]);
      is_useful =
          is_useful || notes_.teams[team].member_count > 1 || notes_.teams[team].trunk_parts > 1;
    }
    return is_useful;
  }

  int64_t task_count() const { return task_count_; }

  void place_slots_and_count() {
    for (int32_t t = 0; t < notes_.team_count; ++t) {
      const Team& team = notes_.teams[t];
      notes_.trunk_tasks += int64_t(team.trunk_parts) * shape_.part_count;
      for (int32_t m = team.first_member; m < team.first_member + team.member_count; ++m) {
        Member& member = notes_.members[m];
        member.first_slot = slot_end_;
        slot_end_ += int64_t(shape_.part_count) * member.slice->row_count * shape_.task_heads *
                     team.slot_count(member) * shape_.slot_floats();
        cut_own(team, member);
        task_count_ += int64_t(member.own_parts) * shape_.part_count;
        for (int32_t part = 0; part < shape_.part_count; ++part) {
          notes_.left[m * shape_.part_count + part] = team.trunk_parts + member.own_parts;
        }
      }
    }
    CHECK(slot_end_ <= kSharedFloats);
    task_count_ += notes_.trunk_tasks;
  }

 private:
  void add_member(const Slice& slice) {
    notes_.members[notes_.member_count++] = {
        .slice = &slice,
        .first_run = op_.first_visible(slice.first_position) / kRunPositions,
        .end_run = end_run_of(slice)};
  }

  // The slice and those after it that had better walk with it. Each makes the team's trunk cheaper
  // by one reading, but must not make it so short that the others lose more than that.
  void add_team(size_t first, bool* is_taken) {
    const Slice& leader = step_.slices[first];
    Team& team = notes_.teams[notes_.team_count++];
    team = {.first_member = notes_.member_count, .member_count = 1};
    add_member(leader);
    int32_t trunk = 0, row_count = leader.row_count;
    int32_t end_run = notes_.members[team.first_member].end_run;
    for (size_t i = first + 1; i < step_.slices.size() && op_.window == 0; ++i) {
      const Slice& slice = step_.slices[i];
      if (is_taken[i] || (row_count + slice.row_count) * shape_.task_heads > kAttendQueries) {
        continue;
      }
      int32_t common = common_runs(leader, slice, shape_.plane.group);
      if (team.member_count > 1) common = std::min(common, trunk);
      const bool has_slots = std::max(end_run, end_run_of(slice)) - common + 1 <= slots_max_;
      if (common == 0 || !has_slots) continue;
      if (common * team.member_count < trunk * (team.member_count - 1)) continue;
      is_taken[i] = true;
      add_member(slice);
      ++team.member_count;
      trunk = common;
      row_count += slice.row_count;
      end_run = std::max(end_run, end_run_of(slice));
    }
    team.first_run = notes_.members[team.first_member].first_run;
    team.trunk_end = team.member_count > 1 ? trunk : end_run;
    team.stored_from = std::max(team.first_run + 1, end_run + 1 - slots_max_);
  }

  int32_t parts_of(int32_t run_count, int32_t units) const {
    const int32_t goal = (kTaskGoal + units - 1) / units;
    return std::max(1, std::min(goal, run_count / part_runs_min_));
  }

  void cut_trunk(Team& team) {
    const int32_t run_count = team.trunk_end - team.first_run;
    const int32_t parts = parts_of(run_count, notes_.team_count * shape_.part_count);
    team.part_runs = (run_count + parts - 1) / parts;
    // The first part is longer where there are too few slots.
    team.stored_from =
        std::min(team.trunk_end, std::max(team.stored_from, team.first_run + team.part_runs));
    team.trunk_parts =
        1 + (team.trunk_end - team.stored_from + team.part_runs - 1) / team.part_runs;
  }

  void cut_own(const Team& team, Member& member) {
    const int32_t run_count = member.end_run - team.trunk_end;
    const int32_t parts = parts_of(run_count, notes_.member_count * shape_.part_count);
    member.part_runs = std::max(1, (run_count + parts - 1) / parts);
    member.own_parts = (run_count + member.part_runs - 1) / member.part_runs;
  }

  const op::Attend& op_;
  const Step& step_;
  const Shape& shape_;
  Notes& notes_;
  int32_t slots_max_ = 0;  // Of a query.
  int32_t part_runs_min_ = 1;
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
  void attend(const Slice& slice, int32_t first_run, int32_t end_run, int32_t run_step,
              std::byte* scratch) const {
    table_.attend({.head = kv_head_args(shape_.plane, slice, shape_.kv_head(part_)),
                   .queries = queries_,
                   .query_count = count_,
                   .key_type = int32_t(shape_.plane.key_type),
                   .value_type = int32_t(shape_.plane.value_type),
                   .scale = op_.scale,
                   .softcap = op_.softcap,
                   .first_run = first_run,
                   .end_run = end_run,
                   .run_step = run_step,
                   .scratch = reinterpret_cast<float*>(scratch)});
  }
  // Merges the slots of the rows that add_rows() named, all of them with slot 0 for the runs before
  // `stored_from`, and writes the rows' output.
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
    return std::max(0, position / kRunPositions - stored_from + 1);
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

// The tasks of teams.
class TeamTasks {
 public:
  TeamTasks(const OpsTable& table, const op::Attend& op, const Step& step, const Shape& shape,
            const host::SharedRoom& room)
      : table_(table),
        op_(op),
        step_(step),
        shape_(shape),
        room_(room),
        notes_(*reinterpret_cast<Notes*>(room.notes)) {}

  void run(int64_t task) const {
    if (task < notes_.trunk_tasks) {
      const Team* team = notes_.teams;
      for (; task >= int64_t(team->trunk_parts) * shape_.part_count; ++team) {
        task -= int64_t(team->trunk_parts) * shape_.part_count;
      }
      run_trunk(*team, int32_t(task) / team->trunk_parts, int32_t(task) % team->trunk_parts);
      return;
    }
    task -= notes_.trunk_tasks;
    for (const Team& team : std::span(notes_.teams, size_t(notes_.team_count))) {
      for (int32_t m = team.first_member; m < team.first_member + team.member_count; ++m) {
        const int64_t count = int64_t(notes_.members[m].own_parts) * shape_.part_count;
        if (task < count) {
          const int32_t own_parts = notes_.members[m].own_parts;
          return run_own(team, m, int32_t(task) / own_parts, int32_t(task) % own_parts);
        }
        task -= count;
      }
    }
  }

 private:
  void run_trunk(const Team& team, int32_t part, int32_t index) const {
    Call call(table_, op_, step_, shape_, part);
    // The first part fills slot 0, the others one slot for each run.
    const int32_t first =
        index == 0 ? team.first_run : team.stored_from + (index - 1) * team.part_runs;
    const int32_t end =
        index == 0 ? team.stored_from : std::min(team.trunk_end, first + team.part_runs);
    const int32_t slot = index == 0 ? 0 : 1 + first - team.stored_from;
    for (int32_t m = team.first_member; m < team.first_member + team.member_count; ++m) {
      add_member(call, team, m, part, slot);
    }
    const Slice& slice = *notes_.members[team.first_member].slice;
    call.attend(slice, first, end, index == 0 ? 0 : shape_.slot_floats(), room_.scratch);
    for (int32_t m = team.first_member; m < team.first_member + team.member_count; ++m) {
      finish_if_last(team, m, part);
    }
  }

  void run_own(const Team& team, int32_t m, int32_t part, int32_t index) const {
    const Member& member = notes_.members[m];
    Call call(table_, op_, step_, shape_, part);
    const int32_t first = team.trunk_end + index * member.part_runs;
    const int32_t end = std::min(member.end_run, first + member.part_runs);
    add_member(call, team, m, part, 1 + first - team.stored_from);
    call.attend(*member.slice, first, end, shape_.slot_floats(), room_.scratch);
    finish_if_last(team, m, part);
  }

  void add_member(Call& call, const Team& team, int32_t m, int32_t part, int32_t slot) const {
    const Member& member = notes_.members[m];
    const int32_t rows = member.slice->row_count;
    const int32_t query_floats = team.slot_count(member) * shape_.slot_floats();
    const int64_t first = member.first_slot +
                          int64_t(part) * rows * shape_.task_heads * query_floats +
                          int64_t(slot) * shape_.slot_floats();
    call.add_rows(member.slice->first_row, rows, reinterpret_cast<float*>(room_.shared) + first,
                  query_floats);
  }

  void finish_if_last(const Team& team, int32_t m, int32_t part) const {
    // Whoever comes last sees what the others have written.
    const std::atomic_ref<int32_t> left(notes_.left[m * shape_.part_count + part]);
    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Call call(table_, op_, step_, shape_, part);
    add_member(call, team, m, part, 0);
    const Slice& slice = *notes_.members[m].slice;
    call.finish(slice.first_row, slice.row_count, team.stored_from);
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
  const int32_t end_run = (op.end_visible(last, end_of(*block.slice)) - 1) / kRunPositions + 1;
  call.attend(*block.slice, op.first_visible(first) / kRunPositions, end_run, 0, scratch);
  call.finish(block.first_row, block.row_count, end_run);
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
      step.slices.size() <= size_t(kMembers) &&
      int64_t(step.slices.size()) * shape.part_count <= kCounters &&
      std::all_of(step.slices.begin(), step.slices.end(),
                  [&](const Slice& slice) { return slice.row_count <= shape.task_rows; });
  if (has_few_rows) {
    Cutter cutter(op, step, shape, notes);
    if (cutter.cut()) {
      cutter.place_slots_and_count();
      return cutter.task_count();
    }
  }
  notes.team_count = 0;
  return int64_t(block_count(step, shape.task_rows)) * shape.part_count;
}

void run_attend(const OpsTable& table, const Op& any, const Step& step, int64_t task,
                const host::SharedRoom& room) {
  const auto& op = std::get<op::Attend>(any);
  const Shape shape(op, step);
  if (reinterpret_cast<const Notes*>(room.notes)->team_count == 0) {
    run_block(table, op, step, shape, task, room.scratch);
  } else {
    TeamTasks(table, op, step, shape, room).run(task);
  }
}

}  // namespace cairn::cpu
