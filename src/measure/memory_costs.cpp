// The memory by itself: sequences of 32k tokens are made by transactions whose step is never
// computed, since only the bookkeeping is timed.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/machine/machine_memory.h"
#include "measure/memory_figures.h"

namespace cairn::measure {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int32_t kLongTokens = 32768;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Status extend(memory::Memory& memory, memory::Sequence& sequence, int32_t count) {
  const std::vector<Token> tokens(size_t(count), Token(1));
  CAIRN_TRY(memory::Transaction transaction,
            memory.begin(sequence, {.tokens = tokens, .keeps_hidden = true}));
  transaction.commit(count);
  return Ok{};
}

template <class Make>
double median_microseconds(Make make) {
  std::vector<double> times;
  for (int32_t round = 0; round < 201; ++round) {
    const Clock::time_point start = Clock::now();
    const auto made = make();
    times.push_back(microseconds_since(start));
  }
  std::nth_element(times.begin(), times.begin() + 100, times.end());
  return times[100];
}

// Bytes that the window groups of a lone sequence may hold: from what the first protected position
// sees up to the end, in pages.
size_t allowed_window_bytes(const memory::Memory& memory, int32_t protected_from, int32_t length) {
  size_t bytes = 0;
  for (const memory::GroupSpec& group : memory.layout().groups) {
    if (!group.has_window()) continue;
    const int32_t first_page = memory::first_needed(group, protected_from) / kPageTokens;
    bytes += size_t(group.page_count(length) - first_page) * group.block_bytes;
  }
  return bytes;
}

size_t window_bytes(const memory::Memory& memory, const memory::Sequence& sequence) {
  size_t bytes = 0;
  for (const memory::GroupUsage& group : memory.usage(sequence)) {
    const bool has_window =
        group.kind == memory::GroupKind::window || group.kind == memory::GroupKind::chunked;
    if (has_window) bytes += group.bytes;
  }
  return bytes;
}

// A conversation of 32k tokens, prompt by prompt, answer by answer; the last turn stays rewindable.
// Returns how many bytes the windows ever held beyond what they may.
Result<double> excess_window_bytes(memory::Memory& memory) {
  memory::Sequence sequence = memory.new_sequence();
  double worst = 0;
  while (sequence.length() + 630 <= kLongTokens) {
    const int32_t turn = sequence.length();
    memory.protect_from(sequence, turn);
    CAIRN_TRY(extend(memory, sequence, 600));
    for (int32_t token = 0; token < 24; ++token) {
      CAIRN_TRY(extend(memory, sequence, 1));
      const size_t held = window_bytes(memory, sequence);
      const size_t allowed = allowed_window_bytes(memory, turn, sequence.length());
      worst = std::max(worst, double(held) - double(allowed));
    }
  }
  return worst;
}

Status add_anchor_bytes(memory::Memory& memory, memory::Sequence& sequence,
                        std::vector<Figure>& figures) {
  const memory::Layout& layout = memory.layout();
  const auto block_bytes = [&](int32_t group) {
    return group < 0 ? size_t(0) : layout.groups[size_t(group)].block_bytes;
  };
  CAIRN_TRY(extend(memory, sequence, 1));
  const size_t before = memory.usage().used_bytes();
  CAIRN_TRY(memory.keep_anchor(sequence, memory::AnchorKind::prompt_end));
  const size_t at_once = memory.usage().used_bytes() - before;
  figures.push_back(
      {.what = "new bytes of a snapshot", .measured = double(at_once), .unit = "bytes", .bar = 0});
  // What was live is the anchor's now, so the next token needs a state and a row of its own.
  CAIRN_TRY(extend(memory, sequence, 1));
  size_t later = memory.usage().used_bytes() - before;
  for (const memory::GroupSpec& group : layout.groups) {
    const bool opens_page = group.has_pages() && (sequence.length() - 1) % group.page_tokens() == 0;
    if (opens_page) later -= group.block_bytes;
  }
  figures.push_back(
      {.what = "the same when the conversation has gone on",
       .measured = double(later) / kMiB,
       .unit = "MiB",
       .bar =
           double(block_bytes(layout.recurrent_group) + block_bytes(layout.hidden_group)) / kMiB});
  return Ok{};
}

// Pages are touched, so that the system has to find memory for them.
Status touch(memory::Memory& memory, memory::Sequence& sequence, int32_t count) {
  const std::vector<Token> tokens(size_t(count), Token(1));
  CAIRN_TRY(memory::Transaction transaction, memory.begin(sequence, {.tokens = tokens}));
  const Slice slice = transaction.slice(0);
  for (const KvPlane& plane : memory.layout().kv_planes) {
    const int32_t first = sequence.length() / kPageTokens;
    const int32_t end = (sequence.length() + count + kPageTokens - 1) / kPageTokens;
    for (int32_t page = first; page < end; ++page) {
      const size_t id = size_t(index_of(slice.pages[plane.group][page]));
      const size_t key_bytes = size_t(plane.kv_head_count) * plane.key_bytes;
      const size_t value_bytes = size_t(plane.kv_head_count) * plane.value_bytes;
      std::memset(plane.keys + id * plane.keys_page_bytes, 1, key_bytes);
      std::memset(plane.values + id * plane.values_page_bytes, 1, value_bytes);
    }
  }
  for (const StateTensor& tensor : memory.layout().state_tensors) {
    std::memset(slice.captures.back().states[tensor.group] + tensor.offset, 1, tensor.bytes);
  }
  transaction.commit(count);
  return Ok{};
}

Status add_resident(memory::Memory& memory, std::vector<Figure>& figures) {
  const double resident_before = double(resident_bytes());
  const auto counted_bytes = [&] {
    const memory::Usage usage = memory.usage();
    return double(usage.used_bytes() + usage.warm_bytes);
  };
  const double ledger_before = counted_bytes();
  {
    memory::Sequence sequence = memory.new_sequence();
    while (sequence.length() < kLongTokens / 2) CAIRN_TRY(touch(memory, sequence, 512));
    const double ledger = counted_bytes() - ledger_before;
    const double resident = double(resident_bytes()) - resident_before;
    figures.push_back({.what = "resident beyond the ledger, 16k tokens",
                       .measured = (resident - ledger) / kMiB,
                       .unit = "MiB",
                       .bar = ledger * 0.02 / kMiB + 32});
  }
  const Clock::time_point start = Clock::now();
  while (double(resident_bytes()) - resident_before > 32 * kMiB &&
         microseconds_since(start) < 5e6) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  figures.push_back({.what = "until resident memory is back after all is dropped",
                     .measured = microseconds_since(start) / 1e6,
                     .unit = "s",
                     .bar = 1});
  return Ok{};
}

}  // namespace

Result<std::vector<Figure>> measure_costs(Engine& engine) {
  memory::Memory& memory = engine.memory();
  std::vector<Figure> figures;
  {
    memory::Sequence sequence = memory.new_sequence();
    while (sequence.length() < kLongTokens - 64) CAIRN_TRY(extend(memory, sequence, 448));
    figures.push_back({.what = "snapshot of 32k tokens",
                       .measured = median_microseconds([&] { return sequence; }),
                       .unit = "µs",
                       .bar = 20});
    figures.push_back({.what = "fork of 32k tokens",
                       .measured = median_microseconds([&] { return memory.fork(sequence); }),
                       .unit = "µs",
                       .bar = 50});
    CAIRN_TRY(add_anchor_bytes(memory, sequence, figures));
  }
  CAIRN_TRY(const double excess, excess_window_bytes(memory));
  figures.push_back({.what = "window bytes beyond window, tail and last turn, 32k tokens",
                     .measured = excess,
                     .unit = "bytes",
                     .bar = 0});
  CAIRN_TRY(add_resident(memory, figures));
  return figures;
}

}  // namespace cairn::measure
