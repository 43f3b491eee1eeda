// What sequences cost beside the model: snapshots, forks, rewinds, and the memory's part of a step.
//   memory_bench [TOKENS]
// Nothing is computed: pages are reserved, not written, so that the numbers are those of the
// bookkeeping and of the copies that a fork makes when it goes on.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "backends/host/kv_page.h"
#include "device/host_memory.h"
#include "memory/memory.h"

namespace {

using namespace cairn;
using namespace cairn::memory;

// Windows of 512 in five of six layers.
Layout gemma3_1b() {
  std::vector<std::vector<State>> layers;
  for (int32_t layer = 0; layer < 26; ++layer) {
    layers.push_back(
        {layer % 6 == 5 ? State::full(1, 256, 256) : State::windowed(512, 1, 256, 256)});
  }
  return Layout::make(layers, host::kPageFormat, KvType::f16, KvType::f16, 1152);
}

// Attention in four of forty layers; states of 48 heads of 64 x 128, and a convolution's tail.
Layout granite4_tiny() {
  std::vector<std::vector<State>> layers;
  for (int32_t layer = 0; layer < 40; ++layer) {
    const bool is_attention = layer % 10 == 5;
    layers.push_back({is_attention
                          ? State::full(4, 128, 128)
                          : State::recurrent({int64_t(3) * 3328, int64_t(48) * 64 * 128})});
  }
  Layout layout = Layout::make(layers, host::kPageFormat, KvType::f16, KvType::f16, 1536);
  layout.add_log(std::vector<int32_t>(36, 3328 + 48));
  return layout;
}

// The median of `count` runs, in microseconds; `undo` is not counted.
double median_us(int32_t count, const std::function<void()>& run,
                 const std::function<void()>& undo) {
  std::vector<double> times;
  for (int32_t index = 0; index < count; ++index) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const auto end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    undo();
  }
  std::nth_element(times.begin(), times.begin() + count / 2, times.end());
  return times[size_t(count / 2)];
}

void append(Memory& memory, Sequence& sequence, int32_t count) {
  const std::vector<Token> tokens(size_t(count), Token(5));
  Transaction transaction =
      memory.begin(sequence, {.tokens = tokens, .keeps_hidden = true}).value();
  transaction.commit(count);
}

void measure(const char* name, Layout layout, int32_t token_count) {
  HostMemory device;
  auto memory =
      Memory::create(std::move(layout),
                     {.budget_bytes = size_t(16) << 30, .context_tokens_max = token_count + 20000},
                     device)
          .value();
  Sequence sequence = memory->new_sequence();
  memory->protect_from(sequence, token_count);
  append(*memory, sequence, token_count);
  for (int32_t turn = 0; turn < 20; ++turn) {
    append(*memory, sequence, 9);
    if (!memory->keep_anchor(sequence, AnchorKind::message_start)) std::abort();
  }
  constexpr int32_t kRuns = 1001;
  const Token next = Token(1);
  Sequence copy;
  const auto close_copy = [&] { copy = Sequence(); };
  const double snapshot = median_us(
      kRuns, [&] { copy = sequence; }, close_copy);
  copy = sequence;
  const double letting_go = median_us(kRuns, close_copy, [&] { copy = sequence; });
  const double rewind = median_us(
      kRuns, [&] { copy = memory->at(sequence, sequence.length() - 3).value(); }, close_copy);
  const double fork = median_us(
      kRuns, [&] { copy = memory->fork(sequence).value(); }, close_copy);
  const double parting = median_us(
      101,
      [&] {
        copy = sequence;
        (void)memory->begin(copy, {.tokens = {&next, 1}}).value();
      },
      close_copy);
  const double step = median_us(
      kRuns, [&] { append(*memory, sequence, 1); }, [] {});
  fmt::print(
      "{}, {} tokens, {} anchors: snapshot {:.2f} us, its end {:.2f} us, fork {:.2f} us, "
      "rewind by 3 {:.2f} us, fork and first step's room {:.1f} us, a step's begin and "
      "commit {:.2f} us\n",
      name, token_count, sequence.anchors().size(), snapshot, letting_go, fork, rewind, parting,
      step);
}

}  // namespace

int main(int argc, char** argv) {
  const int32_t token_count = argc > 1 ? std::atoi(argv[1]) : 32768;
  if (token_count < 1) return 2;
  measure("Gemma 3 1B", gemma3_1b(), token_count);
  measure("Granite 4 H Tiny", granite4_tiny(), token_count);
  return 0;
}
