// Random graphs of simple ops, run as planned (reordered, side by side, in shared memory) and
// compared bit for bit with the same calls evaluated at once, value by value.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backends/reference/reference.h"
#include "base/arena.h"
#include "device/op_fields.h"

namespace cairn::graph_test {
namespace {

using Values = std::vector<std::vector<float>>;  // [row][column]

// The same calls as on a Graph, computed at once.
struct Eager {
  static Values scale(const Values& x, float factor) {
    Values out = x;
    for (auto& row : out)
      for (float& value : row) value *= factor;
    return out;
  }
  static Values add(const Values& a, const Values& b, float scale) {
    Values out = a;
    for (size_t row = 0; row < a.size(); ++row) {
      for (size_t column = 0; column < a[row].size(); ++column) {
        out[row][column] = std::fma(b[row][column], scale, a[row][column]);
      }
    }
    return out;
  }
  static Values columns(const Values& x, int32_t first, int32_t width) {
    Values out;
    for (const auto& row : x) out.emplace_back(row.begin() + first, row.begin() + first + width);
    return out;
  }
};

std::unique_ptr<Backend> reference_backend(ThreadPool* threads) {
  for (const BackendType* type : backend_types()) {
    if (type->name == "reference") return type->create({.threads = threads}).value();
  }
  return nullptr;
}

constexpr int32_t kWidth = 24;
constexpr int32_t kRows = 5;

struct RandomGraph {
  Graph graph;
  std::vector<Tensor> tensors;
  std::vector<Values> values;
  std::mt19937 random;

  RandomGraph(const memory::Layout& layout, uint32_t seed) : graph(layout), random(seed) {}

  size_t pick() { return random() % tensors.size(); }
  float factor() { return float(int32_t(random() % 200) - 100) / 64.0f; }

  void grow() {
    const size_t a = pick(), b = pick();
    const float f = factor();
    switch (random() % 3) {
      case 0:
        tensors.push_back(graph.scale(tensors[a], f));
        values.push_back(Eager::scale(values[a], f));
        break;
      case 1:
        tensors.push_back(graph.add(tensors[a], tensors[b], f));
        values.push_back(Eager::add(values[a], values[b], f));
        break;
      default: {
        // A view of some columns, widened again by adding it to itself twice shifted.
        const int32_t first = int32_t(random() % 3);
        const Tensor view = graph.columns(tensors[a], first, kWidth - 2);
        const Values view_values = Eager::columns(values[a], first, kWidth - 2);
        const Tensor base = graph.columns(tensors[b], 1, kWidth - 2);
        const Values base_values = Eager::columns(values[b], 1, kWidth - 2);
        narrow.push_back(graph.add(base, view, f));
        narrow_values.push_back(Eager::add(base_values, view_values, f));
      }
    }
  }
  std::vector<Tensor> narrow;
  std::vector<Values> narrow_values;
};

TEST(Graph, RandomPlansComputeWhatWasRecorded) {
  ThreadPool threads(2);
  const memory::Layout layout;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(layout, seed);
    std::vector<float> table(size_t(7 * kWidth));
    for (float& value : table) value = random.factor();
    const Weight weight{.name = "table",
                        .type = quant::find("F32"),
                        .cols = kWidth,
                        .rows = 7,
                        .blocks = std::as_bytes(std::span(table))};
    random.tensors.push_back(random.graph.embed(weight));
    const std::vector<Token> tokens = {Token(3), Token(0), Token(6), Token(3), Token(1)};
    Values& rows = random.values.emplace_back();
    for (const Token token : tokens) {
      const float* row = table.data() + index_of(token) * kWidth;
      rows.emplace_back(row, row + kWidth);
    }
    for (int32_t step = 0; step < 60; ++step) random.grow();
    const bool ends_narrow = !random.narrow.empty() && seed % 2 == 0;
    const Tensor last = ends_narrow ? random.narrow.back() : random.tensors.back();
    const Values& expected = ends_narrow ? random.narrow_values.back() : random.values.back();
    const Tensor logits = random.graph.outputs(last);
    const Plans plans =
        std::move(random.graph).finish(logits, {.row_count_max = kRows, .output_count_max = 2});
    const Plan& plan = plans.step;
    Arena workspace = Arena::reserve(plan.workspace_bytes).value();
    const auto backend = reference_backend(&threads);
    ASSERT_TRUE(bool(backend->prepare(plan)));
    const int32_t positions[kRows] = {0, 1, 2, 3, 4};
    const int32_t slices_of_rows[kRows] = {};
    const int32_t outputs[] = {1, 4};
    const Slice slice{.row_count = kRows};
    const Step step{.tokens = tokens,
                    .positions = positions,
                    .slice_of_row = slices_of_rows,
                    .slices = {&slice, 1},
                    .output_rows = outputs,
                    .workspace = workspace.data()};
    backend->execute(plan, step);
    for (int32_t output = 0; output < 2; ++output) {
      const auto& row = expected[size_t(outputs[output])];
      EXPECT_EQ(std::memcmp(step.row(plan.logits, output), row.data(), row.size() * sizeof(float)),
                0);
    }
  }
}

TEST(Graph, IndependentProductsShareAStageAndAQuantizedInput) {
  const memory::Layout layout;
  Graph graph(layout);
  std::vector<std::byte> blocks(size_t(64 * 34 * 2));
  const Weight weight{.name = "w",
                      .type = quant::find("Q8_0"),
                      .cols = 64,
                      .rows = 64,
                      .blocks = std::span(blocks).first(64 * 68)};
  const Tensor x = graph.embed(weight);
  const Tensor q = graph.matmul(weight, x);
  const Tensor k = graph.matmul(weight, x);
  const Tensor sum = graph.add(q, k);
  const Plans plans = std::move(graph).finish(sum, {.row_count_max = 4, .output_count_max = 1});
  const Plan& plan = plans.step;
  // embed and quantize, row by row | both products and their sum, some columns at a time.
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[1].op_count, 3);
  EXPECT_EQ(plan.ops.size(), 5u);
}

