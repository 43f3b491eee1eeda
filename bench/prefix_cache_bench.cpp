// What the prefix cache costs with many kept sequences: looking prompts up, and making room.
//   prefix_cache_bench [COUNT ...]      how many sequences are kept; 256, 1000 and 10000 without
// Nothing is computed: the layouts are toys, blocks are taken and not written, and the system backs
// none of them, so that the times are those of the bookkeeping. They are of the thread's own work:
// other programs on the machine hardly count.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

#include "device/host_memory.h"
#include "memory/cache/prefix_cache.h"
#include "tests/memory/toy_model.h"

namespace {

using namespace cairn;
using namespace cairn::memory;
using toy::ToyModel;
using Text = std::vector<Token>;

constexpr int32_t kPromptTokens = 2000, kMessageTokens = 200, kChunkTokens = 512;

// Addresses only.
class NoBuffer final : public Buffer {
 public:
  explicit NoBuffer(std::unique_ptr<Buffer> addresses)
      : Buffer({addresses->data(), addresses->size()}), addresses_(std::move(addresses)) {}
  bool commit(size_t, size_t) override { return true; }
  void decommit(size_t, size_t) override {}
  void discard(size_t, size_t) override {}

 private:
  std::unique_ptr<Buffer> addresses_;
};

class NoMemory final : public DeviceMemory {
 public:
  Result<std::unique_ptr<Buffer>> allocate(size_t bytes) override { return reserve(bytes); }
  Result<std::unique_ptr<Buffer>> reserve(size_t bytes) override {
    CAIRN_TRY(std::unique_ptr<Buffer> addresses, host_.reserve(bytes));
    return std::unique_ptr<Buffer>(std::make_unique<NoBuffer>(std::move(addresses)));
  }
  size_t slab_bytes() const override { return host_.slab_bytes(); }
  size_t unit_bytes() const override { return host_.unit_bytes(); }
  void copy(DeviceBytes, DeviceBytes) override {}
  void fill(DeviceBytes, std::byte) override {}
  std::span<const std::byte> view(DeviceBytes) override { return {}; }

 private:
  HostMemory host_;
};

double now_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) * 1e6 + double(time.tv_nsec) * 1e-3;
}

struct Times {
  std::vector<double> us;
  double median() {
    std::nth_element(us.begin(), us.begin() + std::ptrdiff_t(us.size() / 2), us.end());
    return us[us.size() / 2];
  }
  double worst() const { return *std::max_element(us.begin(), us.end()); }
  // Of a thousand, all but one took less.
  double nearly_worst() {
    const auto at = us.end() - 1 - std::ptrdiff_t(us.size() / 1000);
    std::nth_element(us.begin(), at, us.end());
    return *at;
  }
};

template <class Work>
auto timed(Times& times, Work work) {
  const double begin = now_us();
  auto result = work();
  times.us.push_back(now_us() - begin);
  return result;
}

Text text(int32_t count, uint32_t number) {
  std::mt19937 random(number);
  Text tokens(static_cast<size_t>(count));
  for (Token& token : tokens) token = Token(1 + random() % 60000);
  return tokens;
}

Text joined(Text beginning, const Text& end) {
  beginning.insert(beginning.end(), end.begin(), end.end());
  return beginning;
}

class Bench {
 public:
  Bench(const ToyModel& model, size_t budget_bytes)
      : memory_(Memory::create(model.layout(),
                               {.budget_bytes = budget_bytes, .context_tokens_max = 4096}, device_)
                    .value()),
        cache_(memory_.get()) {}

  // Reads a prompt as an engine does, from what is kept, in chunks, and keeps it with an answer.
  // `system_tokens`: where the first message starts; before it are some more marks.
  void converse(const Text& prompt, int32_t system_tokens, bool is_measured) {
    const PrefixCache::Found found = cache_.find(prompt, Variant::plain, true);
    Sequence sequence = found.sequence == nullptr
                            ? memory_->new_sequence()
                            : memory_->at(*found.sequence, found.plan.resume).value();
    replay(sequence);
    while (sequence.length() < int32_t(prompt.size())) {
      const int32_t begin = sequence.length();
      const int32_t count = std::min(kChunkTokens, int32_t(prompt.size()) - begin);
      std::vector<int32_t> captures;
      for (const int32_t mark : {500, 1000, 1500, system_tokens}) {
        const bool is_read = begin < mark && mark <= begin + count;
        if (mark <= system_tokens && is_read) captures.push_back(mark - begin);
      }
      step(sequence, std::span(prompt).subspan(size_t(begin), size_t(count)), captures,
           is_measured);
    }
    anchor(sequence, AnchorKind::prompt_end);
    for (int32_t token = 0; token < 4; ++token) {
      const Token answered = Token(7);
      step(sequence, {&answered, 1}, {}, is_measured);
    }
    anchor(sequence, AnchorKind::answer_end);
    memory_->protect_from(sequence, system_tokens);
    memory_->suspend(sequence);
    cache_.keep(std::move(sequence));
  }

