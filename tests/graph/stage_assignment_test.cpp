// Fused ops: how many stages a layer takes, and that computing in pieces changes no bit, for steps
// of few rows (one piece has all of them) and of many (producers are computed apart).
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "backends/host/kv_page.h"
#include "base/arena.h"
#include "base/half.h"
#include "device/backend.h"
#include "graph/blocks/delta_net.h"
#include "graph/blocks/mlp.h"
#include "graph/graph.h"

namespace cairn::stage_assignment_test {
namespace {

constexpr int32_t kWidth = 128, kHeads = 4, kKvHeads = 2, kHeadDim = 64, kInner = 320;
constexpr int32_t kVocabulary = 37, kRowMax = 32, kSequences = 2, kPages = 4;
constexpr int32_t kScanHeads = 4, kScanDim = 32, kScanStates = 16, kKernel = 4;
constexpr int32_t kScanWidth = kScanHeads * kScanDim, kScanConv = kScanWidth + 2 * kScanStates;
constexpr Graph::Limits kLimits{.row_count_max = kRowMax, .output_count_max = kSequences};
constexpr blocks::DeltaNetShape kDelta{
    .head_count = 4, .key_head_count = 2, .key_dim = 32, .value_dim = 32, .conv_kernel = kKernel};

// Random parameters that stay where they are.
class Weights {
 public:
  Vector vector(int32_t count, float scale = 1.0f) {
    std::vector<float>& values = vectors_.emplace_back(size_t(count));
    for (float& value : values) value = scale * float(int32_t(random_() % 200) - 100) / 128.0f;
    return {values};
  }
  Weight& matrix(int32_t cols, int32_t rows) {
    std::vector<std::byte>& blocks = blocks_.emplace_back(size_t(cols / 32 * 34 * rows));
    for (std::byte& value : blocks) value = std::byte(random_() % 256);
    for (size_t block = 0; block < blocks.size(); block += 34) {
      const Half scale = to_half(0.0007f);
      std::memcpy(&blocks[block], &scale, sizeof scale);
    }
    return matrices_.emplace_back(Weight{.name = "matrix",
                                         .type = quant::find("Q8_0"),
                                         .cols = cols,
                                         .rows = rows,
                                         .blocks = blocks});
  }
  std::deque<Weight>& matrices() { return matrices_; }
  std::deque<blocks::DeltaNet>& delta_nets() { return delta_nets_; }
  blocks::GatedMlp& mlp() {
    return mlps_.emplace_back(
        blocks::GatedMlp{matrix(kWidth, kInner), matrix(kWidth, kInner), matrix(kInner, kWidth)});
  }
  blocks::DeltaNet& delta_net() {
    return delta_nets_.emplace_back(blocks::DeltaNet{.qkv = matrix(kWidth, kDelta.conv_width()),
                                                     .gate = matrix(kWidth, kDelta.value_width()),
                                                     .rate = matrix(kWidth, kDelta.head_count),
                                                     .decay = matrix(kWidth, kDelta.head_count),
                                                     .rate_decay = {},
                                                     .out = matrix(kDelta.value_width(), kWidth),
                                                     .conv = vector(kKernel * kDelta.conv_width()),
                                                     .dt_bias = vector(kDelta.head_count),
                                                     .a = vector(kDelta.head_count, -0.1f),
                                                     .norm = vector(kDelta.value_dim)});
  }
  // Blocks hold copies of matrices: all of them, for a backend to load.
  std::vector<Weight*> all() {
    std::vector<Weight*> list;
    for (Weight& weight : matrices_) list.push_back(&weight);
    for (blocks::GatedMlp& mlp : mlps_) {
      for (Weight* weight : {&mlp.gate, &mlp.up, &mlp.down}) list.push_back(weight);
    }
    for (blocks::DeltaNet& net : delta_nets_) {
      for (Weight* weight : {&net.qkv, &net.gate, &net.rate, &net.decay, &net.out}) {
        list.push_back(weight);
      }
    }
    return list;
  }