// Where a backend rounds rows of prompts to bf16, quantized rows have room for that.
TEST(Graph, QuantizedRowsHaveRoomForRoundedOnes) {
  const memory::Layout layout;
  std::vector<std::byte> blocks(size_t(64 * 272));
  const Weight weight{
      .name = "w", .type = quant::find("Q8_0"), .cols = 256, .rows = 64, .blocks = blocks};
  for (const bool rounds_prompts : {false, true}) {
    Graph graph(layout, {.rounds_prompts = rounds_prompts});
    const Tensor x = graph.scale(graph.embed(weight), 0.5f);
    const Plans plans = std::move(graph).finish(graph.matmul(weight, x),
                                                {.row_count_max = 4, .output_count_max = 1});
    int32_t stride = 0;
    for (const Op& op : plans.step.ops) {
      if (const auto* quantize = std::get_if<op::Quantize>(&op)) stride = quantize->out.stride;
    }
    EXPECT_EQ(stride, QuantizedRows::row_bytes(256, rounds_prompts));
  }
  EXPECT_EQ(QuantizedRows::row_bytes(256, true), 256 * 2);
  EXPECT_LT(QuantizedRows::row_bytes(256, false), 256 * 2);
}

// What was quantized lives on where another program multiplies it as it was.
TEST(Graph, PlainRowsStayForProgramsThatReadThem) {
  const memory::Layout layout;
  std::vector<std::byte> blocks(size_t(64 * 68));
  const Weight weight{
      .name = "w", .type = quant::find("Q8_0"), .cols = 64, .rows = 64, .blocks = blocks};
  for (const bool keeps_plain_rows : {false, true}) {
    Graph graph(layout, {.keeps_plain_rows = keeps_plain_rows});
    const Tensor x = graph.scale(graph.embed(weight), 0.5f);
    const Plans plans = std::move(graph).finish(graph.matmul(weight, x),
                                                {.row_count_max = 4, .output_count_max = 1});
    const op::Quantize* quantize = nullptr;
    const op::MatMul* product = nullptr;
    for (const Op& op : plans.step.ops) {
      if (const auto* found = std::get_if<op::Quantize>(&op)) quantize = found;
      if (const auto* found = std::get_if<op::MatMul>(&op)) product = found;
    }
    ASSERT_TRUE(quantize != nullptr && product != nullptr);
    EXPECT_TRUE(product->quantized.exists());
    ASSERT_EQ(product->x.exists(), keeps_plain_rows);
    if (!keeps_plain_rows) continue;
    EXPECT_EQ(product->x.offset, quantize->x.offset);
    EXPECT_TRUE(product->out.offset >= product->x.offset + 4 * product->x.stride ||
                product->x.offset >= product->out.offset + 4 * product->out.stride);
  }
}

TEST(Parameters, KeepsTheFirstErrorAndPrefixesLayers) {
  struct Refuser : ParameterVisitor {
    std::vector<std::string> names;
    Status matrix(std::string_view name, Weight&, std::span<const int64_t>, Need) override {
      names.emplace_back(name);
      return fail(ErrorCode::not_found, "{}: missing", name);
    }
    Status vector(std::string_view name, Vector&, std::span<const int64_t> shape, Need) override {
      names.emplace_back(fmt::format("{}[{}]", name, shape.size()));
      return Ok{};
    }
  } refuser;
  Parameters p(&refuser);
  Weight weight;
  Vector vector;
  p.vector("norm", vector, {4, 1});
  Parameters layer = p.layer(3);
  layer.matrix("attn_q.weight", weight, {4, 4});
  layer.matrix("attn_k.weight", weight, {4, 4});
  p.join(std::move(layer));
  const Status status = std::move(p).finish();
  ASSERT_FALSE(bool(status));
  EXPECT_EQ(status.error().message, "blk.3.attn_q.weight: missing");
  EXPECT_EQ(refuser.names[0], "norm[2]");
  EXPECT_EQ(refuser.names[2], "blk.3.attn_k.weight");
}

}  // namespace
}  // namespace cairn::graph_test
