// How many tokens a rewind costs under different rules for which states to keep. No model: chats
// are lengths, a state is a position, a rewind costs the tokens from the nearest state at or before
// it.
//   eviction_simulation [--json] [--chats COUNT] [--seed SEED]
// Every rule sees the same chats and the same rewinds. The habits that `loss` learns are its own:
// it is told the target of a rewind after having paid for it.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/arguments.h"
#include "memory/cache/placement.h"

namespace {

using namespace cairn::memory;

constexpr int32_t kTurns = 40;
constexpr std::array<size_t, 4> kStateCounts = {4, 8, 16, 32};
constexpr double kRewindsPerTurn = 0.5;

// The standard library's distributions differ between libraries; these do not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  double unit() { return double(engine_() >> 11) * 0x1p-53; }
  int32_t below(int32_t bound) { return int32_t(unit() * bound); }
  // Lengths of messages: half of them below `median`, few of them long.
  int32_t message_length(double median, int32_t least, int32_t most) {
    const double normal = std::sqrt(-2 * std::log(1 - unit())) * std::cos(6.283185307 * unit());
    return std::clamp(int32_t(median * std::exp(normal)), least, most);
  }

 private:
  std::mt19937_64 engine_;
};

// A chat as it grows: after each turn, the rewinds that happened there.
struct Turn {
  int32_t message_start = 0, prompt_end = 0, answer_end = 0;
  std::vector<int32_t> targets;
};
using Chat = std::vector<Turn>;

enum class Traffic { expected, unexpected };

// The mix of rewinds that chats show: ask again, edit what was said last, edit what was said some
// messages ago, start again behind the system prompt.
int32_t expected_target(Random& random, const Chat& chat) {
  const double sort = random.unit();
  const Turn& last = chat.back();
  if (sort < 0.40) return last.prompt_end;
  if (sort < 0.65) return last.message_start;
  if (sort < 0.75) return chat.front().message_start;
  if (sort < 0.80) return chat[size_t(random.below(int32_t(chat.size())))].answer_end;
  size_t back = 1;
  while (back + 1 < chat.size() && random.unit() < 0.7) ++back;
  return chat[chat.size() - std::min(back + 1, chat.size())].message_start;
}

// Besides, 30 % to any position and 30 % into the middle of any answer.
int32_t target_of(Random& random, const Chat& chat, Traffic traffic) {
  const double sort = traffic == Traffic::expected ? 1 : random.unit();
  if (sort < 0.3) return random.below(chat.back().answer_end + 1);
  if (sort < 0.6) {
    const Turn& turn = chat[size_t(random.below(int32_t(chat.size())))];
    return turn.prompt_end + random.below(turn.answer_end - turn.prompt_end + 1);
  }
  return expected_target(random, chat);
}

std::vector<Chat> make_chats(uint64_t seed, int32_t chat_count, Traffic traffic) {
  Random random(seed);
  std::vector<Chat> chats;
  for (int32_t index = 0; index < chat_count; ++index) {
    Chat chat;
    int32_t length = random.message_length(400, 20, 8000);  // The system prompt.
    for (int32_t turn = 0; turn < kTurns; ++turn) {
      Turn next{.message_start = length};
      next.prompt_end = next.message_start + random.message_length(120, 5, 6000);
      next.answer_end = length = next.prompt_end + random.message_length(300, 5, 4000);
      chat.push_back(next);
      if (random.unit() < kRewindsPerTurn) {
        chat.back().targets.push_back(target_of(random, chat, traffic));
      }
    }
    chats.push_back(std::move(chat));
  }
  return chats;
}

enum class Marks { messages, every_512, borders };
enum class Drop { oldest, gap_product, loss };

struct Rule {
  std::string_view name;
  Marks marks;
  Drop drop;
};

constexpr std::array<Rule, 4> kRules = {
    Rule{"message starts, drop the oldest", Marks::messages, Drop::oldest},
    Rule{"every 512, drop the oldest", Marks::every_512, Drop::oldest},
    Rule{"every 512, drop by gap product", Marks::every_512, Drop::gap_product},
    Rule{"borders, drop by loss", Marks::borders, Drop::loss}};

// One chat's states under one rule.
class Keeper {
 public:
  Keeper(const Rule& rule, size_t state_count, const RewindHabits* habits)
      : rule_(rule), state_count_(state_count), habits_(habits) {}

  void grow(const Turn& turn) {
    if (rule_.marks == Marks::every_512) {
      while (next_mark_ <= turn.answer_end) {
        keep(next_mark_);
        next_mark_ += 512;
      }
      return;
    }
    mark(turn.message_start, AnchorKind::message_start);
    if (rule_.marks == Marks::messages) return;
    mark(turn.prompt_end, AnchorKind::prompt_end);
    mark(turn.answer_end, AnchorKind::answer_end);
  }

  int32_t replay(int32_t target) const {
    const auto next =
        std::upper_bound(points_.begin(), points_.end(), target,
                         [](int32_t bound, const ResumePoint& p) { return bound < p.position; });
    return next == points_.begin() ? target : target - std::prev(next)->position;
  }

  std::span<const Place> places() const { return places_; }

 private:
  void mark(int32_t position, AnchorKind kind) {
    places_.push_back({position, kind});
    if (points_.empty() || points_.back().position != position) keep(position);
  }

  void keep(int32_t position) {
    points_.push_back({position});
    if (points_.size() <= state_count_) return;
    points_.erase(points_.begin() + std::ptrdiff_t(worst(position)));
  }

