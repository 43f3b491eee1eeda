// Attention alone, over a sequence whose pages lie in a row and over one whose pages lie anywhere:
// what pages cost the kernels. The two are timed in turn, so that the machine's moods hit both.
#include <algorithm>
#include <chrono>
#include <memory>
#include <random>

#include "graph/graph.h"
#include "measure/memory_figures.h"

namespace cairn::measure {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int32_t kTokens = 8192, kPromptRows = 256, kQueriesPerKvHead = 4;

// A model of one attention layer, without weights but a table of queries, keys and values.
class AttentionAlone {
 public:
  static Result<std::unique_ptr<AttentionAlone>> create(const EngineOptions& options,
                                                        const State& state) {
    std::unique_ptr<AttentionAlone> alone(new AttentionAlone(options, state));
    CAIRN_TRY(alone->prepare(options, state));
    return alone;
  }

  memory::Memory& memory() { return *memory_; }

  Result<memory::Sequence> make_sequence() {
    memory::Sequence sequence = memory_->new_sequence();
    while (sequence.length() < kTokens) CAIRN_TRY(extend(sequence, kPromptRows));
    return sequence;
  }

  Status extend(memory::Sequence& sequence, int32_t count) {
    const std::vector<Token> tokens(size_t(count), Token(0));
    CAIRN_TRY(memory::Transaction transaction, memory_->begin(sequence, {.tokens = tokens}));
    run(transaction, count);
    transaction.commit(count);
    return Ok{};
  }

