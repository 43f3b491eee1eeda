// What reads the past: attention over pages, and recurrences over states. Decoding walks as many
// layers as it takes for the past to come from memory and not from a cache.
#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "bench/kernels.h"
#include "tests/backends/step_builder.h"

namespace cairn::bench {

namespace {

using test::World;

// Ops one after another on a world, each with a plane or a state of its own.
class OnWorld : public Work {
 public:
  OnWorld(Context& context, int32_t row_count, int32_t depth, size_t memory_bytes)
      : world(1, {{.row_count = row_count, .first_position = depth}}, memory_bytes),
        backend_(context.make_backend()),
        shape_{.rows = row_count, .depth = depth} {}

  void prepare(std::vector<Op> ops) {
    step_ = world.step();
    if (!planes_.empty()) step_.kv_planes = planes_;
    plan_.ops = std::move(ops);
    for (size_t op = 0; op < plan_.ops.size(); ++op) plan_.stages.push_back({int32_t(op), 1});
    plan_.row_count_max = shape_.rows;
    CHECK(backend_->prepare(plan_));
  }

  // Copies of a plane of the world, in memory of their own.
  void copy_plane(int32_t plane, int32_t count) {
    const KvPlane first = world.step().kv_planes[size_t(plane)];
    const int32_t tokens = shape_.depth + shape_.rows;
    const size_t page_count = size_t((tokens + kPageTokens - 1) / kPageTokens) + 3;
    const size_t keys_bytes = first.keys_page_bytes * page_count;
    const size_t values_bytes = first.values_page_bytes * page_count;
    bytes_.emplace((keys_bytes + values_bytes + 128) * size_t(count));
    for (int32_t copy = 0; copy < count; ++copy) {
      KvPlane next = first;
      next.keys = bytes_->take(keys_bytes);
      next.values = bytes_->take(values_bytes);
      std::memcpy(next.keys, first.keys, keys_bytes);
      std::memcpy(next.values, first.values, values_bytes);
      if (first.values_in_keys) next.values = next.keys;
      planes_.push_back(next);
    }
  }

  void run() override { backend_->execute(plan_, step_); }
  measure::StepCosts costs() const override {
    memory::Layout layout;
    layout.kv_planes.assign(step_.kv_planes.begin(), step_.kv_planes.end());
    layout.state_tensors.assign(step_.state_tensors.begin(), step_.state_tensors.end());
    measure::StepCosts costs = measure::step_costs(plan_, layout, shape_);
    costs.float_ops += more_ops_;
    return costs;
  }
  // Of recurrences.
  void add_ops(double ops) { more_ops_ += ops; }
  Constant decays(size_t count) {
    decays_.assign(count, -1.0f);
    return decays_;
  }

  World world;