  void look_up(const Text& prompt, Times& times) {
    timed(times, [&] { return cache_.find(prompt, Variant::plain, true).plan.resume; });
  }
  size_t used_bytes() const { return memory_->usage().used_bytes(); }
  Times& room_times() { return room_times_; }

 private:
  void replay(Sequence& sequence) {
    if (!memory_->needs_replay(sequence)) return;
    cache_.begin_replay(sequence, kChunkTokens).value().commit();
  }
  void step(Sequence& sequence, std::span<const Token> tokens, const std::vector<int32_t>& captures,
            bool is_measured) {
    Times unmeasured;
    timed(is_measured ? room_times_ : unmeasured,
          [&] {
            return cache_.begin(sequence,
                                {.tokens = tokens, .captures = captures, .keeps_hidden = true});
          })
        .value()
        .commit(int32_t(tokens.size()));
  }
  void anchor(Sequence& sequence, AnchorKind kind) {
    if (!memory_->keep_anchor(sequence, kind)) std::abort();
  }

  NoMemory device_;
  std::unique_ptr<Memory> memory_;
  PrefixCache cache_;
  Times room_times_;
};

struct Kind {
  const char* name;
  ToyModel model;
};

// Conversations of 2k tokens that have nothing in common; or 2k tokens, of a system prompt or of a
// document that 30 of them are about, and a message of their own.
enum class Sharing { nothing, system, documents };

Text prompt_of(Sharing sharing, int32_t index) {
  const uint32_t own = uint32_t(100000 + index);
  if (sharing == Sharing::nothing) return text(kPromptTokens, own);
  const uint32_t shared = sharing == Sharing::system ? 1 : 1 + uint32_t(index) / 30;
  return joined(text(kPromptTokens, shared), text(kMessageTokens, own));
}

void measure(const Kind& kind, Sharing sharing, int32_t count) {
  const int32_t system_tokens = sharing == Sharing::nothing ? kMessageTokens : kPromptTokens;
  const auto fill = [&](Bench& bench) {
    for (int32_t index = 0; index < count; ++index) {
      bench.converse(prompt_of(sharing, index), system_tokens, false);
    }
  };
  size_t bytes = 0;
  Times look_ups;
  {
    Bench bench(kind.model, size_t(8) << 30);
    fill(bench);
    bytes = bench.used_bytes();
    // The next message, another first message, and a prompt that shares less.
    for (int32_t round = 0; round < 1000; ++round) {
      const Text kept = prompt_of(sharing, int32_t((uint32_t(round) * 7919u) % uint32_t(count)));
      const Text message = text(50, uint32_t(900000 + round));
      bench.look_up(joined(kept, message), look_ups);
      const auto part = [&](int32_t tokens) { return Text(kept.begin(), kept.begin() + tokens); };
      bench.look_up(joined(part(system_tokens), message), look_ups);
      bench.look_up(joined(part(round % kPromptTokens), message), look_ups);
    }
  }
  Bench bench(kind.model, bytes);
  fill(bench);
  const int32_t more = std::clamp(count, 100, 1000);
  for (int32_t index = 0; index < more; ++index) {
    bench.converse(prompt_of(sharing, count + index), system_tokens, true);
  }
  constexpr const char* kSharing[] = {"nothing", "a system", "documents"};
  Times& room = bench.room_times();
  fmt::print("{:<10} {:<10} {:>6} kept: {:>6.1f} {:>8.1f} {:>8.1f} {:>8.0f} {:>8.0f} {:>8.0f}\n",
             kind.name, kSharing[size_t(sharing)], count, look_ups.median(),
             look_ups.nearly_worst(), look_ups.worst(), room.median(), room.nearly_worst(),
             room.worst());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int32_t> counts;
  for (int index = 1; index < argc; ++index) counts.push_back(std::atoi(argv[index]));
  if (counts.empty()) counts = {256, 1000, 10000};
  if (*std::min_element(counts.begin(), counts.end()) < 1) return 2;
  using Toy = ToyModel;
  // A state takes as much as a thousand tokens of keys and values.
  const State state = State::recurrent({1000, 2});
  const std::vector<Kind> kinds = {{"full", Toy({{Toy::full()}})},
                                   {"window", Toy({{Toy::window(256)}, {Toy::full()}})},
                                   {"recurrent", Toy({{state}, {Toy::full()}})}};
  fmt::print(
      "microseconds: a look-up's median, 99.9 % and worst; the same of steps' room, in a full "
      "memory\n");
  for (const Kind& kind : kinds) {
    for (const Sharing sharing : {Sharing::nothing, Sharing::system, Sharing::documents}) {
      for (const int32_t count : counts) measure(kind, sharing, count);
    }
  }
  return 0;
}
