// The list of what each op touches (device/op_fields.h) is whole: every field of every op that
// names rows, numbers, weights, a plane or a state is visited, once. Fields are counted and read by
// the language's own means, so that an op that gets one more cannot be forgotten here.
#include "device/op_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <variant>
#include <vector>

namespace cairn::op_fields_test {
namespace {

template <class Type>
constexpr bool kIsSpan = false;
template <class Number>
constexpr bool kIsSpan<std::span<Number>> = true;

// Becomes any field; but no view of numbers, of which a Constant could be made as well.
struct AnyField {
  template <class Field>
  requires(!kIsSpan<Field>) operator Field() const;
};

template <class Op, class... Fields>
constexpr int field_count() {
  if constexpr (requires { Op{Fields{}..., AnyField{}}; }) {
    return field_count<Op, Fields..., AnyField>();
  } else {
    return int(sizeof...(Fields));
  }
}

template <class Op>
auto fields_of(Op& all) {
  constexpr int kCount = field_count<Op>();
  static_assert(kCount >= 1 && kCount <= 16, "an op has more fields than can be looked at");
  if constexpr (kCount == 1) {
    auto& [a] = all;
    return std::tie(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = all;
    return std::tie(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = all;
    return std::tie(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = all;
    return std::tie(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = all;
    return std::tie(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = all;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = all;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = all;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (kCount == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = all;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (kCount == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (kCount == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (kCount == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (kCount == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (kCount == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (kCount == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (kCount == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
}

void note(std::vector<const void*>& seen, const Rows& rows) {
  seen.push_back(&rows);
}
void note(std::vector<const void*>& seen, const QuantizedRows& rows) {
  seen.push_back(&rows);
}
template <class Number>
void note(std::vector<const void*>& seen, const ConstantOf<Number>& numbers) {
  seen.push_back(&numbers);
}
// Weights are visited, not the pointer to them.
void note(std::vector<const void*>& seen, const Weight* const& weight) {
  seen.push_back(weight);
}
// What changes how an op computes, and planes and states, which are numbers.
template <class Setting>
void note(std::vector<const void*>&, const Setting&) {
  static_assert(!std::is_pointer_v<Setting>, "a pointer says neither its size nor whose it is");
}

struct Recorder {
  std::vector<const void*> seen = {};
  int planes = 0, states = 0;

  void read(const auto& rows) { seen.push_back(&rows); }
  void write(const auto& rows) { seen.push_back(&rows); }
  void change(const auto& rows) { seen.push_back(&rows); }
  void read_constant(const auto& numbers) { seen.push_back(&numbers); }
  void read_weights(const Weight& weight) { seen.push_back(&weight); }
  void read_plane(int32_t) { ++planes; }
  void write_plane(int32_t) { ++planes; }
  void write_state(int32_t) { ++states; }
};

template <class Op>
void expect_whole() {
  const Weight weight;
  Op o{};
  if constexpr (requires { o.weight = &weight; }) o.weight = &weight;
  if constexpr (requires { o.table = &weight; }) o.table = &weight;
  std::vector<const void*> expected;
  std::apply([&](auto&... fields) { (note(expected, fields), ...); }, fields_of(o));
  Recorder recorder;
  visit_fields(o, recorder);
  std::sort(expected.begin(), expected.end());
  std::sort(recorder.seen.begin(), recorder.seen.end());
  EXPECT_EQ(recorder.seen, expected) << typeid(Op).name();
  EXPECT_EQ(recorder.planes, int(requires { o.plane; })) << typeid(Op).name();
  EXPECT_EQ(recorder.states, int(requires { o.state; })) << typeid(Op).name();
}

template <class... Ops>
int expect_all_whole(const std::variant<Ops...>*) {
  (expect_whole<Ops>(), ...);
  return int(sizeof...(Ops));
}

TEST(OpFields, AreAllVisited) {
  const Op* const all = nullptr;
  EXPECT_EQ(expect_all_whole(all), int(std::variant_size_v<Op>));
}

TEST(OpFields, AreCounted) {
  struct Three {
    Rows a;
    Constant b;
    int32_t c = 0;
  };
  EXPECT_EQ(field_count<Three>(), 3);
  EXPECT_EQ(field_count<op::MatMul>(), 5);
}

TEST(Constant, KnowsItsSize) {
  const std::vector<float> numbers = {1, 2, 3};
  const Constant constant = numbers;
  EXPECT_TRUE(constant.exists());
  EXPECT_EQ(constant.count(), 3);
  EXPECT_EQ(constant[2], 3.0f);
  EXPECT_EQ(constant.from(1), numbers.data() + 1);
  EXPECT_FALSE(Constant().exists());
  EXPECT_FALSE(Constant(std::vector<float>()).exists());
  EXPECT_EQ(Constant().from(5), nullptr);
}

}  // namespace
}  // namespace cairn::op_fields_test