  // Seconds of a step of `count` rows behind the sequence, which stays as it is.
  Result<double> time_step(memory::Sequence& sequence, int32_t count) {
    const std::vector<Token> tokens(size_t(count), Token(0));
    CAIRN_TRY(memory::Transaction transaction, memory_->begin(sequence, {.tokens = tokens}));
    const Clock::time_point start = Clock::now();
    run(transaction, count);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  AttentionAlone(const EngineOptions& options, const State& state)
      : threads_(options.thread_count > 0 ? options.thread_count : usable_core_count()),
        q_width_(state.kv_head_count * kQueriesPerKvHead * state.key_dim),
        k_width_(state.kv_head_count * state.key_dim),
        v_width_(state.values_in_keys ? 0 : state.kv_head_count * state.value_dim) {}

  Status prepare(const EngineOptions& options, const State& state) {
    const int32_t width = q_width_ + k_width_ + v_width_;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    values_.resize(size_t(width));
    std::generate(values_.begin(), values_.end(), [&] { return normal(random); });
    table_ = {.name = "table",
              .type = quant::find("F32"),
              .cols = width,
              .rows = 1,
              .blocks = std::as_bytes(std::span(values_))};
    const std::vector<std::vector<State>> layers = {{state}};
    for (const BackendType* type : backend_types()) {
      if (type->name != options.backend) continue;
      CAIRN_TRY(backend_, type->create({.threads = &threads_, .isa = options.isa}));
    }
    memory::Layout layout =
        memory::Layout::make(layers, backend_->page_format(), options.key_type, options.value_type);
    Graph graph(layout, {.alignment = backend_->piece_alignment()});
    const Tensor row = graph.embed(table_);
    const Tensor out =
        graph.attend(0, graph.columns(row, 0, q_width_), graph.columns(row, q_width_, k_width_),
                     v_width_ == 0 ? Tensor{} : graph.columns(row, q_width_ + k_width_, v_width_),
                     {.head_count = state.kv_head_count * kQueriesPerKvHead, .scale = 0.1f});
    plans_ = std::move(graph).finish(graph.outputs(out), {kPromptRows, 1});
    CAIRN_TRY(memory_, memory::Memory::create(
                           std::move(layout),
                           {.budget_bytes = size_t(1) << 30, .context_tokens_max = 2 * kTokens},
                           backend_->memory()));
    CAIRN_TRY(workspace_, backend_->memory().allocate(plans_.step.workspace_bytes));
    return backend_->prepare(plans_.step);
  }

  void run(memory::Transaction& transaction, int32_t count) {
    const Slice slice = transaction.slice(0);
    positions_.clear();
    for (int32_t row = 0; row < count; ++row) positions_.push_back(slice.first_position + row);
    slice_of_row_.assign(size_t(count), 0);
    const int32_t output = count - 1;
    const memory::Layout& layout = memory_->layout();
    backend_->execute(plans_.step, Step{.tokens = transaction.tokens(),
                                        .positions = positions_,
                                        .slice_of_row = slice_of_row_,
                                        .slices = {&slice, 1},
                                        .output_rows = {&output, 1},
                                        .kv_planes = layout.kv_planes,
                                        .state_tensors = layout.state_tensors,
                                        .workspace = workspace_->data()});
  }

  ThreadPool threads_;
  int32_t q_width_, k_width_, v_width_;
  std::vector<float> values_;
  Weight table_;
  Plans plans_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<memory::Memory> memory_;
  std::unique_ptr<Buffer> workspace_;
  std::vector<int32_t> positions_, slice_of_row_;
};

// One of several sequences that grow page by page in random turns: its pages lie among the others'.
Result<memory::Sequence> make_scattered(AttentionAlone& alone, std::vector<memory::Sequence>& all) {
  std::mt19937 random(2);
  for (int32_t chat = 0; chat < 4; ++chat) all.push_back(alone.memory().new_sequence());
  while (true) {
    memory::Sequence& sequence = all[random() % all.size()];
    CAIRN_TRY(alone.extend(sequence, kPageTokens));
    if (sequence.length() == kTokens) return sequence;
  }
}

Result<double> slowdown_percent(AttentionAlone& alone, memory::Sequence& in_a_row,
                                memory::Sequence& scattered, int32_t rows, int32_t rounds) {
  std::vector<double> ratios;
  for (int32_t round = 0; round < rounds; ++round) {
    const bool swaps = round % 2 == 1;
    CAIRN_TRY(const double first, alone.time_step(swaps ? scattered : in_a_row, rows));
    CAIRN_TRY(const double second, alone.time_step(swaps ? in_a_row : scattered, rows));
    ratios.push_back(swaps ? first / second : second / first);
  }
  std::nth_element(ratios.begin(), ratios.begin() + rounds / 2, ratios.end());
  return (ratios[size_t(rounds / 2)] - 1) * 100;
}

}  // namespace

Result<std::vector<Figure>> measure_paging(Engine& engine) {
  std::vector<Figure> figures;
  for (const KvPlane& plane : engine.memory().layout().kv_planes) {
    const memory::GroupSpec& group = engine.memory().layout().groups[size_t(plane.group)];
    if (group.kind != memory::GroupKind::full) continue;
    State state = State::full(plane.kv_head_count, plane.key_dim, plane.value_dim);
    state.values_in_keys = plane.values_in_keys;
    CAIRN_TRY(const std::unique_ptr<AttentionAlone> alone,
              AttentionAlone::create(engine.options(), state));
    CAIRN_TRY(memory::Sequence in_a_row, alone->make_sequence());
    std::vector<memory::Sequence> others;
    CAIRN_TRY(memory::Sequence scattered, make_scattered(*alone, others));
    CAIRN_TRY(const double decode, slowdown_percent(*alone, in_a_row, scattered, 1, 201));
    CAIRN_TRY(const double prompt, slowdown_percent(*alone, in_a_row, scattered, kPromptRows, 9));
    figures.push_back({.what = "scattered pages, decode at 8k",
                       .measured = decode,
                       .unit = "% slower",
                       .bar = 1});
    figures.push_back({.what = "scattered pages, prompt at 8k",
                       .measured = prompt,
                       .unit = "% slower",
                       .bar = 1});
    break;
  }
  return figures;
}

}  // namespace cairn::measure
