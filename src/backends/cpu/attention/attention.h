// Kernel template of attention, instantiated per instruction set by ops_<isa>.cpp. Same bits
// as backends/reference/attention.cpp: runs are walked one by one, and merged in ascending order.
// One call walks some runs for some queries: the heads of a group, several rows of a prompt, rows
// of several sequences in what they share. It leaves sums in slots: the maximum, the sum, and from
// kSlotHead on the output, not yet divided.
#pragma once

#include "backends/cpu/attention/tile.h"
#include "backends/cpu/attention/walks.h"
#include "backends/cpu/lanes/transpose_vectors.h"

namespace cairn {
namespace {

// The first lanes' distances from the first lane.
constexpr float kLanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Scores of `count` positions that follow each other.
struct Scores {
  float* values;
  int32_t count;
  float slope;
  int32_t distance;  // From the query's own position to the first.
};

// Whether exp() takes no more steps than exp_within_range().
template <class L>
constexpr bool kExpIsShort = requires(L a) {
  times_power_of_two(a, a);
};

// Scales and caps scores, adds ALiBi's bias and replaces them by exp(score - max); returns the
// maximum.
template <class L>
inline float exponentials(const cpu::AttendArgs& args, const Scores& of) {
  float* const scores = of.values;
  const int32_t count = of.count;
  constexpr float kInfinity = __builtin_inff();
  const L scale = L(args.scale), cap = L(args.softcap), zero = L(0.0f);
  L largest_lanes = L(-kInfinity),
    lowest_lanes = L(-kInfinity);  // The lowest with its sign turned.
  float max = -kInfinity, lowest = -kInfinity;
  for_lanes<L>(count, [&](int32_t i, int32_t lane_count) {
    L score = load_some<L>(scores + i, lane_count) * scale;
    if (args.softcap != 0) score = cap * elementary::tanh(score / cap);
    if (of.slope != 0) {
      const L offset = L(float(of.distance + i)) + L::load(kLanes);
      score = fma(L(of.slope), zero - larger(offset, zero - offset), score);
    }
    store_some(scores + i, score, lane_count);
    if (lane_count == L::kCount) {
      largest_lanes = larger(score, largest_lanes);
      if constexpr (!kExpIsShort<L>) lowest_lanes = larger(zero - score, lowest_lanes);
    } else {
      for (int32_t j = i; j < count; ++j) {
        max = scores[j] > max ? scores[j] : max;
        lowest = -scores[j] > lowest ? -scores[j] : lowest;
      }
    }
  });
  max = largest(largest_lanes, max);
  lowest = largest(lowest_lanes, lowest);
  const L max_lanes = L(max);
  if (!kExpIsShort<L> && max + lowest <= 87.0f) {
    for_lanes<L>(count, [&](int32_t i, int32_t lane_count) {
      const L score = load_some<L>(scores + i, lane_count);
      store_some(scores + i, elementary::exp_within_range(score - max_lanes), lane_count);
    });
  } else {
    for_lanes<L>(count, [&](int32_t i, int32_t lane_count) {
      const L score = load_some<L>(scores + i, lane_count);
      store_some(scores + i, elementary::exp(score - max_lanes), lane_count);
    });
  }
  return max;
}

// Adds the part `next`, of the positions after the total's, to the total.
template <class L>
void merge_slots(float* total, const float* next, int32_t padded) {
  const float both = next[0] > total[0] ? next[0] : total[0];
  const float keep = elementary::exp(total[0] - both);
  const float take = elementary::exp(next[0] - both);
  total[1] = __builtin_fmaf(next[1], take, total[1] * keep);
  total[0] = both;
  const L keep_lanes = L(keep), take_lanes = L(take);
  for (int32_t i = cpu::kSlotHead; i < cpu::kSlotHead + padded; i += L::kCount) {
    store(total + i, fma(L::load(next + i), take_lanes, L::load(total + i) * keep_lanes));
  }
}

// A call's buffers, in its scratch.
struct AttendRoom {
  float* q;       // [query / kBlock][dim][kBlock]
  float* scores;  // [query][kBlockPositions]
  float* slots;   // [query]: of one block, if the query's own slot is in use.
  float* tile;    // One page of keys, or some dims of some pages of values.

