// Text of the attention kernels; compiled once for each instruction set by ops_<isa>.cpp. Same bits
// as backends/reference/attention.cpp. Vectors run across positions for the scores (a page's keys
// lie [dim][slot]) and across dims for the values; a key or value that is loaded serves up to
// kQueryBlock queries: the heads of a group, and several rows of a prompt.
#pragma once

#include "backends/cpu/kv_readers.h"

namespace cairn {
namespace {

// How many queries share a walk: as many as leave registers for keys and values.
template <class L>
constexpr int32_t kBlock = L::kCount / 2;

// How many vectors of a page's slots are summed at once. The product with the number of queries is
// the number of accumulators: enough to hide the latency of a sum, few enough to stay in registers.
template <class L>
constexpr int32_t score_vectors(int32_t query_count) {
  return L::kCount == 8 && query_count <= 2 ? 4 : 2;
}
// The same for the vectors of a value.
template <class L>
constexpr int32_t value_vectors(int32_t query_count) {
  return L::kCount == 16 ? (query_count <= 6 ? 4 : 2) : (query_count <= 2 ? 4 : 2);
}

template <class Bits>
inline const Bits* page_at(const std::byte* first_page, size_t page_bytes,
                           const cpu::KvHeadArgs& head, int32_t position) {
  const auto page = static_cast<int32_t>(head.pages[position / cpu::kPageSlots]);
  return reinterpret_cast<const Bits*>(first_page + size_t(page) * page_bytes);
}
template <class Key>
inline const Key* keys_at(const cpu::KvHeadArgs& head, int32_t position) {
  return page_at<Key>(head.keys, head.keys_page_bytes, head, position);
}
template <class Value>
inline const Value* values_at(const cpu::KvHeadArgs& head, int32_t position) {
  return page_at<Value>(head.values, head.values_page_bytes, head, position);
}

// Pages lie anywhere in memory, so the machine cannot guess the next one: whoever walks a page asks
// for the one that is read two pages later. The order of reading: a run's keys, its values, the
// next run's keys.
constexpr int32_t kAhead = 2 * cpu::kPageSlots;

// Into the second cache: it has room for more outstanding lines than the first, and two pages of
// all dims would push out of the first what is being used.
inline void ask_for(const void* line) {
  __builtin_prefetch(line, 0, 2);
}

// For the keys at `position` of a run whose part [first, last) is read; both start pages.
inline const std::byte* ahead_of_keys(const cpu::KvHeadArgs& head, int32_t position, int32_t first,
                                      int32_t last) {
  if (position + kAhead < last) return keys_at<std::byte>(head, position + kAhead);
  const int32_t value = first + (position + kAhead - last);
  return values_at<std::byte>(head, value < last ? value : position);
}

// For the values at `position` of a run that is read up to `last` (the start of a page). The keys
// of the next run are read if they stand before `limit`.
inline const std::byte* ahead_of_values(const cpu::KvHeadArgs& head, int32_t position, int32_t last,
                                        int32_t limit) {
  if (position + kAhead < last) return values_at<std::byte>(head, position + kAhead);
  const int32_t key = position + kAhead;
  if (key < limit) return keys_at<std::byte>(head, key);
  return values_at<std::byte>(head, position);
}

// Products of Q queries with the keys of the pages that hold [first, last): a page's slots go to
// scores[query * kRunPositions + slot].
template <class L, class Key, int32_t Q>
void add_scores(const cpu::KvHeadArgs& head, const float* const* q, int32_t first, int32_t last,
                float* scores) {
  constexpr int32_t kVectors = score_vectors<L>(Q);
  const int32_t page_end = (last + cpu::kPageSlots - 1) / cpu::kPageSlots * cpu::kPageSlots;
  for (int32_t position = first; position < last; position += cpu::kPageSlots) {
    const std::byte* ahead = ahead_of_keys(head, position, first, page_end);
    for (int32_t slot = 0; slot < cpu::kPageSlots; slot += kVectors * L::kCount) {
      L sums[Q][kVectors];
      repeat<Q>([&](auto query) { repeat<kVectors>([&](auto i) { sums[query][i] = L(0.0f); }); });
      KeyReader<L, Key, kVectors> keys(head, keys_at<std::byte>(head, position), slot);
      for (int32_t block = 0; block < head.key_dim; block += kScaleDims) {
        keys.begin(block);
        const int32_t left = head.key_dim - block;
        const int32_t end = block + (left < kScaleDims ? left : kScaleDims);
        for (int32_t d = block; d < end; ++d) {
          L key[kVectors];
          ask_for(ahead + keys.read(d, key));
          repeat<Q>([&](auto query) {
            const L part = L(q[query][d]);
            repeat<kVectors>([&](auto i) { sums[query][i] = fma(part, key[i], sums[query][i]); });
          });
        }
      }
      float* to = scores + (position - first) + slot;
      repeat<Q>([&](auto query) {
        repeat<kVectors>([&](auto i) {
          store(to + query * cpu::kRunPositions + i * L::kCount, sums[query][i]);
        });
      });
    }
  }
}

// Scales and caps `count` scores and replaces them by exp(score - max); returns the maximum.
template <class L>
inline float exponentials(const cpu::AttendArgs& args, float* scores, int32_t count) {
  constexpr float kInfinity = __builtin_inff();
  const L scale = L(args.scale), cap = L(args.softcap);
  L largest_lanes = L(-kInfinity);
  float max = -kInfinity;
  for_lanes<L>(count, [&](int32_t i, int32_t lane_count) {
    L score = load_some<L>(scores + i, lane_count) * scale;
    if (args.softcap != 0) score = cap * elementary::tanh(score / cap);
    store_some(scores + i, score, lane_count);
    if (lane_count == L::kCount) {
      largest_lanes = larger(score, largest_lanes);
    } else {
      for (int32_t j = i; j < count; ++j) max = scores[j] > max ? scores[j] : max;
    }
  });
  max = largest(largest_lanes, max);
  const L max_lanes = L(max);
  for_lanes<L>(count, [&](int32_t i, int32_t lane_count) {
    const L score = load_some<L>(scores + i, lane_count);
    store_some(scores + i, elementary::exp(score - max_lanes), lane_count);
  });
  return max;
}

// What a walk over the values of [begin, end), all in one run, adds to.
struct ValueSums {
  const float* p;  // [query][kRunPositions], from the run's first position.
  float* out;      // [query][stride]
  float* sums;     // [query]
  int32_t stride;
  int32_t run_first, begin, end;
  int32_t limit;  // Positions from here on are not read after this run.
};

// out[query][dim…] += p[query][position] * value[position][dim…] for N vectors from `dim`,
// positions ascending; and the sums of p alone where WithSum. `count` is that of the last vector.
template <class L, class Value, int32_t Q, int32_t N, bool WithSum>
inline void add_values(const cpu::KvHeadArgs& head, const ValueSums& to, int32_t dim,
                       int32_t count) {
  L out[Q][N];
  float sums[Q];
  repeat<Q>([&](auto query) {
    sums[query] = to.sums[query];
    repeat<N>(
        [&](auto i) { out[query][i] = L::load(to.out + query * to.stride + dim + i * L::kCount); });
  });
  const int32_t page_end = (to.end + cpu::kPageSlots - 1) / cpu::kPageSlots * cpu::kPageSlots;
  for (int32_t position = to.begin; position < to.end;) {
    const int32_t slot = position % cpu::kPageSlots;
    const int32_t left = to.end - position, in_page = cpu::kPageSlots - slot;
    const int32_t steps = left < in_page ? left : in_page;
    ValueReader<L, Value, N> values(head, values_at<std::byte>(head, position), slot, dim);
    const std::byte* ahead = ahead_of_values(head, position - slot, page_end, to.limit);
    const float* p = to.p + (position - to.run_first);
    for (int32_t step = 0; step < steps; ++step) {
      L value[N];
      const size_t offset = values.read(count, value);
      constexpr size_t kBytes = ValueReader<L, Value, N>::kBytes;
      for (size_t line = 0; line < kBytes; line += 64) ask_for(ahead + offset + line);
      repeat<Q>([&](auto query) {
        const float weight = p[query * cpu::kRunPositions + step];
        if constexpr (WithSum) sums[query] += weight;
        repeat<N>([&](auto i) { out[query][i] = fma(L(weight), value[i], out[query][i]); });
      });
      values.next();
    }
    position += steps;
  }
  repeat<Q>([&](auto query) {
    to.sums[query] = sums[query];
    repeat<N>(
        [&](auto i) { store(to.out + query * to.stride + dim + i * L::kCount, out[query][i]); });
  });
}

template <class L, class Value, int32_t Q>
void add_values_of_all_dims(const cpu::KvHeadArgs& head, const ValueSums& to) {
  constexpr int32_t kVectors = value_vectors<L>(Q);
  int32_t dim = 0;
  if (head.value_dim >= kVectors * L::kCount) {
    add_values<L, Value, Q, kVectors, true>(head, to, 0, L::kCount);
    dim = kVectors * L::kCount;
  }
  for (; dim + kVectors * L::kCount <= head.value_dim; dim += kVectors * L::kCount) {
    add_values<L, Value, Q, kVectors, false>(head, to, dim, L::kCount);
  }
  for (; dim < head.value_dim; dim += L::kCount) {
    const int32_t left = head.value_dim - dim;
    const int32_t count = left < L::kCount ? left : L::kCount;
    if (dim == 0) {
      add_values<L, Value, Q, 1, true>(head, to, dim, count);
    } else {
      add_values<L, Value, Q, 1, false>(head, to, dim, count);
    }
  }
}

// The softmax of all queries so far, not yet divided.
struct Totals {
  float max[cpu::kAttendQueries], sum[cpu::kAttendQueries];
  bool started[cpu::kAttendQueries];
  float* out;  // [query][stride]
  int32_t stride;
};

template <class L>
void merge_run(Totals& totals, int32_t query, float max, float sum, const float* out) {
  float* total = totals.out + query * totals.stride;
  if (!totals.started[query]) {
    totals.started[query] = true;
    totals.max[query] = max;
    totals.sum[query] = sum;
    for (int32_t i = 0; i < totals.stride; i += L::kCount) store(total + i, L::load(out + i));
    return;
  }
  const float both = max > totals.max[query] ? max : totals.max[query];
  const float keep = elementary::exp(totals.max[query] - both);
  const float take = elementary::exp(max - both);
  totals.sum[query] = __builtin_fmaf(sum, take, totals.sum[query] * keep);
  totals.max[query] = both;
  const L keep_lanes = L(keep), take_lanes = L(take);
  for (int32_t i = 0; i < totals.stride; i += L::kCount) {
    store(total + i, fma(L::load(out + i), take_lanes, L::load(total + i) * keep_lanes));
  }
}

// The walks for 1..kBlock queries (index: the count), for one stored form of keys or values.
using ScoreWalk = void (*)(const cpu::KvHeadArgs& head, const float* const* q, int32_t first,
                           int32_t last, float* scores);
using ValueWalk = void (*)(const cpu::KvHeadArgs& head, const ValueSums& to);

template <class L, class Bits, int32_t Q>
constexpr ScoreWalk score_walk() {
  if constexpr (Q >= 1 && Q <= kBlock<L>) return &add_scores<L, Bits, Q>;
  return nullptr;
}
template <class L, class Bits, int32_t Q>
constexpr ValueWalk value_walk() {
  if constexpr (Q >= 1 && Q <= kBlock<L>) return &add_values_of_all_dims<L, Bits, Q>;
  return nullptr;
}

struct Walks {
  ScoreWalk scores[cpu::kQueryBlock + 1];
  ValueWalk values[cpu::kQueryBlock + 1];
};

template <class L, class Bits>
constexpr Walks make_walks() {
  return {{score_walk<L, Bits, 0>(), score_walk<L, Bits, 1>(), score_walk<L, Bits, 2>(),
           score_walk<L, Bits, 3>(), score_walk<L, Bits, 4>(), score_walk<L, Bits, 5>(),
           score_walk<L, Bits, 6>(), score_walk<L, Bits, 7>(), score_walk<L, Bits, 8>()},
          {value_walk<L, Bits, 0>(), value_walk<L, Bits, 1>(), value_walk<L, Bits, 2>(),
           value_walk<L, Bits, 3>(), value_walk<L, Bits, 4>(), value_walk<L, Bits, 5>(),
           value_walk<L, Bits, 6>(), value_walk<L, Bits, 7>(), value_walk<L, Bits, 8>()}};
}

template <class L>
constexpr Walks kWalks[] = {make_walks<L, F32Bits>(), make_walks<L, F16Bits>(),
                            make_walks<L, BF16Bits>(), make_walks<L, Q8Bits>(),
                            make_walks<L, Q4Bits>()};

// Some queries in one run. What each of them sees of it, and what all of them see.
struct Block {
  const int32_t* chosen;  // Indices of the queries.
  int32_t count;
  int32_t run_first;
  int32_t begin[cpu::kQueryBlock], end[cpu::kQueryBlock];
  int32_t first, last;
  int32_t common_begin, common_end;
  int32_t limit;  // Where the last of the queries ends, in whichever run.
};

inline Block make_block(const cpu::AttendArgs& args, const int32_t* chosen, int32_t count,
                        int32_t run_first) {
  const int32_t run_end = run_first + cpu::kRunPositions;
  Block block{chosen, count, run_first, {}, {}, run_end, run_first, run_first, run_end, 0};
  for (int32_t i = 0; i < count; ++i) {
    const cpu::AttendQuery& query = args.queries[chosen[i]];
    const int32_t begin = query.begin > run_first ? query.begin : run_first;
    const int32_t end = query.end < run_end ? query.end : run_end;
    block.limit = query.end > block.limit ? query.end : block.limit;
    block.begin[i] = begin;
    block.end[i] = end;
    block.first = begin < block.first ? begin : block.first;
    block.last = end > block.last ? end : block.last;
    block.common_begin = begin > block.common_begin ? begin : block.common_begin;
    block.common_end = end < block.common_end ? end : block.common_end;
  }
  if (block.common_begin > block.common_end) block.common_begin = block.common_end = block.last;
  return block;
}

// The queries' ranges may begin and end at different positions (rows of a prompt on the diagonal,
// windows): what only some of them see is added for these alone, in order.
template <class L>
void add_values_of_block(const cpu::AttendArgs& args, const Block& block, const ValueSums& all) {
  const Walks& walks = kWalks<L>[args.value_type];
  const auto add_alone = [&](int32_t i, int32_t from, int32_t to) {
    walks.values[1](args.head, {all.p + i * cpu::kRunPositions, all.out + i * all.stride,
                                all.sums + i, all.stride, all.run_first, from, to, all.limit});
  };
  for (int32_t i = 0; i < block.count; ++i) {
    const int32_t end = block.end[i] < block.common_begin ? block.end[i] : block.common_begin;
    if (block.begin[i] < end) add_alone(i, block.begin[i], end);
  }
  if (block.common_begin < block.common_end) walks.values[block.count](args.head, all);
  for (int32_t i = 0; i < block.count; ++i) {
    if (block.common_end < block.end[i]) add_alone(i, block.common_end, block.end[i]);
  }
}

template <class L>
void attend_block(const cpu::AttendArgs& args, const Block& block, Totals& totals, float* room) {
  const float* q[cpu::kQueryBlock];
  for (int32_t i = 0; i < block.count; ++i) q[i] = args.queries[block.chosen[i]].q;
  const int32_t first_page = block.first / cpu::kPageSlots * cpu::kPageSlots;
  float* scores = room;  // [kQueryBlock][kRunPositions]
  kWalks<L>[args.key_type].scores[block.count](args.head, q, first_page, block.last,
                                               scores + (first_page - block.run_first));
  float max[cpu::kQueryBlock], sum[cpu::kQueryBlock];
  for (int32_t i = 0; i < block.count; ++i) {
    float* row = scores + i * cpu::kRunPositions + (block.begin[i] - block.run_first);
    max[i] = exponentials<L>(args, row, block.end[i] - block.begin[i]);
    sum[i] = 0;
  }
  float* out = room + cpu::kQueryBlock * cpu::kRunPositions;
  for (int32_t i = 0; i < block.count * totals.stride; i += L::kCount) {
    store(out + i, L(0.0f));
  }
  add_values_of_block<L>(args, block,
                         {scores, out, sum, totals.stride, block.run_first, block.common_begin,
                          block.common_end, block.limit});
  for (int32_t i = 0; i < block.count; ++i) {
    merge_run<L>(totals, block.chosen[i], max[i], sum[i], out + i * totals.stride);
  }
}

// Adds the sink and divides.
template <class L>
void finish_query(const cpu::AttendArgs& args, int32_t index, Totals& totals) {
  const cpu::AttendQuery& query = args.queries[index];
  float sum = totals.sum[index], keep = 1;
  if (args.has_sinks) {
    const float max = query.sink > totals.max[index] ? query.sink : totals.max[index];
    keep = elementary::exp(totals.max[index] - max);
    sum = sum * keep + elementary::exp(query.sink - max);
  }
  const L keep_lanes = L(keep), sum_lanes = L(sum);
  const float* total = totals.out + index * totals.stride;
  for_lanes<L>(args.head.value_dim, [&](int32_t i, int32_t count) {
    store_some(query.out + i, (L::load(total + i) * keep_lanes) / sum_lanes, count);
  });
}

template <class L>
void attend_queries(const cpu::AttendArgs& args) {
  Totals totals;
  totals.stride = cpu::padded_dim(args.head.value_dim);
  totals.out = args.scratch;
  float* room = args.scratch + cpu::kAttendQueries * totals.stride;
  int32_t first = args.queries[0].begin, last = args.queries[0].end;
  for (int32_t i = 0; i < args.query_count; ++i) {
    totals.started[i] = false;
    first = args.queries[i].begin < first ? args.queries[i].begin : first;
    last = args.queries[i].end > last ? args.queries[i].end : last;
  }
  const int32_t first_run = first / cpu::kRunPositions * cpu::kRunPositions;
  for (int32_t run = first_run; run < last; run += cpu::kRunPositions) {
    int32_t chosen[cpu::kAttendQueries];
    int32_t count = 0;
    for (int32_t i = 0; i < args.query_count; ++i) {
      const cpu::AttendQuery& query = args.queries[i];
      if (query.begin < run + cpu::kRunPositions && query.end > run) chosen[count++] = i;
    }
    for (int32_t i = 0; i < count; i += kBlock<L>) {
      const int32_t size = count - i < kBlock<L> ? count - i : kBlock<L>;
      attend_block<L>(args, make_block(args, chosen + i, size, run), totals, room);
    }
  }
  for (int32_t i = 0; i < args.query_count; ++i) finish_query<L>(args, i, totals);
}

}  // namespace
}  // namespace cairn