 private:
  std::mt19937 random_{11};
  std::deque<std::vector<float>> vectors_;
  std::deque<std::vector<std::byte>> blocks_;
  std::deque<Weight> matrices_;
  std::deque<blocks::GatedMlp> mlps_;
  std::deque<blocks::DeltaNet> delta_nets_;
};

enum class Mixer { attention, delta_net, scan };

std::vector<State> state_of(Mixer mixer) {
  if (mixer == Mixer::attention) return {State::full(kKvHeads, kHeadDim, kHeadDim)};
  if (mixer == Mixer::delta_net) return {kDelta.state()};
  return {State::recurrent({(kKernel - 1) * kScanConv, int64_t(kScanWidth) * kScanStates})};
}

Tensor attention(Graph& g, Weights& w, int32_t layer, Tensor x) {
  const RopeSpec rope{.frequencies = {1.0, 0.5, 0.1, 0.02}};
  const Tensor q = g.matmul(w.matrix(kWidth, kHeads * kHeadDim), x, w.vector(kHeads * kHeadDim));
  const Tensor k = g.matmul(w.matrix(kWidth, kKvHeads * kHeadDim), x);
  const Tensor v = g.matmul(w.matrix(kWidth, kKvHeads * kHeadDim), x);
  const Tensor normed = g.rms_norm(k, w.vector(kHeadDim), 1e-5f, kHeadDim);
  const Tensor a = g.attend(layer, g.rope(q, kHeadDim, rope), g.rope(normed, kHeadDim, rope), v,
                            {.head_count = kHeads, .scale = 0.125f});
  return g.matmul(w.matrix(kHeads * kHeadDim, kWidth), a);
}

// As Mamba-2's, without a norm: what the convolution reads are some of the product's columns.
Tensor scan(Graph& g, Weights& w, int32_t layer, Tensor x) {
  const Tensor projected = g.matmul(w.matrix(kWidth, kScanWidth + kScanConv + kScanHeads), x);
  const Tensor mixed = g.short_conv(layer, g.columns(projected, kScanWidth, kScanConv),
                                    w.vector(kScanConv * kKernel), w.vector(kScanConv), kKernel);
  const Tensor y = g.mamba2_scan(layer, g.columns(mixed, 0, kScanWidth),
                                 g.columns(mixed, kScanWidth, kScanStates),
                                 g.columns(mixed, kScanWidth + kScanStates, kScanStates),
                                 g.columns(projected, kScanWidth + kScanConv, kScanHeads),
                                 {.head_count = kScanHeads,
                                  .head_dim = kScanDim,
                                  .state_size = kScanStates,
                                  .a = w.vector(kScanHeads, -0.1f),
                                  .d = w.vector(kScanHeads),
                                  .dt_bias = w.vector(kScanHeads)});
  return g.matmul(w.matrix(kScanWidth, kWidth),
                  g.gate(g.columns(projected, 0, kScanWidth), y, Activation::silu));
}

struct Model {
  Weights weights;
  memory::Layout layout;
  Plans plans;