  size_t worst(int32_t length) const {
    if (rule_.drop == Drop::oldest) return 0;
    if (rule_.drop == Drop::loss) return least_loss(length);
    // The newest state stays: behind it there is no gap yet.
    size_t worst = 0;
    double least = HUGE_VAL;
    for (size_t index = 0; index + 1 < points_.size(); ++index) {
      const double before = index == 0 ? 0 : points_[index - 1].position;
      const double product = (points_[index].position - before) *
                             double(points_[index + 1].position - points_[index].position);
      if (product < least) {
        least = product;
        worst = index;
      }
    }
    return worst;
  }

  size_t least_loss(int32_t length) const {
    const TargetMass mass(*habits_, places_, length);
    std::vector<double> losses;
    for (size_t index = 0; index < points_.size(); ++index) {
      losses.push_back(loss(mass, points_, index));
    }
    return size_t(std::min_element(losses.begin(), losses.end()) - losses.begin());
  }

  const Rule& rule_;
  size_t state_count_;
  const RewindHabits* habits_;
  int32_t next_mark_ = 512;
  std::vector<Place> places_;
  std::vector<ResumePoint> points_;  // At most state_count_.
};

// Tokens to compute again for a rewind, on average. `habits` learn if `learns`.
double mean_replay(const std::vector<Chat>& chats, const Rule& rule, size_t state_count,
                   RewindHabits& habits, bool learns) {
  double sum = 0;
  size_t rewind_count = 0;
  for (const Chat& chat : chats) {
    Keeper keeper(rule, state_count, &habits);
    for (const Turn& turn : chat) {
      keeper.grow(turn);
      for (const int32_t target : turn.targets) {
        sum += keeper.replay(target);
        ++rewind_count;
        if (learns) habits.learn(keeper.places(), turn.answer_end, target);
      }
    }
  }
  return sum / double(std::max<size_t>(rewind_count, 1));
}

struct Row {
  std::string name, traffic;
  std::array<double, kStateCounts.size()> means{};
};

struct World {
  std::vector<Chat> lessons, expected, unexpected;
};

enum class Habits { blank, learned, learning };

Row measure(const World& world, const Rule& rule, Traffic traffic, Habits kind,
            std::string_view suffix) {
  Row row{std::string(rule.name) + std::string(suffix),
          traffic == Traffic::expected ? "expected" : "unexpected",
          {}};
  for (size_t column = 0; column < kStateCounts.size(); ++column) {
    RewindHabits habits;
    if (kind == Habits::learned)
      mean_replay(world.lessons, rule, kStateCounts[column], habits, true);
    row.means[column] =
        mean_replay(traffic == Traffic::expected ? world.expected : world.unexpected, rule,
                    kStateCounts[column], habits, kind == Habits::learning);
  }
  return row;
}

std::vector<Row> run(const World& world) {
  std::vector<Row> rows;
  for (const Traffic traffic : {Traffic::expected, Traffic::unexpected}) {
    for (const Rule& rule : kRules) {
      if (rule.drop != Drop::loss) {
        rows.push_back(measure(world, rule, traffic, Habits::blank, ""));
        continue;
      }
      rows.push_back(measure(world, rule, traffic, Habits::blank, ", knowing nothing"));
      rows.push_back(measure(world, rule, traffic, Habits::learned, ", taught by expected"));
      rows.push_back(measure(world, rule, traffic, Habits::learning, ", learning as it goes"));
    }
  }
  return rows;
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("Tokens replayed for a rewind, on average; chats of {} turns.\n", kTurns);
  fmt::print("{:<12}{:<46}", "traffic", "rule");
  for (const size_t count : kStateCounts) fmt::print("{:>8}", fmt::format("K={}", count));
  fmt::print("\n");
  for (const Row& row : rows) {
    fmt::print("{:<12}{:<46}", row.traffic, row.name);
    for (const double mean : row.means) fmt::print("{:>8.0f}", mean);
    fmt::print("\n");
  }
}

void print_json(const std::vector<Row>& rows, uint64_t seed, int32_t chat_count) {
  fmt::print("{{\"seed\": {}, \"chats\": {}, \"turns\": {}, \"rows\": [", seed, chat_count, kTurns);
  for (size_t index = 0; index < rows.size(); ++index) {
    const Row& row = rows[index];
    fmt::print("{}\n  {{\"traffic\": \"{}\", \"rule\": \"{}\", \"mean_tokens\": {{",
               index ? "," : "", row.traffic, row.name);
    for (size_t column = 0; column < row.means.size(); ++column) {
      fmt::print("{}\"{}\": {:.2f}", column ? ", " : "", kStateCounts[column], row.means[column]);
    }
    fmt::print("}}}}");
  }
  fmt::print("\n]}}\n");
}

}  // namespace

int main(int argument_count, char** arguments) {
  bool json = false;
  int32_t chat_count = 200;
  uint64_t seed = 1;
  for (int index = 1; index < argument_count; ++index) {
    const std::string_view argument = arguments[index];
    const std::string_view value = index + 1 < argument_count ? arguments[index + 1] : "";
    if (argument == "--json") {
      json = true;
    } else if (argument == "--chats" && cairn::bench::parse(value, chat_count) && chat_count > 0) {
      ++index;
    } else if (argument == "--seed" && cairn::bench::parse(value, seed)) {
      ++index;
    } else {
      fmt::print(stderr, "usage: eviction_simulation [--json] [--chats COUNT] [--seed SEED]\n");
      return 2;
    }
  }
  const World world{make_chats(seed + 1000, chat_count, Traffic::expected),
                    make_chats(seed, chat_count, Traffic::expected),
                    make_chats(seed, chat_count, Traffic::unexpected)};
  const std::vector<Row> rows = run(world);
  if (json) {
    print_json(rows, seed, chat_count);
  } else {
    print_table(rows);
  }
}
