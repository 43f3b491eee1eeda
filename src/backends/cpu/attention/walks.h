// The two walks of attention over pages: products of some queries with keys, and sums of values
// weighted by them. Vectors run across positions for the scores (a page's keys lie [dim][slot])
// and across dims for the values; what is loaded serves up to kBlock queries. Positions are counted
// from the start of a run. Templates, instantiated per instruction set by ops_<isa>.cpp.
#pragma once

#include "backends/cpu/attention/kv_readers.h"

namespace cairn {
namespace {

// Plain floats are a tile in a cache: they are not prefetched.
template <class Bits>
constexpr bool kIsTile = __is_same(Bits, float);

// Whether a walk over values adds up the exponentials too. Over a tile, which many queries share,
// only where registers are left for their sums.
template <class L, class Value>
constexpr bool kAddsUp = !kIsTile<Value> || L::kRegisters >= 32;

// How many queries share a walk: as many as leave registers for keys and values.
template <class L>
constexpr int32_t kBlock = L::kCount == 16  ? 8
                           : L::kCount == 8 ? 6
                                            : 4;

// How many vectors of a page's slots are summed at once. The product with the number of queries is
// the number of accumulators: enough to hide the latency of a sum, few enough to stay in registers.
template <class L>
constexpr int32_t score_vectors(int32_t query_count) {
  return L::kCount == 4 || (L::kCount == 8 && query_count <= 2) ? 4 : 2;
}
// Pages side by side: where a page's vectors are few and the queries too, a query's element that is
// loaded should still serve four sums.
template <class L>
constexpr int32_t score_pages(int32_t query_count) {
  return L::kCount == 16 && query_count <= 4 ? 2 : 1;
}
// The same for the vectors of a value. A tile has kScaleDims dims of values.
template <class L, class Value>
constexpr int32_t value_vectors(int32_t query_count) {
  const int32_t most = L::kCount == 8 ? (query_count <= 2 ? 4 : 2) : (query_count <= 6 ? 4 : 2);
  const int32_t tile = kScaleDims / L::kCount;
  return kIsTile<Value> && tile < most ? tile : most;
}

inline const std::byte* keys_at(const cpu::KvHeadArgs& head, int32_t position) {
  const auto page = static_cast<int32_t>(head.pages[position / cpu::kPageSlots]);
  return head.keys + size_t(page) * head.keys_page_bytes;
}
inline const std::byte* values_at(const cpu::KvHeadArgs& head, int32_t position) {
  const auto page = static_cast<int32_t>(head.pages[position / cpu::kPageSlots]);
  return head.values + size_t(page) * head.values_page_bytes;
}

// Pages lie anywhere in memory, so the hardware cannot prefetch the next one: reading a page
// prefetches the one that is read two pages later. The order of reading: a block's keys, its
// values, the next block's keys.
constexpr int32_t kAhead = 2 * cpu::kPageSlots;

// Into the second cache: it has room for more outstanding lines than the first, and two pages of
// all dims would push out of the first what is being used.
inline void ask_for(const void* line) {
  __builtin_prefetch(line, 0, 2);
}

// For the keys at `position` of a block whose part [first, last) is read; both start pages.
inline const std::byte* ahead_of_keys(const cpu::KvHeadArgs& head, int32_t position, int32_t first,
                                      int32_t last) {
  if (position + kAhead < last) return keys_at(head, position + kAhead);
  const int32_t value = first + (position + kAhead - last);
  return values_at(head, value < last ? value : position);
}

// For the values at `position` of a block that is read up to `last` (the start of a page). The keys
// of the next block are read if they are before `limit`.
inline const std::byte* ahead_of_values(const cpu::KvHeadArgs& head, int32_t position, int32_t last,
                                        int32_t limit) {
  if (position + kAhead < last) return values_at(head, position + kAhead);
  const int32_t key = position + kAhead;
  return key < limit ? keys_at(head, key) : values_at(head, position);
}

// *a * b + c. Beside what widens stored numbers no arithmetic unit is left for broadcasts; over a
// tile, where vectors share one, it takes fewer loads.
template <class Bits, class L>
[[gnu::always_inline]] inline L multiply_add(const float* a, L b, L c) {
  return kIsTile<Bits> ? fma(L(*a), b, c) : fma_of(a, b, c);
}

// What a walk over the keys of the pages that hold [first, last) reads and writes.
struct KeyWalk {
  const float* q;        // [dim][kBlock]
  float* scores;         // [query][kBlockPositions], from the start of the block.
  int32_t first, last;   // Both start pages, or last is the block's end.
  // The pages of the block that are read, in this walk and others.
  int32_t kv_block_first, kv_block_end;
};

// P pages side by side.
template <class L, class Key, int32_t Q, int32_t P>
[[gnu::always_inline]] inline void add_scores_of_pages(const cpu::KvHeadArgs& head,
                                                       const KeyWalk& walk, int32_t position) {
  constexpr int32_t kVectors = score_vectors<L>(Q);
  const std::byte* pages[P];
  const std::byte* ahead[P];
  repeat<P>([&](auto p) {
    const int32_t at = position + p * cpu::kPageSlots;
    pages[p] = keys_at(head, at);
    if constexpr (!kIsTile<Key>) {
      ahead[p] = ahead_of_keys(head, at, walk.kv_block_first, walk.kv_block_end);
    }
  });
  for (int32_t slot = 0; slot < cpu::kPageSlots; slot += kVectors * L::kCount) {
    L sums[Q][P][kVectors];
    repeat<Q>([&](auto query) {
      repeat<P>([&](auto p) { repeat<kVectors>([&](auto i) { sums[query][p][i] = L(0.0f); }); });
    });
    KeyReader<L, Key, kVectors> keys[2] = {{head, pages[0], slot}, {head, pages[P - 1], slot}};
    for (int32_t block = 0; block < head.key_dim; block += kScaleDims) {
      repeat<P>([&](auto p) { keys[p].begin(block); });
      const int32_t left = head.key_dim - block;
      const int32_t end = block + (left < kScaleDims ? left : kScaleDims);
      for (int32_t d = block; d < end; ++d) {
        L key[P][kVectors];
        repeat<P>([&](auto p) {
          const size_t offset = keys[p].read(d, key[p]);
          if constexpr (!kIsTile<Key>) ask_for(ahead[p] + offset);
        });
        repeat<Q>([&](auto query) {
          const float* part = walk.q + d * kBlock<L> + query;
          repeat<P>([&](auto p) {
            repeat<kVectors>([&](auto i) {
              sums[query][p][i] = multiply_add<Key>(part, key[p][i], sums[query][p][i]);
            });
          });
        });
      }
    }
    float* to = walk.scores + position + slot;
    repeat<Q>([&](auto query) {
      repeat<P>([&](auto p) {
        repeat<kVectors>([&](auto i) {
          store(to + query * cpu::kBlockPositions + p * cpu::kPageSlots + i * L::kCount,
                sums[query][p][i]);
        });
      });
    });
  }
}

template <class L, class Key, int32_t Q>
void add_scores(const cpu::KvHeadArgs& head, const KeyWalk& walk) {
  constexpr int32_t kPages = score_pages<L>(Q);
  int32_t position = walk.first;
  for (; position + (kPages - 1) * cpu::kPageSlots < walk.last;
       position += kPages * cpu::kPageSlots) {
    add_scores_of_pages<L, Key, Q, kPages>(head, walk, position);
  }
  if constexpr (kPages > 1) {
    if (position < walk.last) add_scores_of_pages<L, Key, Q, 1>(head, walk, position);
  }
}

// What a walk over the values of [begin, end) adds to.
struct ValueWalk {
  const float* p;     // [query][kBlockPositions], from the block's start.
  float* const* out;  // [query]: [value_dim], padded.
  int32_t out_dim;    // Of out, where the values' first dim goes.
  float* sums;        // [query]; null: not added to.
  int32_t begin, end;
  int32_t limit;  // Positions from here on are not read after this block.
};

// out[query][dim…] += p[query][position] * value[position][dim…] for N vectors from `dim`,
// positions ascending; and the sums of p alone where WithSum. `count` is that of the last vector.
template <class L, class Value, int32_t Q, int32_t N, bool WithSum>
inline void add_values(const cpu::KvHeadArgs& head, const ValueWalk& walk, int32_t dim,
                       int32_t count) {
  L out[Q][N];
  float sums[Q];
  repeat<Q>([&](auto query) {
    if constexpr (WithSum) sums[query] = walk.sums[query];
    const float* from = walk.out[query] + walk.out_dim + dim;
    repeat<N>([&](auto i) { out[query][i] = L::load(from + i * L::kCount); });
  });
  const int32_t page_end = (walk.end + cpu::kPageSlots - 1) / cpu::kPageSlots * cpu::kPageSlots;
  for (int32_t position = walk.begin; position < walk.end;) {
    const int32_t slot = position % cpu::kPageSlots;
    const int32_t left = walk.end - position, in_page = cpu::kPageSlots - slot;
    const int32_t steps = left < in_page ? left : in_page;
    ValueReader<L, Value, N> values(head, values_at(head, position), slot, dim);
    const std::byte* ahead = nullptr;
    if constexpr (!kIsTile<Value>) {
      ahead = ahead_of_values(head, position - slot, page_end, walk.limit);
    }
    const float* p = walk.p + position;
    for (int32_t step = 0; step < steps; ++step) {
      L value[N];
      const size_t offset = values.read(count, value);
      constexpr size_t kBytes = !kIsTile<Value> ? ValueReader<L, Value, N>::kBytes : 0;
      for (size_t line = 0; line < kBytes; line += 64) ask_for(ahead + offset + line);
      repeat<Q>([&](auto query) {
        const float* weight = p + query * cpu::kBlockPositions + step;
        if constexpr (WithSum) sums[query] += *weight;
        repeat<N>([&](auto i) {
          out[query][i] = multiply_add<Value>(weight, value[i], out[query][i]);
        });
      });
      values.next();
    }
    position += steps;
  }
  repeat<Q>([&](auto query) {
    if constexpr (WithSum) walk.sums[query] = sums[query];
    float* to = walk.out[query] + walk.out_dim + dim;
    repeat<N>([&](auto i) { store(to + i * L::kCount, out[query][i]); });
  });
}

template <class L, class Value, int32_t Q>
void add_values_of_all_dims(const cpu::KvHeadArgs& head, const ValueWalk& walk) {
  constexpr int32_t kVectors = value_vectors<L, Value>(Q);
  int32_t dim = 0;
  if (kAddsUp<L, Value> && walk.sums != nullptr && head.value_dim >= kVectors * L::kCount) {
    add_values<L, Value, Q, kVectors, kAddsUp<L, Value>>(head, walk, 0, L::kCount);
    dim = kVectors * L::kCount;
  }
  for (; dim + kVectors * L::kCount <= head.value_dim; dim += kVectors * L::kCount) {
    add_values<L, Value, Q, kVectors, false>(head, walk, dim, L::kCount);
  }
  // What is left, a vector at a time: the sums were added to above, where anything was.
  float unused[Q] = {};
  ValueWalk rest = walk;
  for (; dim < head.value_dim; dim += L::kCount) {
    if (dim > 0 || walk.sums == nullptr) rest.sums = unused;
    const int32_t left = head.value_dim - dim;
    const int32_t count = left < L::kCount ? left : L::kCount;
    add_values<L, Value, Q, 1, kAddsUp<L, Value>>(head, rest, dim, count);
  }
}

// The walks for 1..kBlock queries (index: the count), for one stored form of keys or values.
struct Walks {
  bool has_codes;  // Which are turned into numbers once for several blocks of queries.
  void (*scores[cpu::kQueryBlock + 1])(const cpu::KvHeadArgs& head, const KeyWalk& walk);
  void (*values[cpu::kQueryBlock + 1])(const cpu::KvHeadArgs& head, const ValueWalk& walk);
};

template <class L, class Bits, int32_t Q>
constexpr void put_walks(Walks& walks) {
  if constexpr (Q >= 1) {
    walks.scores[Q] = &add_scores<L, Bits, Q>;
    walks.values[Q] = &add_values_of_all_dims<L, Bits, Q>;
    put_walks<L, Bits, Q - 1>(walks);
  }
}
template <class L, class Bits>
constexpr Walks make_walks() {
  Walks walks{.has_codes = __is_same(Bits, Q8Bits) || __is_same(Bits, Q4Bits)};
  put_walks<L, Bits, kBlock<L>>(walks);
  return walks;
}

// By KvType.
template <class L>
constexpr Walks kWalks[] = {make_walks<L, F32Bits>(), make_walks<L, F16Bits>(),
                            make_walks<L, BF16Bits>(), make_walks<L, Q8Bits>(),
                            make_walks<L, Q4Bits>()};
// Over a tile.
template <class L>
constexpr Walks kTileWalks = make_walks<L, float>();

}  // namespace
}  // namespace cairn
