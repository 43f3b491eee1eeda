// The plans beside the step's: logits come back from a hidden row, recurrent states from the log,
// each with the bits of the step itself.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "backends/host/kv_page.h"
#include "base/arena.h"
#include "device/backend.h"
#include "graph/graph.h"

namespace cairn::plans_test {
namespace {

constexpr int32_t kWidth = 24, kHeads = 2, kHeadDim = 12, kStateSize = 5, kKernel = 3;
constexpr int32_t kInner = kHeads * kHeadDim, kConvWidth = kInner + 2 * kStateSize;
constexpr int32_t kProjected = 2 * kInner + 2 * kStateSize + kHeads;
constexpr int32_t kVocabulary = 7, kRowMax = 32, kLayerCount = 2;
constexpr Graph::Limits kLimits{.row_count_max = kRowMax, .output_count_max = 3};

std::vector<State> recurrent_layer() {
  return {State::recurrent({(kKernel - 1) * kConvWidth, int64_t(kInner) * kStateSize})};
}

// Random parameters that stay where they are.
class Weights {
 public:
  explicit Weights(uint32_t seed) : random_(seed) {}
  Vector vector(int32_t count) {
    std::vector<float>& values = vectors_.emplace_back(size_t(count));
    for (float& value : values) value = float(int32_t(random_() % 200) - 100) / 128.0f;
    return {values};
  }
  const Weight& matrix(int32_t cols, int32_t rows) {
    const Vector values = vector(cols * rows);
    return matrices_.emplace_back(Weight{.name = "matrix",
                                         .type = quant::find("F32"),
                                         .cols = cols,
                                         .rows = rows,
                                         .blocks = std::as_bytes(values.values)});
  }

 private:
  std::mt19937 random_;
  std::deque<std::vector<float>> vectors_;
  std::deque<Weight> matrices_;
};

// A layer as Mamba-2's, but that some columns are also changed in place before they are read again,
// and that the step sizes go through cheap ops.
Tensor mixer(Graph& g, Weights& w, int32_t layer, Tensor x) {
  const Tensor projected = g.matmul(w.matrix(kWidth, kProjected), x);
  const Tensor gate = g.columns(projected, 0, kInner);
  const Tensor dt = g.columns(projected, kInner + kConvWidth, kHeads);
  const Tensor doubled = g.add(dt, dt, 0.5f);
  const Tensor early = g.columns(projected, kInner, kConvWidth);
  const Tensor kept = g.scale(early, 0.75f);
  g.scale_by_position(early, 0.3, 2);
  const Tensor conv_in = g.add(kept, early);
  const Tensor mixed =
      g.short_conv(layer, conv_in, w.vector(kConvWidth * kKernel), w.vector(kConvWidth), kKernel);
  const Tensor y = g.mamba2_scan(
      layer, g.columns(mixed, 0, kInner), g.columns(mixed, kInner, kStateSize),
      g.rms_norm(g.columns(mixed, kInner + kStateSize, kStateSize), w.vector(kStateSize), 1e-5f),
      doubled,
      {.head_count = kHeads,
       .head_dim = kHeadDim,
       .state_size = kStateSize,
       .a = w.vector(kHeads),
       .d = w.vector(kHeads),
       .dt_bias = w.vector(kHeads)});
  return g.matmul(w.matrix(kInner, kWidth), g.gate(gate, y, Activation::silu));
}

Plans record(const memory::Layout& layout, Weights& w) {
  Graph g(layout);
  Tensor x = g.embed(w.matrix(kWidth, kVocabulary));
  for (int32_t layer = 0; layer < kLayerCount; ++layer) {
    x = g.add(x, mixer(g, w, layer, g.rms_norm(x, w.vector(kWidth), 1e-5f)));
  }
  const Tensor last = g.rms_norm(g.outputs(x), w.vector(kWidth), 1e-5f);
  const Tensor logits = g.matmul(w.matrix(kWidth, kVocabulary), last);
  return std::move(g).finish(g.scale(logits, 0.5f), kLimits);
}

memory::Layout recurrent_layout() {
  const std::vector<std::vector<State>> layers(size_t(kLayerCount), recurrent_layer());
  return memory::Layout::make(layers, host::kPageFormat, KvType::f32, KvType::f32);
}

// The plans on the reference backend, with one sequence, its states and its log.
class Machine {
 public:
  Machine() : layout_(recurrent_layout()), weights_(7), plans_(record(layout_, weights_)) {
    for (const BackendType* type : backend_types()) {
      if (type->name == "reference") backend_ = type->create({.threads = &threads_}).value();
    }
    size_t bytes = 0;
    for (const Plan* plan : {&plans_.step, &plans_.head, &plans_.replay}) {
      EXPECT_TRUE(bool(backend_->prepare(*plan)));
      bytes = std::max(bytes, plan->workspace_bytes);
    }
    workspace_.emplace(Arena::reserve(bytes).value());
    size_t offset = 0;
    for (const int32_t width : plans_.log_widths) {
      log_planes_.push_back({.first = reinterpret_cast<std::byte*>(offset), .width = width});
      offset += size_t(width) * kLogPageTokens * sizeof(float);
    }
    log_.assign(offset * 4, std::byte{0xff});
    for (LogPlane& plane : log_planes_) {
      plane.first = log_.data() + reinterpret_cast<size_t>(plane.first);
      plane.page_bytes = offset;
    }
  }

