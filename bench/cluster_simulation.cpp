// What a tier and a router make of many machines (docs/tier.md): reuse beside that of one machine
// that forgets nothing, waiting, what is sent, and that nothing goes wrong when everything does.
//   cluster_simulation [--nodes COUNT] [--seconds COUNT] [--seed SEED] [--faults] [--traffic]
// Without --faults a row for each rule of the router, with and without a tier; with it one run of
// the cost router in which each fault happens once, run twice, and what has to hold then: the exit
// status is 1 where it does not. --traffic prints what the made-up traffic looks like.
#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <string_view>

#include "bench/simulation/cluster.h"

namespace {

using namespace cairn;
using namespace cairn::bench;

void print_traffic(const std::vector<Ask>& asks) {
  const TrafficFigures f = figures_of(asks);
  fmt::print("{} prompts; blocks of 512 tokens: mean {:.1f}, p50 {:.0f}, p90 {:.0f}, p99 {:.0f}\n",
             asks.size(), f.blocks_mean, f.blocks_p50, f.blocks_p90, f.blocks_p99);
  fmt::print(
      "reuse {:.3f}, used once {:.2f}, gaps p50 {:.0f} s, p80 {:.0f}, p95 {:.0f}, p99 {:.0f}, "
      "variance by mean of a second {:.1f}\n",
      f.reuse, f.used_once, f.gap_p50, f.gap_p80, f.gap_p95, f.gap_p99, f.burst);
}

void print_head() {
  fmt::print("{:<14}{:<20}{:>7}{:>8}{:>8}{:>8}{:>8}{:>9}{:>9}{:>9}{:>7}\n", "router", "tier",
             "local", "all", "of one", "p50 s", "p99 s", "good", "written", "read", "shard");
}

void print_row(std::string_view router, std::string_view tier, const ClusterFigures& f,
               double seconds) {
  fmt::print(
      "{:<14}{:<20}{:>7.3f}{:>8.3f}{:>7.0f}%{:>8.1f}{:>8.1f}{:>8.1f}%{:>9.0f}{:>9.0f}{:>7.2f}\n",
      router, tier, f.local_reuse, f.reuse, 100 * f.reuse / f.ideal_reuse, f.wait_p50, f.wait_p99,
      100 * f.goodput, f.written_bytes / seconds / 1e6, f.read_bytes / seconds / 1e6,
      f.largest_shard);
}

void compare(const std::vector<Ask>& asks, int32_t nodes, uint64_t seed, double seconds) {
  struct Way {
    std::string_view name;
    tier::Publishing publishing;
    double shard_bytes = 64e9;
  };
  constexpr Way kWays[] = {
      {"none", tier::Publishing::nothing},
      {"second use", tier::Publishing::second_use},
      {"all", tier::Publishing::all},
      {"second use, room", tier::Publishing::second_use, 1e12},
      {"all, room for all", tier::Publishing::all, 1e12},
  };
  print_head();
  double ideal = 0, machine = 0;
  for (const Policy policy : kPolicies) {
    for (const Way& way : kWays) {
      const ClusterFigures figures = simulate(asks, {.nodes = nodes,
                                                     .policy = policy,
                                                     .publishing = way.publishing,
                                                     .has_tier = &way != kWays,
                                                     .shard_bytes = way.shard_bytes,
                                                     .seed = seed});
      print_row(name_of(policy), way.name, figures, seconds);
      ideal = figures.ideal_reuse;
      machine = figures.machine_p99;
    }
  }
  fmt::print("one machine as fast as {}: reuse {:.3f}, p99 {:.1f} s; written, read: MB/s of all\n",
             nodes, ideal, machine);
}

bool holds(std::string_view what, bool is_so) {
  fmt::print("{} {}\n", is_so ? "holds: " : "BROKEN:", what);
  return is_so;
}

bool try_faults(const std::vector<Ask>& asks, int32_t nodes, uint64_t seed, double seconds) {
  ClusterOptions options{.nodes = nodes, .seed = seed, .faults = all_faults(seconds)};
  options.watched_from = options.faults.back().until + 60;
  options.watched_until = seconds;
  const auto began = std::chrono::steady_clock::now();
  const ClusterFigures f = simulate(asks, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  print_head();
  print_row("cost", "second use", f, seconds);
  fmt::print(
      "{} prompts, {} failed with their nodes; fetched {}, slower {}, late {}, paused {}, "
      "unreachable {}, refused {}, waited for others {}\n",
      f.asks, f.failed, f.fetched, f.slower, f.late, f.paused, f.unreachable, f.refused,
      f.lease_waits);
  fmt::print("one machine: reuse {:.3f}, p99 {:.1f} s; {:.0f} s of this machine's time\n",
             f.ideal_reuse, f.machine_p99, took.count());
  ClusterOptions calm = options;
  calm.faults.clear();
  const double expected = simulate(asks, calm).watched_reuse;
  bool is_well = holds("V1: no wrong block is ever used", f.wrong == 0 && f.refused > 0);
  is_well &= holds("V2: every prompt ends, rightly or since its node was gone",
                   f.answered + f.failed == f.asks && f.failed < f.asks / 100);
  is_well &= holds("V3: no node and no shard has more than it may", f.is_within_budget);
  is_well &=
      holds(fmt::format("V4: a minute after the last fault reuse is {:.3f} of one machine's, "
                        "and without any fault {:.3f}",
                        f.watched_reuse, expected),
            f.watched_reuse > 0.95 * expected);
  is_well &= holds("V5: once more, the same events", simulate(asks, options).events == f.events);
  return is_well;
}

template <class T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

int main(int argument_count, char** arguments) {
  TrafficOptions traffic;
  bool has_faults = false, shows_traffic = false;
  for (int index = 1; index < argument_count; ++index) {
    const std::string_view argument = arguments[index];
    const std::string_view value = index + 1 < argument_count ? arguments[index + 1] : "";
    if (argument == "--faults") {
      has_faults = true;
    } else if (argument == "--traffic") {
      shows_traffic = true;
    } else if (argument == "--nodes" && parse(value, traffic.nodes) && traffic.nodes > 0 &&
               traffic.nodes < 60000) {
      ++index;
    } else if (argument == "--seconds" && parse(value, traffic.seconds) && traffic.seconds >= 60) {
      ++index;
    } else if (argument == "--seed" && parse(value, traffic.seed)) {
      ++index;
    } else {
      fmt::print(stderr,
                 "usage: cluster_simulation [--nodes COUNT] [--seconds COUNT] "
                 "[--seed SEED] [--faults] [--traffic]\n");
      return 2;
    }
  }
  const std::vector<Ask> asks = make_traffic(traffic);
  if (shows_traffic) {
    print_traffic(asks);
    return 0;
  }
  if (has_faults) {
    return try_faults(asks, traffic.nodes, traffic.seed, traffic.seconds) ? 0 : 1;
  }
  compare(asks, traffic.nodes, traffic.seed, traffic.seconds);
  return 0;
}