 private:
  std::unique_ptr<Backend> backend_;
  measure::StepShape shape_;
  std::optional<Bytes> bytes_;
  std::vector<KvPlane> planes_;
  Plan plan_;
  Step step_;
  double more_ops_ = 0;
  std::vector<float> decays_;
};

struct Heads {
  int32_t dim, per_kv_head;
  KvType type = KvType::f16;
  int32_t kv_heads() const { return 512 / dim; }
};
constexpr std::string_view kKvNames[] = {"f32", "f16", "bf16", "q8_0", "q4_0"};  // By KvType.

std::unique_ptr<Work> make_attention(Context& context, const Heads& heads, int32_t rows,
                                     int32_t depth) {
  const size_t plane_bytes = size_t(depth + rows + 4 * kPageTokens) * 512 * 2 *
                             host::kv_row_bytes(heads.type, 32) / 32 * 9 / 8;
  const size_t row_bytes = size_t(heads.kv_heads() * heads.per_kv_head * heads.dim + 8) * 4;
  auto work = std::make_unique<OnWorld>(
      context, rows, depth, plane_bytes + 2 * row_bytes * size_t(rows + 1) + (size_t(1) << 20));
  const int32_t plane =
      work->world.plane(heads.kv_heads(), heads.dim, heads.dim, heads.type, heads.type);
  const int32_t head_count = heads.kv_heads() * heads.per_kv_head;
  const Rows q = work->world.rows(head_count * heads.dim);
  const Rows out = work->world.rows(head_count * heads.dim);
  const int32_t layers = rows < kManyRows ? int32_t(kFromMemoryBytes / plane_bytes) + 1 : 1;
  work->copy_plane(plane, layers);
  std::vector<Op> ops;
  for (int32_t layer = 0; layer < layers; ++layer) {
    ops.push_back(op::Attend{.q = q,
                             .out = out,
                             .plane = layer,
                             .head_count = head_count,
                             .scale = 1.0f / std::sqrt(float(heads.dim))});
  }
  work->prepare(std::move(ops));
  return work;
}

// The shape of DeepSeek V2 Lite: one row for all heads, whose beginning is the value.
std::unique_ptr<Work> make_latent_attention(Context& context, KvType type, int32_t rows,
                                            int32_t depth) {
  constexpr int32_t kHeads = 16, kKeyDim = 576, kValueDim = 512;
  const size_t plane_bytes =
      size_t(depth + rows + 4 * kPageTokens) * host::kv_head_bytes(type, kKeyDim) / kPageTokens;
  const size_t row_bytes = size_t(kHeads * kKeyDim + 8) * sizeof(float);
  auto work = std::make_unique<OnWorld>(
      context, rows, depth, 2 * (plane_bytes + row_bytes * size_t(rows + 1)) + (size_t(1) << 20));
  const int32_t plane = work->world.latent_plane(1, kKeyDim, kValueDim, type);
  const Rows q = work->world.rows(kHeads * kKeyDim), out = work->world.rows(kHeads * kValueDim);
  const int32_t layers = rows < kManyRows ? int32_t(kFromMemoryBytes / plane_bytes) + 1 : 1;
  work->copy_plane(plane, layers);
  std::vector<Op> ops;
  for (int32_t layer = 0; layer < layers; ++layer) {
    ops.push_back(op::Attend{
        .q = q, .out = out, .plane = layer, .head_count = kHeads, .scale = 1.0f / 24.0f});
  }
  work->prepare(std::move(ops));
  return work;
}

std::unique_ptr<Work> make_store_kv(Context& context, KvType type, int32_t rows) {
  auto work = std::make_unique<OnWorld>(context, rows, 0, size_t(64) << 20);
  const int32_t plane = work->world.plane(8, 64, 64, type, type);
  const Rows k = work->world.rows(512), v = work->world.rows(512);
  work->prepare({op::StoreKv{.k = k, .v = v, .plane = plane}});
  work->add_ops(2.0 * 512 * rows);  // A conversion each.
  return work;
}

// Columns [first, first + width) of some rows: recurrences of models read parts of one wide row.
Rows columns_of(const Rows& rows, int32_t first, int32_t width) {
  Rows part = rows;
  part.offset += first;
  part.width = width;
  return part;
}

constexpr size_t kStatesBytes = size_t(320) << 20;  // Before and after, of all layers.

// With many rows the states stay in a cache, in a model as well.
int32_t layers_of(size_t state_floats, int32_t rows) {
  if (rows >= 64) return 1;
  return int32_t(kFromMemoryBytes / (state_floats * sizeof(float))) + 1;
}

// As many layers of `op` as layers_of() says, each on a state of its own. `ops_per_float`: of a
// float of the state, a row.
template <class T>
std::unique_ptr<Work> on_states(std::unique_ptr<OnWorld> work, T op, size_t state_floats,
                                int32_t rows, double ops_per_float) {
  std::vector<Op> ops(size_t(layers_of(state_floats, rows)));
  for (Op& layer : ops) {
    op.state = work->world.state(state_floats);
    layer = op;
  }
  work->add_ops(ops_per_float * double(state_floats * ops.size()) * rows);
  work->prepare(std::move(ops));
  return work;
}

std::unique_ptr<Work> make_mamba(Context& context, int32_t rows) {
  constexpr int32_t kChannels = 1536, kStateSize = 16;
  auto work = std::make_unique<OnWorld>(context, rows, 0, kStatesBytes);
  World& world = work->world;
  const Rows x = world.rows(kChannels), dt = world.rows(kChannels), out = world.rows(kChannels);
  const Rows b = world.rows(kStateSize), c = world.rows(kStateSize);
  const Constant d = world.parameters(kChannels);
  const Constant a = work->decays(size_t(kChannels) * kStateSize);
  const op::MambaScan scan{
      .x = x, .b = b, .c = c, .dt = dt, .out = out, .a = a, .d = d, .state_size = kStateSize};
  // A product for the exponent, which itself is not counted; the decay; two sums.
  return on_states(std::move(work), scan, size_t(kChannels) * kStateSize, rows, 6);
}

std::unique_ptr<Work> make_mamba2(Context& context, int32_t rows) {
  constexpr int32_t kHeads = 48, kHeadDim = 64, kStateSize = 128, kInner = kHeads * kHeadDim;
  auto work = std::make_unique<OnWorld>(context, rows, 0, kStatesBytes);
  World& world = work->world;
  const Rows all = world.rows(kInner + 2 * kStateSize);
  const Rows x = columns_of(all, 0, kInner);
  const Rows b = columns_of(all, kInner, kStateSize);
  const Rows c = columns_of(all, kInner + kStateSize, kStateSize);
  const Rows out = world.rows(kInner), dt = world.rows(kHeads);
  const Constant a = work->decays(kHeads);
  const Constant d = world.parameters(kHeads), dt_bias = world.parameters(kHeads);
  const op::Mamba2Scan scan{.x = x,
                            .b = b,
                            .c = c,
                            .dt = dt,
                            .out = out,
                            .a = a,
                            .d = d,
                            .dt_bias = dt_bias,
                            .head_count = kHeads,
                            .head_dim = kHeadDim,
                            .state_size = kStateSize};
  // The decay, and two sums.
  return on_states(std::move(work), scan, size_t(kInner) * kStateSize, rows, 5);
}

std::unique_ptr<Work> make_delta_rule(Context& context, int32_t rows) {
  constexpr int32_t kHeads = 16, kDim = 128, kWidth = kHeads * kDim;
  auto work = std::make_unique<OnWorld>(context, rows, 0, kStatesBytes);
  World& world = work->world;
  const float spread = 1.0f / std::sqrt(float(kDim));
  const Rows all = world.rows(3 * kWidth, RowSet::tokens, spread);
  const Rows q = columns_of(all, 0, kWidth), k = columns_of(all, kWidth, kWidth);
  const Rows v = columns_of(all, 2 * kWidth, kWidth), out = world.rows(kWidth);
  const Rows dt = world.rows(kHeads), rate = world.rows(kHeads);
  const Constant a = work->decays(kHeads);
  const Constant dt_bias = world.parameters(kHeads);
  const op::GatedDeltaScan scan{.q = q,
                                .k = k,
                                .v = v,
                                .out = out,
                                .dt = dt,
                                .rate = rate,
                                .a = a,
                                .dt_bias = dt_bias,
                                .head_count = kHeads,
                                .key_head_count = kHeads,
                                .key_dim = kDim,
                                .value_dim = kDim};
  // The decay, and three sums.
  return on_states(std::move(work), scan, size_t(kWidth) * kDim, rows, 7);
}

std::unique_ptr<Work> make_short_conv(Context& context, int32_t rows) {
  constexpr int32_t kChannels = 3328, kKernel = 4;
  auto work = std::make_unique<OnWorld>(context, rows, 0, size_t(64) << 20);
  World& world = work->world;
  const Rows x = world.rows(kChannels), out = world.rows(kChannels);
  work->prepare({op::ShortConv{.x = x,
                               .out = out,
                               .weight = world.parameters(size_t(kChannels) * kKernel),
                               .kernel = kKernel,
                               .state = world.state(size_t(kChannels) * (kKernel - 1))}});
  work->add_ops(2.0 * kChannels * kKernel * rows);
  return work;
}

}  // namespace

void add_attention(Context& context) {
  const auto add = [&](const Heads& heads, int32_t rows, int32_t depth) {
    context.add(
        fmt::format("attend/{}/dim:{}/group:{}/rows:{}/depth:{}", kKvNames[size_t(heads.type)],
                    heads.dim, heads.per_kv_head, rows, depth),
        [&context, heads, rows, depth] { return make_attention(context, heads, rows, depth); });
  };
  for (const KvType type : {KvType::f32, KvType::f16, KvType::bf16, KvType::q8_0, KvType::q4_0}) {
    for (const int32_t dim : {64, 128, 256}) {
      for (const int32_t group : {1, 4, 8}) {
        for (const int32_t rows : {1, 512}) add({dim, group, type}, rows, 4096);
      }
    }
  }
  for (const int32_t depth : {0, 512, 16384}) {
    for (const int32_t rows : {1, 512}) add({64, 4, KvType::f16}, rows, depth);
  }
  for (const int32_t rows : {2, 4, 8, 12, 16}) {
    for (const int32_t dim : {64, 128, 256}) add({dim, 4, KvType::f16}, rows, 4096);
    for (const KvType type : {KvType::q8_0, KvType::q4_0}) add({128, 4, type}, rows, 4096);
  }
  for (const KvType type : {KvType::f16, KvType::q8_0}) {
    for (const int32_t rows : {1, 512}) {
      context.add(
          fmt::format("attend_latent/{}/rows:{}/depth:4096", kKvNames[size_t(type)], rows),
          [&context, type, rows] { return make_latent_attention(context, type, rows, 4096); });
      context.add(fmt::format("store_kv/{}/rows:{}", kKvNames[size_t(type)], rows),
                  [&context, type, rows] { return make_store_kv(context, type, rows); });
    }
  }
}

void add_recurrences(Context& context) {
  struct Kind {
    const char* name;
    std::unique_ptr<Work> (*make)(Context& context, int32_t rows);
  };
  for (const Kind& kind :
       {Kind{"mamba", make_mamba}, Kind{"mamba2", make_mamba2}, Kind{"delta_rule", make_delta_rule},
        Kind{"short_conv", make_short_conv}}) {
    for (const int32_t rows : {1, 2, 4, 6, 8, 12, 512}) {
      context.add(fmt::format("{}/rows:{}", kind.name, rows),
                  [&context, make = kind.make, rows] { return make(context, rows); });
    }
  }
}

}  // namespace cairn::bench