  using Block = std::vector<std::byte>;
  size_t state_bytes() const { return layout_.groups[0].block_bytes; }

  // Runs a plan over the positions [first, first + row_count); the state after them.
  Block run(const Plan& plan, int32_t first, int32_t row_count, const Block* before,
            std::vector<int32_t> outputs = {}) {
    Block after(state_bytes(), std::byte{0xff});
    std::byte* after_data = after.data();
    const std::byte* before_data = before == nullptr ? nullptr : before->data();
    const Capture capture{.row_count = row_count, .states = &after_data};
    const PageId* table = pages_;
    const Slice slice{.row_count = row_count,
                      .first_position = first,
                      .pages = &table,
                      .states = &before_data,
                      .captures = {&capture, 1}};
    std::vector<Token> tokens;
    std::vector<int32_t> positions, slice_of_row(size_t(row_count), 0);
    for (int32_t row = 0; row < row_count; ++row) {
      tokens.push_back(Token((first + row) * 5 % kVocabulary));
      positions.push_back(first + row);
    }
    backend_->execute(plan, {.tokens = tokens,
                             .positions = positions,
                             .slice_of_row = slice_of_row,
                             .slices = {&slice, 1},
                             .output_rows = outputs,
                             .state_tensors = layout_.state_tensors,
                             .log_planes = log_planes_,
                             .workspace = workspace_->data()});
    return after;
  }
  void run_head(std::vector<int32_t> outputs) {
    backend_->execute(plans_.head, {.output_rows = outputs, .workspace = workspace_->data()});
  }
  std::span<float> row(const Rows& rows, int32_t index) const {
    float* first = reinterpret_cast<float*>(workspace_->data()) + rows.offset;
    return {first + int64_t(index) * rows.stride, size_t(rows.width)};
  }
  std::vector<float> copy(const Rows& rows, int32_t index) const {
    return {row(rows, index).begin(), row(rows, index).end()};
  }
  void spoil_workspace() { std::memset(workspace_->data(), 0xff, workspace_->size()); }
  const Plans& plans() const { return plans_; }

