// Elementwise kernel templates, instantiated per instruction set by ops_<isa>.cpp, which
// includes the vector type `Lanes` first. Same bits as backends/reference/elementwise.cpp.
#pragma once

#include "backends/cpu/lanes/repeat.h"
#include "backends/cpu/ops_kernels.h"
#include "base/elementary.h"

namespace cairn {
namespace {

// Calls body(first, count) for runs of at most L::kCount elements; count is L::kCount but for the
// last. The compiler knows it where it is: a body that takes it as `auto` is made for both cases.
template <class L, class Body>
[[gnu::always_inline]] inline void for_lanes(int32_t count, const Body& body) {
  int32_t first = 0;
  for (; first + L::kCount <= count; first += L::kCount) body(first, Index<L::kCount>{});
  if (first < count) body(first, count - first);
}

template <class L>
[[gnu::always_inline]] inline L load_some(const float* p, int32_t count) {
  return count == L::kCount ? L::load(p) : L::load_first(p, count);
}

template <class L>
[[gnu::always_inline]] inline void store_some(float* p, L a, int32_t count) {
  if (count == L::kCount) {
    store(p, a);
  } else {
    store_first(p, a, count);
  }
}

// A non-temporal store of a whole vector that is not read soon, so that the cache line's old
// contents are not fetched. REQUIRES: p is aligned to the vector's size; other threads read it only
// after drain_past_caches().
template <class L>
[[gnu::always_inline]] inline void store_past_caches(float* p, L a) {
  if constexpr (requires { stream(p, a); }) {
    stream(p, a);
  } else {
    store(p, a);
  }
}
template <class L>
[[gnu::always_inline]] inline void drain_past_caches(L a) {
  if constexpr (requires { drain_streams(a); }) drain_streams(a);
}

// How an updated state is stored: into the caches, for the next row, or past them.
enum class StatesGo : uint8_t { home, past_caches };
template <StatesGo Go, class L>
[[gnu::always_inline]] inline void store_state(float* p, L state, int32_t count) {
  if constexpr (Go == StatesGo::past_caches) {
    store_past_caches(p, state);
  } else {
    store_some(p, state, count);
  }
}

// A row of states, as they are walked through; `stride` floats on is the next one.
template <class Float>
struct StateWalk {
  Float* here;
  int32_t stride;

  void go_on() { here += stride; }
  operator StateWalk<const Float>() const { return {here, stride}; }
};

// Prefetches what is kAheadFloats after N vectors.
template <class L, int32_t N>
[[gnu::always_inline]] inline void fetch_ahead(const float* p) {
  constexpr int32_t kLineFloats = int32_t(cpu::kLineBytes / sizeof(float));
  for (int32_t i = 0; i < N * L::kCount; i += kLineFloats) {
    __builtin_prefetch(p + cpu::kAheadFloats + i);
  }
}

template <class L>
void add_row(const cpu::AddArgs& args) {
  const L scale = L(args.scale);
  for_lanes<L>(args.count, [&](int32_t i, auto count) {
    const L a = load_some<L>(args.a + i, count);
    const L b = load_some<L>(args.b + i, count);
    store_some(args.out + i, fma(b, scale, a), count);
  });
}

template <class L>
void scale_row(const cpu::ScaleArgs& args) {
  const L factor = L(args.factor);
  for_lanes<L>(args.count, [&](int32_t i, auto count) {
    L out = load_some<L>(args.x + i, count) * factor;
    if (args.of_columns != nullptr) out = out * load_some<L>(args.of_columns + i, count);
    store_some(args.out + i, out, count);
  });
}

struct Silu {
  template <class L>
  [[gnu::always_inline]] static inline L apply(L x) {
    return elementary::silu(x);
  }
};
struct GeluErf {
  template <class L>
  [[gnu::always_inline]] static inline L apply(L x) {
    return elementary::gelu_erf(x);
  }
};
struct GeluTanh {
  template <class L>
  [[gnu::always_inline]] static inline L apply(L x) {
    return elementary::gelu_tanh(x);
  }
};
struct Relu {
  template <class L>
  [[gnu::always_inline]] static inline L apply(L x) {
    return larger(x, L(0.0f));
  }
};
struct Sigmoid {
  template <class L>
  [[gnu::always_inline]] static inline L apply(L x) {
    return elementary::sigmoid(x);
  }
};
struct Tanh {
  template <class L>
  [[gnu::always_inline]] static inline L apply(L x) {
    return elementary::tanh(x);
  }
};
struct Softplus {
  template <class L>
  [[gnu::always_inline]] static inline L apply(L x) {
    return elementary::softplus(x);
  }
};

struct Identity {
  template <class L>
  [[gnu::always_inline]] static inline L apply(L x) {
    return x;
  }
};

struct ClampedSwiglu {
  template <class L>
  [[gnu::always_inline]] static inline L apply(L x) {
    const L g = select(L(7.0f) < x, L(7.0f), x);
    return g * elementary::sigmoid(L(1.702f) * g);
  }
};

// The side that the activation multiplies.
template <class Function, class L>
[[gnu::always_inline]] inline L gated(Function, L x) {
  return x;
}
template <class L>
[[gnu::always_inline]] inline L gated(ClampedSwiglu, L x) {
  return elementary::clamp(x, -7.0f, 7.0f) + L(1.0f);
}

template <class L, class Function>
void activate_row(const cpu::ActivateArgs& args) {
  for_lanes<L>(args.count, [&](int32_t i, auto count) {
    store_some(args.out + i, Function::apply(load_some<L>(args.x + i, count)), count);
  });
}

template <class L, class Function>
void gate_row(const cpu::GateArgs& args) {
  for_lanes<L>(args.count, [&](int32_t i, auto count) {
    const L gate = Function::apply(load_some<L>(args.gate + i, count));
    store_some(args.out + i, gate * gated(Function{}, load_some<L>(args.x + i, count)), count);
  });
}

template <class L>
void expert_sum_row(const cpu::ExpertSumArgs& args) {
  for_lanes<L>(args.width, [&](int32_t i, auto count) {
    L total = L(0.0f);
    for (int32_t rank = 0; rank < args.rank_count; ++rank) {
      const L x = load_some<L>(args.x + size_t(rank) * size_t(args.width) + i, count);
      total = fma(L(args.weights[rank]), x, total);
    }
    store_some(args.out + i, total, count);
  });
}

}  // namespace
}  // namespace cairn