  explicit AttendRoom(const cpu::AttendArgs& args) {
    q = args.scratch;
    scores = q + cpu::attend_q_floats(args.head.key_dim);
    slots = scores + cpu::kAttendQueries * cpu::kBlockPositions;
    tile = slots + cpu::kAttendQueries * cpu::slot_floats(args.head.value_dim);
  }
};

// The part of one block that each query of a call sees, in positions from the block's start.
struct KvBlockView {
  cpu::KvHeadArgs head;  // Its pages begin with the block's.
  int32_t begin[cpu::kAttendQueries], end[cpu::kAttendQueries];  // Empty: nothing is seen.
  int32_t first, last;                                           // Of all queries.
  int32_t limit;                      // Where the last query ends, in any block of the call.
  float* slots[cpu::kAttendQueries];  // Where each query's sums of the block are stored.
  float* outs[cpu::kAttendQueries];   // The outputs in them.
  float sums[cpu::kAttendQueries];
};

// Queries [first, first + count), which share walks.
struct Block {
  int32_t first, count;
};

// Adds up the exponentials of up to as many queries as there are lanes, positions ascending: a lane
// has one query's.
template <class L>
void add_up(const AttendRoom& room, KvBlockView& view, Block block) {
  // What all queries see, in whole vectors.
  int32_t begin = 0, end = cpu::kBlockPositions;
  for (int32_t query = block.first; query < block.first + block.count; ++query) {
    begin = view.begin[query] > begin ? view.begin[query] : begin;
    end = view.end[query] < end ? view.end[query] : end;
  }
  if (begin >= end) begin = end = cpu::kBlockPositions;
  end -= (end - begin) % L::kCount;
  const auto row = [&](int32_t i) {
    const int32_t query = block.first + (i < block.count ? i : 0);
    return room.scores + query * cpu::kBlockPositions;
  };
  float sums[L::kCount] = {};
  const auto add_alone = [&](int32_t low, int32_t high) {
    for (int32_t i = 0; i < block.count; ++i) {
      const int32_t query = block.first + i;
      const int32_t first = view.begin[query] > low ? view.begin[query] : low;
      const int32_t last = view.end[query] < high ? view.end[query] : high;
      for (int32_t position = first; position < last; ++position) sums[i] += row(i)[position];
    }
  };
  add_alone(0, begin);
  L lanes = L::load(sums);
  for (int32_t position = begin; position < end; position += L::kCount) {
    L vectors[L::kCount];
    repeat<L::kCount>([&](auto i) { vectors[i] = L::load(row(i) + position); });
    transpose_vectors(vectors);
    repeat<L::kCount>([&](auto i) { lanes = lanes + vectors[i]; });
  }
  store(sums, lanes);
  add_alone(end, cpu::kBlockPositions);
  for (int32_t i = 0; i < block.count; ++i) view.sums[block.first + i] = sums[i];
}

// The values of positions [from, to), for the outputs' dims from `out_dim` on. The queries' ranges
// may begin and end at different positions (rows of a prompt on the diagonal, windows): what only
// some of them see is added for these alone, in order.
template <class L>
void add_values_of_block(const Walks& walks, const cpu::KvHeadArgs& head, KvBlockView& view,
                         const float* scores, Block block, int32_t from, int32_t to,
                         int32_t out_dim) {
  int32_t begin[cpu::kQueryBlock], end[cpu::kQueryBlock];
  int32_t common_begin = from, common_end = to;
  for (int32_t i = 0; i < block.count; ++i) {
    const int32_t query = block.first + i;
    begin[i] = view.begin[query] > from ? view.begin[query] : from;
    end[i] = view.end[query] < to ? view.end[query] : to;
    common_begin = begin[i] > common_begin ? begin[i] : common_begin;
    common_end = end[i] < common_end ? end[i] : common_end;
  }
  if (common_begin >= common_end) common_begin = common_end = to;
  const auto walk = [&](int32_t i, int32_t count, int32_t first, int32_t last) {
    const int32_t query = block.first + i;
    walks.values[count](head,
                        {scores + query * cpu::kBlockPositions, view.outs + query, out_dim,
                         out_dim == 0 ? view.sums + query : nullptr, first, last, view.limit});
  };
  // Neighbours that see the same go together: the heads of a row.
  const auto walk_alone = [&](const int32_t* first, const int32_t* last, int32_t low,
                              int32_t high) {
    for (int32_t i = 0; i < block.count;) {
      const int32_t start = first[i] > low ? first[i] : low;
      const int32_t stop = last[i] < high ? last[i] : high;
      int32_t next = i + 1;
      while (next < block.count && first[next] == first[i] && last[next] == last[i]) ++next;
      if (start < stop) walk(i, next - i, start, stop);
      i = next;
    }
  };
  walk_alone(begin, end, from, common_begin);
  if (common_begin < common_end) walk(0, block.count, common_begin, common_end);
  walk_alone(begin, end, common_end, to);
}

// Calls body(block) for blocks of like size.
template <class L, class Body>
void for_blocks(int32_t query_count, const Body& body) {
  const int32_t block_count = (query_count + kBlock<L> - 1) / kBlock<L>;
  const int32_t size = (query_count + block_count - 1) / block_count;
  for (int32_t first = 0; first < query_count; first += size) {
    const int32_t left = query_count - first;
    body(Block{first, left < size ? left : size});
  }
}

template <class L>
void pack_queries(const cpu::AttendArgs& args, const AttendRoom& room) {
  int32_t index = 0;
  for_blocks<L>(args.query_count, [&](Block block) {
    float* to = room.q + size_t(index++) * size_t(kBlock<L> * args.head.key_dim);
    for (int32_t i = 0; i < block.count; ++i) {
      const float* from = args.queries[block.first + i].q;
      for (int32_t d = 0; d < args.head.key_dim; ++d) to[d * kBlock<L> + i] = from[d];
    }
  });
}

// Whether walks go over pages as they are stored, and not over tiles.
template <class L>
bool walks_over_pages(const cpu::AttendArgs& args, const Walks& walks) {
  return args.query_count <= (walks.has_codes ? kBlock<L> : args.queries_on_pages);
}

template <class L>
void score_kv_block(const cpu::AttendArgs& args, const KvBlockView& view, const AttendRoom& room) {
  const int32_t first = view.first / cpu::kPageSlots * cpu::kPageSlots;
  const int32_t kv_block_end =
      (view.last + cpu::kPageSlots - 1) / cpu::kPageSlots * cpu::kPageSlots;
  const size_t block_floats = size_t(kBlock<L> * args.head.key_dim);
  const Walks& walks = kWalks<L>[args.key_type];
  const auto is_seen = [&](Block block, int32_t position, int32_t end) {
    for (int32_t i = block.first; i < block.first + block.count; ++i) {
      if (view.begin[i] < end && view.end[i] > position) return true;
    }
    return false;
  };
  if (walks_over_pages<L>(args, walks)) {
    // Several blocks of queries take turns at a page, which the first one leaves in the cache.
    const int32_t step = args.query_count <= kBlock<L> ? cpu::kBlockPositions : cpu::kPageSlots;
    for (int32_t position = first; position < view.last; position += step) {
      const int32_t last = position + step < view.last ? position + step : view.last;
      int32_t index = 0;
      for_blocks<L>(args.query_count, [&](Block block) {
        const float* q = room.q + size_t(index++) * block_floats;
        if (!is_seen(block, position, last)) return;
        walks.scores[block.count](view.head, {q, room.scores + block.first * cpu::kBlockPositions,
                                              position, last, first, kv_block_end});
      });
    }
    return;
  }
  cpu::KvHeadArgs tile_head = view.head;
  tile_head.keys = reinterpret_cast<std::byte*>(room.tile);
  tile_head.keys_page_bytes = 0;  // All pages are the one in the tile.
  for (int32_t position = first; position < view.last; position += cpu::kPageSlots) {
    const int32_t page_end = position + cpu::kPageSlots;
    kWidenKeys<L>[args.key_type](view.head, keys_at(view.head, position),
                                 ahead_of_keys(view.head, position, first, kv_block_end),
                                 room.tile);
    int32_t index = 0;
    for_blocks<L>(args.query_count, [&](Block block) {
      const float* q = room.q + size_t(index++) * block_floats;
      if (!is_seen(block, position, page_end)) return;
      kTileWalks<L>.scores[block.count](
          tile_head,
          {q, room.scores + block.first * cpu::kBlockPositions, position, page_end, 0, 0});
    });
  }
}

// Some dims of the values of as many pages as the tile takes, from the position `from` on.
template <class L>
void widen_values_of_pages(const cpu::AttendArgs& args, const KvBlockView& view, TileDims dims,
                           int32_t from, float* tile) {
  const WidenValues widen = args.head.values_in_keys ? kWidenKeysAsValues<L>[args.value_type]
                                                     : kWidenValues<L>[args.value_type];
  const int32_t kv_block_end =
      (view.last + cpu::kPageSlots - 1) / cpu::kPageSlots * cpu::kPageSlots;
  for (int32_t page = 0; page < cpu::kValueTilePages; ++page) {
    const int32_t position = from + page * cpu::kPageSlots;
    if (position >= view.last) break;
    if (position + cpu::kPageSlots <= view.first) continue;  // Perhaps no longer kept.
    const std::byte* ahead = ahead_of_values(view.head, position, kv_block_end, view.limit);
    widen(view.head, values_at(view.head, position), ahead, dims,
          tile + page * cpu::kPageSlots * dims.count);
  }
}

template <class L>
void add_values_of_kv_block(const cpu::AttendArgs& args, KvBlockView& view,
                            const AttendRoom& room) {
  const Walks& walks = kWalks<L>[args.value_type];
  if (walks_over_pages<L>(args, walks) && !args.head.values_in_keys) {
    for_blocks<L>(args.query_count, [&](Block block) {
      add_values_of_block<L>(walks, view.head, view, room.scores, block, view.first, view.last, 0);
    });
    return;
  }
  if constexpr (!kAddsUp<L, float>) {
    for (int32_t first = 0; first < args.query_count; first += L::kCount) {
      const int32_t left = args.query_count - first;
      add_up<L>(room, view, {first, left < L::kCount ? left : L::kCount});
    }
  }
  // The block's pages take turns in the tile.
  PageId places[cpu::kBlockPositions / cpu::kPageSlots];
  for (int32_t i = 0; i < cpu::kBlockPositions / cpu::kPageSlots; ++i) {
    places[i] = PageId(i % cpu::kValueTilePages);
  }
  cpu::KvHeadArgs tile_head = view.head;
  tile_head.values = reinterpret_cast<std::byte*>(room.tile);
  tile_head.pages = places;
  constexpr int32_t kStep = cpu::kValueTilePages * cpu::kPageSlots;
  for (int32_t from = view.first / kStep * kStep; from < view.last; from += kStep) {
    for (int32_t dim = 0; dim < args.head.value_dim; dim += kScaleDims) {
      const int32_t left = args.head.value_dim - dim;
      tile_head.value_dim = left < kScaleDims ? left : kScaleDims;
      tile_head.values_page_bytes = sizeof(float) * size_t(cpu::kPageSlots * tile_head.value_dim);
      widen_values_of_pages<L>(args, view, {dim, tile_head.value_dim}, from, room.tile);
      for_blocks<L>(args.query_count, [&](Block block) {
        add_values_of_block<L>(kTileWalks<L>, tile_head, view, room.scores, block, from,
                               from + kStep, dim);
      });
    }
  }
}

// The part of `block` that each query sees, and where its sums are stored: in the query's slot if
// that is still empty.
inline KvBlockView view_kv_block(const cpu::AttendArgs& args, const AttendRoom& room, int32_t block,
                                 const bool* started) {
  const int32_t start = block * cpu::kBlockPositions;
  KvBlockView view;
  view.head = args.head;
  view.head.pages += block * (cpu::kBlockPositions / cpu::kPageSlots);
  view.first = cpu::kBlockPositions;
  view.last = view.limit = 0;
  const int32_t call_end = args.end_block * cpu::kBlockPositions - start;
  for (int32_t i = 0; i < args.query_count; ++i) {
    const cpu::AttendQuery& query = args.queries[i];
    const int32_t begin = query.begin > start ? query.begin - start : 0;
    const int32_t query_end = query.end - start < call_end ? query.end - start : call_end;
    const int32_t end = query_end < cpu::kBlockPositions ? query_end : cpu::kBlockPositions;
    view.limit = query_end > view.limit ? query_end : view.limit;
    view.begin[i] = view.end[i] = 0;
    if (begin >= end) continue;
    view.begin[i] = begin;
    view.end[i] = end;
    view.first = begin < view.first ? begin : view.first;
    view.last = end > view.last ? end : view.last;
    const int32_t slot_floats = cpu::slot_floats(args.head.value_dim);
    view.slots[i] = started[i] ? room.slots + i * slot_floats
                               : query.slot + (block - args.first_block) * args.block_step;
    view.outs[i] = view.slots[i] + cpu::kSlotHead;
  }
  return view;
}

template <class L>
void attend_kv_block(const cpu::AttendArgs& args, const AttendRoom& room, int32_t block,
                     bool* started) {
  KvBlockView view = view_kv_block(args, room, block, started);
  if (view.first >= view.last) return;
  score_kv_block<L>(args, view, room);
  const int32_t padded = cpu::padded_dim(args.head.value_dim);
  for (int32_t i = 0; i < args.query_count; ++i) {
    view.sums[i] = 0;
    const int32_t count = view.end[i] - view.begin[i];
    if (count == 0) continue;
    float* scores = room.scores + i * cpu::kBlockPositions + view.begin[i];
    const cpu::AttendQuery& query = args.queries[i];
    const int32_t first = block * cpu::kBlockPositions + view.begin[i];
    view.slots[i][0] = exponentials<L>(args, {scores, count, query.slope, first - query.position});
    for (int32_t d = 0; d < padded; d += L::kCount) store(view.outs[i] + d, L(0.0f));
  }
  add_values_of_kv_block<L>(args, view, room);
  for (int32_t i = 0; i < args.query_count; ++i) {
    if (view.begin[i] == view.end[i]) continue;
    view.slots[i][1] = view.sums[i];
    if (started[i]) merge_slots<L>(args.queries[i].slot, view.slots[i], padded);
    started[i] = args.block_step == 0;
  }
}

template <class L>
void attend_queries(const cpu::AttendArgs& args) {
  const AttendRoom room(args);
  pack_queries<L>(args, room);
  bool started[cpu::kAttendQueries] = {};
  for (int32_t block = args.first_block; block < args.end_block; ++block) {
    attend_kv_block<L>(args, room, block, started);
  }
}

// Merges a query's slots into the first, adds the sink and divides.
template <class L>
void finish_attention(const cpu::FinishAttentionArgs& args) {
  const int32_t padded = cpu::padded_dim(args.value_dim);
  float* total = args.slots;
  for (int32_t slot = 1; slot < args.slot_count; ++slot) {
    merge_slots<L>(total, total + slot * cpu::slot_floats(args.value_dim), padded);
  }
  float sum = total[1], keep = 1;
  if (args.sink != nullptr) {
    const float max = *args.sink > total[0] ? *args.sink : total[0];
    keep = elementary::exp(total[0] - max);
    sum = sum * keep + elementary::exp(*args.sink - max);
  }
  const L keep_lanes = L(keep), sum_lanes = L(sum);
  for_lanes<L>(args.value_dim, [&](int32_t i, int32_t count) {
    const L out = L::load(total + cpu::kSlotHead + i);
    store_some(args.out + i, (out * keep_lanes) / sum_lanes, count);
  });
}

}  // namespace
}  // namespace cairn