 private:
  ThreadPool threads_{2};
  memory::Layout layout_;
  Weights weights_;
  Plans plans_;
  std::unique_ptr<Backend> backend_;
  std::optional<Arena> workspace_;
  std::vector<LogPlane> log_planes_;
  std::vector<std::byte> log_;
  PageId pages_[4] = {PageId(2), PageId(0), PageId(3), PageId(1)};
};

TEST(Plans, ReplayGivesTheStatesOfTheStep) {
  Machine machine;
  const Machine::Block at_7 = machine.run(machine.plans().step, 0, 7, nullptr);
  const Machine::Block at_20 = machine.run(machine.plans().step, 7, 13, &at_7);
  const Machine::Block at_29 = machine.run(machine.plans().step, 20, 9, &at_20);
  machine.spoil_workspace();
  EXPECT_EQ(machine.run(machine.plans().replay, 0, 7, nullptr), at_7);
  EXPECT_EQ(machine.run(machine.plans().replay, 7, 13, &at_7), at_20);
  EXPECT_EQ(machine.run(machine.plans().replay, 7, 22, &at_7), at_29);
  EXPECT_EQ(machine.run(machine.plans().replay, 0, 29, nullptr), at_29);
  EXPECT_NE(at_20, at_29);
}

TEST(Plans, ReplayMultipliesNoWeights) {
  Machine machine;
  for (const Op& op : machine.plans().replay.ops) {
    EXPECT_FALSE(std::holds_alternative<op::MatMul>(op));
    EXPECT_FALSE(std::holds_alternative<op::Embed>(op));
  }
}

TEST(Plans, OnlyTheColumnsThatAreReadAreLogged) {
  const Machine machine;
  // For each layer what the convolution reads and, beside it, the step sizes; not the gate.
  EXPECT_EQ(machine.plans().log_widths, std::vector<int32_t>(2, kConvWidth + kHeads));
}

TEST(Plans, WhatIsNarrowerThanItsSourcesIsLoggedItself) {
  const memory::Layout layout = recurrent_layout();
  Weights w(3);
  Graph g(layout);
  const Tensor x = g.embed(w.matrix(kConvWidth, kVocabulary));
  const Tensor both = g.matmul(w.matrix(kConvWidth, 2 * kConvWidth), x);
  const Tensor gated = g.gate(g.columns(both, 0, kConvWidth),
                              g.columns(both, kConvWidth, kConvWidth), Activation::silu);
  const Tensor mixed = g.short_conv(0, gated, w.vector(kConvWidth * kKernel), {}, kKernel);
  const Plans plans = std::move(g).finish(g.outputs(mixed), kLimits);
  EXPECT_EQ(plans.log_widths, std::vector<int32_t>{kConvWidth});
  ASSERT_EQ(plans.replay.ops.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<op::LoadLog>(plans.replay.ops[0]));
  EXPECT_TRUE(std::holds_alternative<op::ShortConv>(plans.replay.ops[1]));
}

TEST(Plans, AModelWithoutRecurrenceHasNothingToReplay) {
  const memory::Layout layout;
  Weights w(3);
  Graph g(layout);
  const Tensor x = g.embed(w.matrix(kWidth, kVocabulary));
  const Tensor logits = g.matmul(w.matrix(kWidth, kVocabulary), g.outputs(x));
  const Plans plans = std::move(g).finish(logits, kLimits);
  EXPECT_TRUE(plans.replay.ops.empty());
  EXPECT_TRUE(plans.log_widths.empty());
  EXPECT_EQ(plans.step.ops.size(), 3u);
  EXPECT_EQ(plans.head.ops.size(), 1u);
}

TEST(Plans, HeadGivesTheLogitsOfTheStep) {
  Machine machine;
  const Plans& plans = machine.plans();
  machine.run(plans.step, 0, 20, nullptr, {3, 11, 19});
  std::vector<std::vector<float>> hidden, logits;
  for (int32_t output = 0; output < 3; ++output) {
    hidden.push_back(machine.copy(plans.step.hidden, output));
    logits.push_back(machine.copy(plans.step.logits, output));
  }
  ASSERT_NE(logits[0], logits[1]);
  machine.spoil_workspace();
  const int32_t order[] = {2, 0, 1};
  for (int32_t output = 0; output < 3; ++output) {
    const std::vector<float>& kept = hidden[size_t(order[output])];
    std::copy(kept.begin(), kept.end(), machine.row(plans.head.hidden, output).begin());
  }
  machine.run_head({0, 0, 0});
  for (int32_t output = 0; output < 3; ++output) {
    EXPECT_EQ(machine.copy(plans.head.logits, output), logits[size_t(order[output])]);
    EXPECT_EQ(machine.copy(plans.head.hidden, output), hidden[size_t(order[output])]);
  }
}

}  // namespace
}  // namespace cairn::plans_test