  explicit Model(const std::vector<Mixer>& mixers) {
    std::vector<std::vector<State>> states;
    for (const Mixer mixer : mixers) states.push_back(state_of(mixer));
    layout = memory::Layout::make(states, host::kPageFormat, KvType::f16, KvType::f16);
    Graph g(layout);
    Tensor x = g.embed(weights.matrix(kWidth, kVocabulary));
    for (int32_t layer = 0; layer < int32_t(mixers.size()); ++layer) {
      const Tensor h = g.rms_norm(x, weights.vector(kWidth), 1e-5f);
      const Mixer mixer = mixers[size_t(layer)];
      Tensor mixed = mixer == Mixer::attention ? attention(g, weights, layer, h)
                     : mixer == Mixer::scan
                         ? scan(g, weights, layer, h)
                         : blocks::delta_net(g, layer, h, weights.delta_net(), kDelta, 1e-5f);
      x = g.add(x, mixed);
      const Tensor m = g.rms_norm(x, weights.vector(kWidth), 1e-5f);
      x = g.add(x, blocks::gated_mlp(g, m, weights.mlp(), Activation::silu));
    }
    const Tensor last = g.rms_norm(g.outputs(x), weights.vector(kWidth), 1e-5f);
    plans = std::move(g).finish(g.matmul(weights.matrix(kWidth, kVocabulary), last), kLimits);
  }
};

int32_t stages_of_a_layer(Mixer mixer) {
  const Model one({mixer}), two({mixer, mixer});
  return int32_t(two.plans.step.stages.size() - one.plans.step.stages.size());
}

TEST(FusedOps, FewStagesALayer) {
  // Norm and quantization | queries, keys and values, up to their pages | attention | quantization
  // | product and sum | norm and quantization | gate and up, up to the quantization | down and sum.
  EXPECT_EQ(stages_of_a_layer(Mixer::attention), 8);
  // … | products | convolution and lengths | delta rule, norm, gate, quantization | …
  EXPECT_EQ(stages_of_a_layer(Mixer::delta_net), 8);
  // … | product | convolution | scan, gate, quantization | …
  EXPECT_EQ(stages_of_a_layer(Mixer::scan), 8);
}

bool is_producer(const Op& any) {
  return std::holds_alternative<op::MatMul>(any) || std::holds_alternative<op::ShortConv>(any) ||
         std::holds_alternative<op::Mamba2Scan>(any) ||
         std::holds_alternative<op::GatedDeltaScan>(any);
}

TEST(FusedOps, ProducersStandFirstAndPiecesFit) {
  const Model model({Mixer::attention, Mixer::delta_net, Mixer::scan});
  const Plan& plan = model.plans.step;
  ASSERT_EQ(plan.pieces.size(), plan.ops.size());
  ASSERT_FALSE(plan.fused_ops.empty());
  int32_t end_before = 0;
  for (const FusedOps& fused : plan.fused_ops) {
    EXPECT_GE(fused.first_op, end_before);
    end_before = fused.first_op + fused.op_count;
    EXPECT_GE(fused.op_count, 2);
    EXPECT_EQ(fused.width % fused.alignment, 0);
    for (int32_t op = fused.first_op; op < end_before; ++op) {
      EXPECT_EQ(op < fused.first_op + fused.producer_count, is_producer(plan.ops[size_t(op)]));
      if (fused.alignment == fused.width) continue;
      const PieceOfOp& piece = plan.pieces[size_t(op)];
      EXPECT_LE(piece.first_column + piece.column_count, fused.width);
      EXPECT_EQ(piece.first_column % fused.alignment, 0);
    }
  }
}

// The rows of a step: how many of each sequence.
using Rows2 = std::array<int32_t, kSequences>;

// A model with its memory on one backend.
class Machine {
 public:
  Machine(const std::vector<Mixer>& mixers, std::string_view backend, int thread_count)
      : threads_(thread_count), model_(mixers) {
    for (const BackendType* type : backend_types()) {
      if (type->name != backend) continue;
      backend_ = type->create({.threads = &threads_}).value();
    }
    for (Weight* weight : model_.weights.all()) EXPECT_TRUE(bool(backend_->load(*weight)));
    EXPECT_TRUE(bool(backend_->prepare(model_.plans.step)));
    workspace_.emplace(Arena::reserve(model_.plans.step.workspace_bytes).value());
    std::vector<std::byte*> arenas;
    for (const memory::GroupSpec& group : model_.layout.groups) {
      blocks_.emplace_back(group.block_bytes * kSequences * kPages, std::byte{0});
      arenas.push_back(blocks_.back().data());
    }
    model_.layout.attach(arenas);
    size_t offset = 0;
    for (const int32_t width : model_.plans.log_widths) {
      log_offsets_.push_back(offset);
      offset += size_t(width) * kLogPageTokens * sizeof(float);
    }
    log_.assign(offset * kSequences * kPages * kPageTokens / kLogPageTokens, std::byte{0});
    for (size_t plane = 0; plane < log_offsets_.size(); ++plane) {
      log_planes_.push_back({.first = log_.data() + log_offsets_[plane],
                             .page_bytes = offset,
                             .group = 0,
                             .width = model_.plans.log_widths[plane]});
    }
    for (int32_t page = 0; page < kPages * kPageTokens; ++page) {
      for (std::vector<PageId>& table : tables_) {
        table.push_back(PageId(page * kSequences + int32_t(&table - tables_.data())));
      }
    }
  }

