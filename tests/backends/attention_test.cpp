// Storing keys and values, and attention over them: the vector kernels against the reference bit
// for bit, the reference against plain float64 softmax, and one step of many rows against many of
// one.
#include <utility>

#include "backends/cpu/ops.h"
#include "tests/backends/same_bits.h"
#include "tests/sanitized.h"

namespace cairn::test::attention_test {
namespace {

// A value picked at random.
template <class T>
T pick(World& world, std::initializer_list<T> values) {
  return values.begin()[world.random()() % values.size()];
}

struct Shape {
  int32_t kv_heads, group, key_dim, value_dim;
  KvType key_type = KvType::f16, value_type = KvType::f16;
  int32_t window = 0;
  float softcap = 0;
  bool sinks = false;
  bool slopes = false;
  bool is_causal = true;
  bool in_keys = false;  // Values are the beginnings of keys.
  float spread = 1.0f;
};

op::Attend make_attend(World& world, const Shape& shape) {
  const int32_t heads = shape.kv_heads * shape.group;
  const int32_t plane = shape.in_keys ? world.latent_plane(shape.kv_heads, shape.key_dim,
                                                           shape.value_dim, shape.key_type)
                                      : world.plane(shape.kv_heads, shape.key_dim, shape.value_dim,
                                                    shape.key_type, shape.value_type, shape.spread);
  const Rows q = world.rows(heads * shape.key_dim, RowSet::tokens, shape.spread);
  const Rows out = world.rows(heads * shape.value_dim);
  return {.q = q,
          .out = out,
          .plane = plane,
          .head_count = heads,
          .scale = 1.0f / std::sqrt(float(shape.key_dim)),
          .softcap = shape.softcap,
          .window = shape.window,
          .is_causal = shape.is_causal,
          .sinks = shape.sinks ? world.parameters(size_t(heads)) : Constant{},
          .slopes = shape.slopes ? world.parameters(size_t(heads), 0.2f) : Constant{}};
}

Shape random_shape(World& world) {
  const auto kTypes = {KvType::f32, KvType::f16, KvType::bf16, KvType::q8_0, KvType::q4_0};
  return {.kv_heads = pick(world, {1, 2, 3}),
          .group = pick(world, {1, 2, 3, 4, 5, 7, 8, 9, 16}),
          .key_dim = pick(world, {1, 5, 16, 24, 40, 64}),
          .value_dim = pick(world, {1, 7, 8, 16, 33, 48, 64, 80, 128}),
          .key_type = pick(world, kTypes),
          .value_type = pick(world, kTypes),
          .window = pick(world, {0, 0, 1, 7, 32, 100, 256, 300}),
          .softcap = pick(world, {0.0f, 0.0f, 5.0f}),
          .sinks = world.random()() % 2 == 0,
          .slopes = world.random()() % 4 == 0,
          .spread = pick(world, {1.0f, 4.0f})};
}

std::vector<SliceSpec> random_slices(uint32_t seed) {
  std::mt19937 random(seed);
  constexpr int32_t kRows[] = {1, 1, 2, 5, 17, 21};
  constexpr int32_t kPositions[] = {0, 1, 31, 32, 100, 255, 256, 250, 511, 530};
  std::vector<SliceSpec> specs;
  for (uint32_t i = 0; i < 1 + seed % 3; ++i) {
    specs.push_back(
        {.row_count = kRows[random() % 6], .first_position = kPositions[random() % 10]});
  }
  return specs;
}

TEST(Attend, EveryLevelHasTheReferencesBits) {
  for (uint32_t seed = 0; seed < test::cases(60); ++seed) {
    expect_same_bits(seed, random_slices(seed), [](World& world) -> Op {
      const Shape shape = random_shape(world);
      return make_attend(world, shape);
    });
    if (HasFatalFailure()) return;
  }
}

// So many that a task takes as many queries as one call can: several of what is added up side by
// side, and a last task with few.
TEST(Attend, ManyRowsOfManyHeads) {
  const std::vector<SliceSpec> specs = {{.row_count = 130, .first_position = 200}};
  const std::vector<Shape> shapes = {
      {.kv_heads = 8, .group = 4, .key_dim = 8, .value_dim = 33},
      {.kv_heads = 8, .group = 3, .key_dim = 9, .value_dim = 72, .window = 45, .slopes = true},
      {.kv_heads = 8, .group = 1, .key_dim = 8, .value_dim = 64, .window = 300, .sinks = true},
      {.kv_heads = 8, .group = 4, .key_dim = 40, .value_dim = 36, .in_keys = true}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    expect_same_bits(uint32_t(i), specs,
                     [&](World& world) -> Op { return make_attend(world, shapes[i]); });
  }
}

TEST(Attend, LongPromptsAndLargeGroups) {
  expect_same_bits(1, {{.row_count = 70, .first_position = 480}}, [](World& world) -> Op {
    return make_attend(world, {.kv_heads = 1, .group = 4, .key_dim = 16, .value_dim = 64});
  });
  expect_same_bits(2, {{.row_count = 3, .first_position = 300}}, [](World& world) -> Op {
    return make_attend(world, {.kv_heads = 1, .group = 71, .key_dim = 16, .value_dim = 16});
  });
  expect_same_bits(3, {{.row_count = 40, .first_position = 600}}, [](World& world) -> Op {
    return make_attend(world,
                       {.kv_heads = 2, .group = 2, .key_dim = 16, .value_dim = 32, .window = 9});
  });
}

TEST(Attend, EveryHeadSize) {
  constexpr std::pair<int32_t, int32_t> kDims[] = {{32, 32},  {64, 64},   {72, 72},  {80, 80},
                                                   {96, 96},  {112, 112}, {128, 96}, {192, 128},
                                                   {40, 256}, {256, 256}, {576, 512}};
  const KvType kTypes[] = {KvType::f16, KvType::q8_0, KvType::f32, KvType::q4_0, KvType::bf16};
  uint32_t seed = 0;
  for (const std::pair<int32_t, int32_t>& dims : kDims) {
    ++seed;
    const KvType type = kTypes[seed % 5];
    const int32_t row_count = seed % 2 == 0 ? 1 : 6;
    expect_same_bits(seed, {{.row_count = row_count, .first_position = 290}}, [&](World& world) {
      return Op(make_attend(world, {.kv_heads = 1,
                                    .group = 6,
                                    .key_dim = dims.first,
                                    .value_dim = dims.second,
                                    .key_type = type,
                                    .value_type = type}));
    });
    if (HasFatalFailure()) return;
  }
}

TEST(Attend, ValuesThatAreTheBeginningsOfKeys) {
  constexpr std::pair<int32_t, int32_t> kDims[] = {{576, 512}, {48, 33}, {40, 40}, {80, 64}};
  const KvType kTypes[] = {KvType::f16, KvType::q8_0, KvType::f32, KvType::q4_0, KvType::bf16};
  uint32_t seed = 0;
  for (const std::pair<int32_t, int32_t>& dims : kDims) {
    for (const KvType type : kTypes) {
      ++seed;
      const int32_t row_count = seed % 2 == 0 ? 1 : 6;
      expect_same_bits(seed, {{.row_count = row_count, .first_position = 290}}, [&](World& world) {
        return Op(make_attend(world, {.kv_heads = 1,
                                      .group = seed % 3 == 0 ? 3 : 16,
                                      .key_dim = dims.first,
                                      .value_dim = dims.second,
                                      .key_type = type,
                                      .value_type = type,
                                      .in_keys = true}));
      });
      if (HasFatalFailure()) return;
    }
  }
}

// What is read from keys is what a plane of its own would have.
TEST(Attend, ValuesInKeysEqualValuesBesideThem) {
  const std::vector<SliceSpec> specs = {{.row_count = 3, .first_position = 0}};
  constexpr int32_t kKeyDim = 40, kValueDim = 32, kHeads = 4;
  World world(8, specs);
  const int32_t apart = world.plane(1, kKeyDim, kValueDim, KvType::q8_0, KvType::q8_0);
  const int32_t joint = world.latent_plane(1, kKeyDim, kValueDim, KvType::q8_0);
  const Rows q = world.rows(kHeads * kKeyDim), k = world.rows(kKeyDim);
  const Rows expected = world.rows(kHeads * kValueDim), found = world.rows(kHeads * kValueDim);
  Rows v = k;
  v.width = kValueDim;
  const Step step = world.step();
  for (const Op& op :
       {Op(op::StoreKv{k, v, apart}), Op(op::StoreKv{k, {}, joint}),
        Op(op::Attend{.q = q, .out = expected, .plane = apart, .head_count = kHeads}),
        Op(op::Attend{.q = q, .out = found, .plane = joint, .head_count = kHeads})}) {
    run_op(reference::kernel_for(op), op, step);
  }
  for (int32_t row = 0; row < 3; ++row) {
    EXPECT_EQ(std::memcmp(step.row(expected, row), step.row(found, row),
                          sizeof(float) * size_t(kHeads * kValueDim)),
              0);
  }
}

// How many tasks the op is cut into.
int64_t task_count(const host::HostKernel& kernel, const op::Attend& attend, const Step& step) {
  KernelRoom memory(kernel, attend);
  return kernel.joint->cut(attend, step, memory.room().notes);
}

TEST(Attend, FewHeadsAtDepthAreCutIntoBlocks) {
  for (const int32_t window : {0, 1300}) {
    for (const int32_t row_count : {1, 5}) {
      const std::vector<SliceSpec> specs = {{.row_count = row_count, .first_position = 2557}};
      const auto make = [&](World& world) -> op::Attend {
        return make_attend(world, {.kv_heads = 1,
                                   .group = 4,
                                   .key_dim = 48,
                                   .value_dim = 80,
                                   .window = window,
                                   .sinks = window != 0});
      };
      expect_same_bits(uint32_t(row_count), specs, [&](World& world) { return Op(make(world)); });
      if (HasFatalFailure()) return;
      World world(1, specs);
      const op::Attend attend = make(world);
      for (const IsaLevel level : vector_levels()) {
        const host::HostKernel kernel = cpu::choose_ops_kernel(attend, level);
        EXPECT_GT(task_count(kernel, attend, world.step()), 2);
      }
    }
  }
}

// More rows than there is room for parts of: the first part then takes what has no room.
TEST(Attend, ManyHeadsAtDepth) {
  constexpr int32_t kRows = test::kIsSanitized ? 1 : 4;
  const std::vector<SliceSpec> specs(2, {.row_count = kRows, .first_position = 1400});
  expect_same_bits(3, specs, [](World& world) -> Op {
    return make_attend(
        world,
        {.kv_heads = 4, .group = 16, .key_dim = 1, .value_dim = 500, .value_type = KvType::q4_0});
  });
}

TEST(Attend, SequencesThatBeginWithTheSamePages) {
  constexpr int32_t kFirst[] = {640, 512, 900, 1290};
  constexpr int32_t kPages[] = {16, 0, 20, 15, 8, 7, 16, 3};
  for (uint32_t seed = 0; seed < 12; ++seed) {
    std::vector<SliceSpec> specs = {
        {.row_count = 1 + int32_t(seed % 2), .first_position = kFirst[seed / 3]}};
    for (uint32_t i = 0; i < 2 + seed % 4; ++i) {
      specs.push_back({.row_count = i == 1 ? 3 : 1,
                       .first_position = 640 + 17 * int32_t(seed * i % 41),
                       .pages_of_first = kPages[(seed + i) % 8]});
    }
    specs.push_back({.row_count = 2, .first_position = 700});
    expect_same_bits(seed, specs, [](World& world) -> Op {
      Shape shape = random_shape(world);
      shape.kv_heads = 2;
      if (world.random()() % 4 != 0) shape.window = 0;
      return make_attend(world, shape);
    });
    if (HasFatalFailure()) return;
  }
}

TEST(Attend, SharedPagesAreReadOnce) {
  const auto make = [](World& world) {
    return make_attend(world, {.kv_heads = 2, .group = 4, .key_dim = 64, .value_dim = 64});
  };
  for (const int32_t shared : {0, 16}) {
    World world(1, {{.first_position = 520},
                    {.first_position = 600, .pages_of_first = shared},
                    {.first_position = 700, .pages_of_first = shared}});
    const op::Attend attend = make(world);
    for (const IsaLevel level : vector_levels()) {
      // For each kv head: the two runs in common, and what each of the three has besides.
      EXPECT_EQ(shared == 0 ? 3 * 2 : (1 + 3) * 2,
                task_count(cpu::choose_ops_kernel(attend, level), attend, world.step()));
    }
  }
}

template <IsaLevel Isa>
host::HostKernel kernel_at(const Op& op) {
  return cpu::choose_ops_kernel(op, Isa);
}

// The last task of a head merges what the others leave, whichever thread has run them.
TEST(Attend, ThreadsTogether) {
  if (!runs_on(IsaLevel::avx2, detect_cpu_features())) GTEST_SKIP() << "no vector kernels";
  const std::vector<SliceSpec> specs = {{.first_position = 2000},
                                        {.first_position = 1900, .pages_of_first = 40},
                                        {.first_position = 1950}};
  const auto make = [](World& world) {
    return make_attend(world, {.kv_heads = 2, .group = 3, .key_dim = 40, .value_dim = 56});
  };
  World expected(9, specs), found(9, specs);
  const op::Attend attend = make(expected), same = make(found);
  run_op(reference::kernel_for(attend), attend, expected.step());
  ThreadPool threads(4);
  host::HostBackend backend(&threads, &kernel_at<IsaLevel::avx2>, &reference::kernel_for);
  const Plan plan{.ops = {same, same}, .stages = {{0, 1}, {1, 1}}};
  ASSERT_TRUE(backend.prepare(plan));
  const Step step = found.step();
  for (int32_t i = 0; i < 20; ++i) {
    for (int32_t row = 0; row < 3; ++row) {
      std::fill_n(step.row(same.out, row), same.out.width, std::nanf(""));
    }
    backend.execute(plan, step);
    ASSERT_TRUE(same_bits(expected.memory(), found.memory()));
  }
}

TEST(Attend, NotANumberNeitherHangsNorSpreads) {
  expect_same_bits(4, {{.row_count = 5, .first_position = 280}}, [](World& world) -> Op {
    const op::Attend attend =
        make_attend(world, {.kv_heads = 1, .group = 2, .key_dim = 16, .value_dim = 24});
    // Row 3, head 0: NaN; row 1, head 1: infinity.
    const Step step = world.step();
    step.row(attend.q, 3)[2] = std::nanf("");
    step.row(attend.q, 1)[16 + 5] = HUGE_VALF;
    return attend;
  });
  World world(4, {{.row_count = 5, .first_position = 280}});
  const op::Attend attend =
      make_attend(world, {.kv_heads = 1, .group = 2, .key_dim = 16, .value_dim = 24});
  const Step step = world.step();
  step.row(attend.q, 3)[2] = std::nanf("");
  run_op(reference::kernel_for(attend), attend, step);
  for (int32_t row = 0; row < 5; ++row) {
    for (int32_t i = 0; i < 48; ++i) {
      EXPECT_EQ(row == 3 && i < 24, std::isnan(step.row(attend.out, row)[i])) << row << " " << i;
    }
  }
}

double load(const std::byte* values, KvType type, size_t index) {
  if (type == KvType::f32) return double(reinterpret_cast<const float*>(values)[index]);
  if (type == KvType::f16) return double(to_float(reinterpret_cast<const Half*>(values)[index]));
  return double(to_float(reinterpret_cast<const BFloat16*>(values)[index]));
}

// The number at a dim of the token in a slot, of one head in a page: keys [dim][slot], values
// [slot][dim].
double number(const std::byte* head, KvType type, size_t dims, size_t d, size_t slot, bool keys) {
  if (!host::has_scales(type)) return load(head, type, keys ? d * 32 + slot : slot * dims + d);
  const size_t bytes = type == KvType::q8_0 ? dims : (dims + 1) / 2;
  const size_t blocks = (dims + 31) / 32;
  const size_t at = type == KvType::q8_0 ? d : d / 2;
  const auto code = uint8_t(head[keys ? at * 32 + slot : slot * bytes + at]);
  const double scale =
      load(head + bytes * 32, KvType::f16, keys ? d / 32 * 32 + slot : slot * blocks + d / 32);
  if (type == KvType::q8_0) return double(int8_t(code)) * scale;
  return (double(d % 2 == 0 ? code & 15 : code >> 4) - 8) * scale;
}

// Softmax attention of one row and head, as the papers write it.
std::vector<double> plain_attention(const op::Attend& op, const Step& step, int32_t row,
                                    int32_t head) {
  const KvPlane& plane = step.kv_planes[size_t(op.plane)];
  const PageId* pages = step.slices[size_t(step.slice_of_row[size_t(row)])].pages[0];
  const size_t kv_head = size_t(head / (op.head_count / plane.kv_head_count));
  const size_t key_dim = size_t(plane.key_dim), value_dim = size_t(plane.value_dim);
  const size_t keys_bytes = host::kv_head_bytes(plane.key_type, plane.key_dim);
  const size_t values_bytes = host::kv_head_bytes(plane.value_type, plane.value_dim);
  const float* q = step.row(op.q, row) + size_t(head) * key_dim;
  const int32_t own = step.positions[size_t(row)];
  double sum = op.sinks.exists() ? std::exp(double(op.sinks[head])) : 0;
  std::vector<double> out(value_dim, 0.0);
  const Slice& slice = step.slices[size_t(step.slice_of_row[size_t(row)])];
  const int32_t end = op.is_causal ? own + 1 : slice.first_position + slice.row_count;
  for (int32_t position = 0; position < end; ++position) {
    const int32_t distance = std::abs(own - position);
    if (op.window != 0 && distance > (op.is_causal ? op.window - 1 : op.window / 2)) continue;
    const size_t page = size_t(index_of(pages[position / kPageTokens]));
    const size_t slot = size_t(position % kPageTokens);
    double score = 0;
    for (size_t d = 0; d < key_dim; ++d) {
      score +=
          double(q[d]) * number(plane.keys + page * plane.keys_page_bytes + kv_head * keys_bytes,
                                plane.key_type, key_dim, d, slot, true);
    }
    score *= double(op.scale);
    if (op.softcap != 0) score = double(op.softcap) * std::tanh(score / double(op.softcap));
    if (op.slopes.exists()) score -= double(op.slopes[head]) * distance;
    sum += std::exp(score);
    for (size_t d = 0; d < value_dim; ++d) {
      out[d] += std::exp(score) *
                number(plane.values + page * plane.values_page_bytes + kv_head * values_bytes,
                       plane.value_type, value_dim, d, slot, false);
    }
  }
  for (double& value : out) value /= sum;
  return out;
}

double worst_error(World& world, const op::Attend& attend, const Step& step) {
  double worst = 0;
  for (int32_t row = 0; row < world.row_count(); ++row) {
    for (int32_t head = 0; head < attend.head_count; ++head) {
      const std::vector<double> expected = plain_attention(attend, step, row, head);
      const float* found = step.row(attend.out, row) + size_t(head) * expected.size();
      for (size_t d = 0; d < expected.size(); ++d) {
        worst = std::max(worst, relative_error(expected[d], double(found[d])));
      }
    }
  }
  return worst;
}

TEST(Attend, ReferenceIsSoftmaxAttention) {
  for (uint32_t seed = 100; seed < 112; ++seed) {
    World world(seed, random_slices(seed));
    const op::Attend attend = make_attend(world, random_shape(world));
    const Step step = world.step();
    run_op(reference::kernel_for(attend), attend, step);
    // Scores reach about 100, so their last place is 1e-5 of a weight.
    EXPECT_LT(worst_error(world, attend, step), 1e-4) << "seed " << seed;
  }
}

// Whole texts, of which each row sees what stands behind it as well.
std::vector<SliceSpec> random_texts(uint32_t seed) {
  std::mt19937 random(seed);
  constexpr int32_t kRows[] = {1, 2, 16, 17, 33, 100, 256, 257, 300, 530};
  std::vector<SliceSpec> specs;
  for (uint32_t i = 0; i < 1 + seed % 4; ++i) specs.push_back({.row_count = kRows[random() % 10]});
  return specs;
}

op::Attend make_two_sided(World& world, bool is_small) {
  Shape shape = random_shape(world);
  shape.is_causal = false;
  if (is_small) {
    shape.kv_heads = shape.group = 2;
    shape.key_dim = shape.value_dim = 5;
  }
  return make_attend(world, shape);
}

TEST(Attend, WithoutAMaskEveryLevelHasTheReferencesBits) {
  for (uint32_t seed = 0; seed < 9; ++seed) {
    expect_same_bits(seed, random_texts(seed),
                     [&](World& world) -> Op { return make_two_sided(world, seed % 3 != 0); });
    if (HasFatalFailure()) return;
  }
}

TEST(Attend, WithoutAMaskReferenceIsSoftmaxAttention) {
  for (uint32_t seed = 200; seed < 208; ++seed) {
    World world(seed, random_texts(seed));
    const op::Attend attend = make_two_sided(world, true);
    const Step step = world.step();
    run_op(reference::kernel_for(attend), attend, step);
    EXPECT_LT(worst_error(world, attend, step), 1e-4) << "seed " << seed;
  }
}

// What stands beside a text in a step changes none of its bits.
TEST(Attend, WithoutAMaskTextsTogetherEqualTextsAlone) {
  const Shape shape{.kv_heads = 2, .group = 2, .key_dim = 24, .value_dim = 40, .is_causal = false};
  World together(5, {{.row_count = 300}, {.row_count = 7}});
  const op::Attend attend = make_attend(together, shape);
  const Step all = together.step();
  run_op(reference::kernel_for(attend), attend, all);
  World alone(5, {{.row_count = 300}, {.row_count = 7}});
  const op::Attend same = make_attend(alone, shape);
  Step one = alone.step();
  Slice text = one.slices[1];
  text.first_row = 0;
  const std::vector<int32_t> slice_of_row(7, 0);
  one.slices = {&text, 1};
  one.slice_of_row = slice_of_row;
  one.tokens = one.tokens.subspan(300);
  one.positions = one.positions.subspan(300);
  op::Attend moved = same;
  moved.q = moved_to(same.q, 300);
  moved.out = moved_to(same.out, 300);
  run_op(reference::kernel_for(moved), moved, one);
  for (int32_t row = 0; row < 7; ++row) {
    EXPECT_EQ(std::memcmp(all.row(attend.out, 300 + row), one.row(moved.out, row),
                          sizeof(float) * size_t(attend.out.width)),
              0);
  }
}

TEST(Attend, RowsTogetherEqualRowsAlone) {
  const std::vector<SliceSpec> specs = {{.row_count = 37, .first_position = 230}};
  std::vector<host::HostKernel> kernels;
  World shapes(7, specs);
  const Op any = make_attend(shapes, {.kv_heads = 2, .group = 3, .key_dim = 24, .value_dim = 40});
  kernels.push_back(reference::kernel_for(any));
  for (const IsaLevel level : vector_levels()) {
    kernels.push_back(cpu::choose_ops_kernel(any, level));
  }
  for (const host::HostKernel& kernel : kernels) {
    World together(7, specs), alone(7, specs);
    const Shape shape{.kv_heads = 2, .group = 3, .key_dim = 24, .value_dim = 40, .window = 250};
    const op::Attend attend = make_attend(together, shape);
    run_op(kernel, attend, together.step());
    const op::Attend same = make_attend(alone, shape);
    const Step all = alone.step();
    for (int32_t row = 0; row < 37; ++row) {
      op::Attend moved = same;
      moved.q = moved_to(same.q, row);
      moved.out = moved_to(same.out, row);
      const OneRow one(all, row);
      run_op(kernel, moved, one.step());
    }
    EXPECT_TRUE(same_bits(together.memory(), alone.memory()));
  }
}

TEST(StoreKv, EveryLevelHasTheReferencesBits) {
  for (uint32_t seed = 0; seed < test::cases(30); ++seed) {
    expect_same_bits(seed, random_slices(seed), [](World& world) -> Op {
      const Shape shape = random_shape(world);
      const int32_t plane = world.plane(shape.kv_heads, shape.key_dim, shape.value_dim,
                                        shape.key_type, shape.value_type);
      // Large enough a spread for f16's infinities and subnormals to occur.
      const Rows k = world.rows(shape.kv_heads * shape.key_dim, RowSet::tokens, 30000.0f);
      const Rows v = world.rows(shape.kv_heads * shape.value_dim, RowSet::tokens, 1e-5f);
      world.step().row(k, 0)[0] = std::nanf("");
      return op::StoreKv{.k = k, .v = v, .plane = plane};
    });
    if (HasFatalFailure()) return;
  }
}

// What is read back differs from what was stored by half a step, and a little for the scale's own
// rounding; a block of zeros is zeros, and a block with a NaN or an infinity is all NaN.
TEST(StoreKv, CodesAreTheNearestOfTheirBlock) {
  constexpr int32_t kDim = 75;  // Two blocks and a part of one.
  for (const KvType type : {KvType::q8_0, KvType::q4_0}) {
    World world(5, {{.row_count = 40, .first_position = 20}});
    const int32_t plane_index = world.plane(2, kDim, kDim, type, type);
    const Rows k = world.rows(2 * kDim), v = world.rows(2 * kDim, RowSet::tokens, 1e-3f);
    const Step step = world.step();
    std::fill_n(step.row(k, 3), 32, 0.0f);
    step.row(k, 4)[33] = std::nanf("");
    step.row(k, 5)[74] = HUGE_VALF;
    step.row(k, 6)[0] = 1e30f;
    const op::StoreKv op{k, v, plane_index};
    run_op(reference::kernel_for(op), op, step);
    const KvPlane& plane = step.kv_planes[size_t(plane_index)];
    const size_t head_bytes = host::kv_head_bytes(type, kDim);
    for (int32_t row = 0; row < 40; ++row) {
      const size_t page = size_t(index_of(step.slices[0].pages[0][(20 + row) / 32]));
      const size_t slot = size_t((20 + row) % 32);
      for (int32_t i = 0; i < 2 * 2 * kDim; ++i) {
        const bool is_key = i < 2 * kDim;
        const int32_t head = i / kDim % 2, d = i % kDim, first = d / 32 * 32;
        const float* x = step.row(is_key ? k : v, row) + head * kDim;
        const std::byte* base = is_key ? plane.keys + page * plane.keys_page_bytes
                                       : plane.values + page * plane.values_page_bytes;
        const double found =
            number(base + size_t(head) * head_bytes, type, kDim, size_t(d), slot, is_key);
        double largest = 0;
        for (int32_t j = first; j < std::min(first + 32, kDim); ++j) {
          const double magnitude = std::abs(double(x[j]));
          largest = std::isnan(magnitude) ? HUGE_VAL : std::max(largest, magnitude);
        }
        if (largest > 1e8) {
          EXPECT_TRUE(std::isnan(found));
          continue;
        }
        // The far end of q4_0 has one step less than the near one.
        const double step_size = type == KvType::q8_0 ? largest / 127 * 0.51 : largest / 8 * 1.01;
        EXPECT_LE(std::abs(found - double(x[d])), step_size) << row << " " << i;
      }
    }
  }
}

TEST(StoreKv, WritesTheRowsPositionAndNothingElse) {
  World world(3, {{.row_count = 2, .first_position = 63}});
  const int32_t plane_index = world.plane(1, 3, 2, KvType::f32, KvType::f32);
  const Rows k = world.rows(3), v = world.rows(2);
  const Step step = world.step();
  const KvPlane& plane = step.kv_planes[size_t(plane_index)];
  const std::vector<std::byte> before(world.memory().begin(), world.memory().end());
  run_op(reference::kernel_for(op::StoreKv{k, v, plane_index}), op::StoreKv{k, v, plane_index},
         step);
  size_t changed = 0;
  for (size_t i = 0; i < before.size(); i += 4) {
    changed += std::memcmp(before.data() + i, world.memory().data() + i, 4) != 0;
  }
  EXPECT_EQ(2u * (3 + 2), changed);
  for (int32_t row = 0; row < 2; ++row) {
    const int32_t position = 63 + row;
    const auto page = size_t(index_of(step.slices[0].pages[0][position / 32]));
    const auto* keys = reinterpret_cast<const float*>(plane.keys + page * plane.keys_page_bytes);
    const auto* values =
        reinterpret_cast<const float*>(plane.values + page * plane.values_page_bytes);
    for (int32_t d = 0; d < 3; ++d) EXPECT_EQ(step.row(k, row)[d], keys[d * 32 + position % 32]);
    for (int32_t d = 0; d < 2; ++d) EXPECT_EQ(step.row(v, row)[d], values[position % 32 * 2 + d]);
  }
}

}  // namespace
}  // namespace cairn::test::attention_test