  // The logits of each sequence's last row.
  std::vector<float> run(const Rows2& rows) {
    std::vector<Token> tokens;
    std::vector<int32_t> positions, slice_of_row, outputs;
    std::deque<std::vector<const PageId*>> tables;
    std::deque<std::vector<const std::byte*>> before;
    std::deque<std::vector<std::byte*>> after;
    std::deque<Capture> captures;
    std::vector<Slice> slices;
    const size_t group_count = model_.layout.groups.size();
    for (size_t sequence = 0; sequence < kSequences; ++sequence) {
      if (rows[sequence] == 0) continue;
      int32_t& length = lengths_[sequence];
      tables.emplace_back(group_count, tables_[sequence].data());
      before.emplace_back(group_count, nullptr);
      after.emplace_back(group_count, nullptr);
      for (size_t group = 0; group < group_count; ++group) {
        const size_t bytes = model_.layout.groups[group].block_bytes;
        std::byte* states = blocks_[group].data() + sequence * 2 * bytes;
        if (length > 0) before.back()[group] = states + (turn_[sequence] % 2) * bytes;
        after.back()[group] = states + (turn_[sequence] + 1) % 2 * bytes;
      }
      ++turn_[sequence];
      captures.push_back({.row_count = rows[sequence], .states = after.back().data()});
      slices.push_back({.first_row = int32_t(tokens.size()),
                        .row_count = rows[sequence],
                        .first_position = length,
                        .pages = tables.back().data(),
                        .states = before.back().data(),
                        .captures = {&captures.back(), 1}});
      for (int32_t row = 0; row < rows[sequence]; ++row) {
        tokens.push_back(Token((length * 7 + int32_t(sequence)) % kVocabulary));
        positions.push_back(length++);
        slice_of_row.push_back(int32_t(slices.size()) - 1);
      }
      outputs.push_back(int32_t(tokens.size()) - 1);
    }
    const Step step{.tokens = tokens,
                    .positions = positions,
                    .slice_of_row = slice_of_row,
                    .slices = slices,
                    .output_rows = outputs,
                    .kv_planes = model_.layout.kv_planes,
                    .state_tensors = model_.layout.state_tensors,
                    .log_planes = log_planes_,
                    .workspace = workspace_->data()};
    std::memset(workspace_->data(), 0xff, workspace_->size());
    backend_->execute(model_.plans.step, step);
    std::vector<float> logits;
    for (int32_t output = 0; output < int32_t(outputs.size()); ++output) {
      const float* row = step.row(model_.plans.step.logits, output);
      logits.insert(logits.end(), row, row + kVocabulary);
    }
    return logits;
  }

  const std::deque<std::vector<std::byte>>& blocks() const { return blocks_; }
  const std::vector<std::byte>& log() const { return log_; }

 private:
  ThreadPool threads_;
  Model model_;
  std::unique_ptr<Backend> backend_;
  std::optional<Arena> workspace_;
  std::deque<std::vector<std::byte>> blocks_;  // By group.
  std::vector<size_t> log_offsets_;
  std::vector<LogPlane> log_planes_;
  std::vector<std::byte> log_;
  std::array<std::vector<PageId>, kSequences> tables_;
  int32_t lengths_[kSequences] = {};
  size_t turn_[kSequences] = {};
};

// Steps with few and with many rows, of one sequence and of both.
const std::vector<Rows2> kSteps = {{20, 0}, {1, 0}, {1, 3},  {0, 1},
                                   {5, 3},  {1, 1}, {2, 19}, {3, 0}};

void expect_same_bits(const std::vector<Mixer>& mixers) {
  Machine reference(mixers, "reference", 1);
  Machine alone(mixers, "cpu", 1), shared(mixers, "cpu", 3);
  for (const Rows2& rows : kSteps) {
    const std::vector<float> expected = reference.run(rows);
    ASSERT_TRUE(expected[0] == expected[0] && expected[0] != expected[1]);
    for (Machine* machine : {&alone, &shared}) {
      const std::vector<float> logits = machine->run(rows);
      ASSERT_EQ(logits.size(), expected.size());
      EXPECT_EQ(std::memcmp(logits.data(), expected.data(), logits.size() * sizeof(float)), 0)
          << rows[0] << " and " << rows[1] << " rows";
      EXPECT_TRUE(machine->blocks() == reference.blocks()) << rows[0] << " and " << rows[1];
      EXPECT_TRUE(machine->log() == reference.log());
    }
  }
}

TEST(FusedOps, AttentionHasTheReferencesBits) {
  expect_same_bits({Mixer::attention, Mixer::attention});
}

TEST(FusedOps, TheDeltaRuleHasTheReferencesBits) {
  expect_same_bits({Mixer::delta_net, Mixer::delta_net});
}

TEST(FusedOps, ScansHaveTheReferencesBits) {
  expect_same_bits({Mixer::scan, Mixer::attention, Mixer::scan});
}

}  // namespace
}  // namespace cairn::stage_assignment_test
