// What a tier and a router make of many machines (docs/tier.md): reuse beside that of one machine
// that forgets nothing, waiting, what is sent, and that nothing goes wrong when everything does.
//   cluster_simulation [--nodes COUNT] [--seconds COUNT] [--seed SEED] [--traffic]
//                      [--peers | --folder GB | --json] [--faults]
// A row for each rule of the router, with and without a tier; or for each way in which nodes share
// what they have under `cairn route` (--json: for a picture), or for folders of one size. --faults:
// one run in which each happens once, run twice, and what has to hold then: the exit status is 1
// where it does not. --traffic prints what the made-up traffic looks like.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <span>
#include <string_view>

#include "bench/arguments.h"
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
  fmt::print("{:<14}{:<22}{:>7}{:>8}{:>8}{:>8}{:>8}{:>8}{:>9}{:>8}{:>8}{:>8}{:>8}\n", "router",
             "tier", "local", "all", "of one", "p50 s", "p99 s", "good", "written", "read", "lent",
             "told", "shard");
}

// MB/s of all.
double rate(double bytes, double seconds) {
  return bytes / seconds / 1e6;
}

void print_row(std::string_view router, std::string_view tier, const ClusterFigures& f,
               double seconds) {
  fmt::print(
      "{:<14}{:<22}{:>7.3f}{:>8.3f}{:>7.1f}%{:>8.1f}{:>8.1f}{:>7.1f}%{:>9.0f}{:>8.0f}{:>8.0f}"
      "{:>8.0f}{:>8.2f}\n",
      router, tier, f.local_reuse, f.reuse, 100 * f.reuse / f.ideal_reuse, f.wait_p50, f.wait_p99,
      100 * f.goodput, rate(f.written_bytes, seconds), rate(f.read_bytes, seconds),
      rate(f.lent_bytes, seconds), rate(f.directory_bytes, seconds), f.largest_shard);
  std::fflush(stdout);
}

// How nodes share what they have.
struct Way {
  std::string_view name;
  tier::Publishing publishing = tier::Publishing::nothing;
  double shard_bytes = 64e9;
  bool has_peers = false;
  int32_t folder_blocks = ClusterOptions().folder_blocks;
};
// Sizes of a tier, for each router.
constexpr Way kTiers[] = {
    {"none"},
    {"second use", tier::Publishing::second_use},
    {"all", tier::Publishing::all},
    {"second use, room", tier::Publishing::second_use, 1e12},
    {"all, room for all", tier::Publishing::all, 1e12},
};
// Of 512 tokens of 32 KiB.
constexpr double kBlockBytes = 512 * 32768;

// Beside nodes that lend, for `cairn route` alone.
constexpr Way kLoans[] = {
    {"none"},
    {"second use", tier::Publishing::second_use},
    {"lent", tier::Publishing::nothing, 64e9, true},
    {"lent, second use", tier::Publishing::second_use, 64e9, true},
    {"lent, 200 GB folders", tier::Publishing::nothing, 64e9, true, int32_t(200e9 / kBlockBytes)},
};

ClusterFigures simulate(const std::vector<Ask>& asks, const TrafficOptions& traffic, Policy policy,
                        const Way& way) {
  return bench::simulate(asks,
                         {.nodes = traffic.nodes,
                          .policy = policy,
                          .publishing = way.publishing,
                          .has_tier = way.has_peers || way.publishing != tier::Publishing::nothing,
                          .shard_bytes = way.shard_bytes,
                          .has_peers = way.has_peers,
                          .folder_blocks = way.folder_blocks,
                          .seed = traffic.seed});
}

// `ways` under each of the router's rules, or under that of `cairn route` alone.
void compare(const std::vector<Ask>& asks, const TrafficOptions& traffic, std::span<const Way> ways,
             bool has_peers) {
  print_head();
  ClusterFigures figures;
  for (const Policy policy : kPolicies) {
    if (has_peers && policy != Policy::cost) continue;
    for (const Way& way : ways) {
      figures = simulate(asks, traffic, policy, way);
      print_row(name_of(policy), way.name, figures, traffic.seconds);
    }
  }
  fmt::print(
      "one machine as fast as {}: reuse {:.3f}, p99 {:.1f} s; written, read, lent, told: MB/s of "
      "all\n",
      traffic.nodes, figures.ideal_reuse, figures.machine_p99);
}

// For tools/make_pictures.py.
void tell(const std::vector<Ask>& asks, const TrafficOptions& traffic) {
  fmt::print("{{\"nodes\": {}, \"prompts\": {}, \"seconds\": {:.0f}, \"ways\": [", traffic.nodes,
             asks.size(), traffic.seconds);
  ClusterFigures f;
  for (const Way& way : kLoans) {
    f = simulate(asks, traffic, Policy::cost, way);
    const auto mb = [&](double bytes) { return rate(bytes, traffic.seconds); };
    fmt::print(
        "{}\n  {{\"name\": \"{}\", \"of_one\": {:.3f}, \"good\": {:.3f}, \"p50\": {:.1f}, "
        "\"p99\": {:.1f}, \"written\": {:.0f}, \"read\": {:.0f}, \"lent\": {:.0f}, \"told\": "
        "{:.0f}}}",
        &way == kLoans ? "" : ",", way.name, f.reuse / f.ideal_reuse, f.goodput, f.wait_p50,
        f.wait_p99, mb(f.written_bytes), mb(f.read_bytes), mb(f.lent_bytes), mb(f.directory_bytes));
    std::fflush(stdout);
  }
  fmt::print("],\n \"one\": {{\"reuse\": {:.3f}, \"p99\": {:.1f}}}}}\n", f.ideal_reuse,
             f.machine_p99);
}

bool holds(std::string_view what, bool is_so) {
  fmt::print("{} {}\n", is_so ? "holds: " : "BROKEN:", what);
  return is_so;
}

bool try_faults(const std::vector<Ask>& asks, const TrafficOptions& traffic, bool has_peers) {
  const double seconds = traffic.seconds;
  ClusterOptions options{.nodes = traffic.nodes,
                         .has_peers = has_peers,
                         .seed = traffic.seed,
                         .faults = all_faults(seconds)};
  options.watched_from = options.faults.back().until + 60;
  options.watched_until = seconds;
  const auto began = std::chrono::steady_clock::now();
  const ClusterFigures f = bench::simulate(asks, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  print_head();
  print_row(name_of(Policy::cost), has_peers ? "lent, second use" : "second use", f, seconds);
  fmt::print(
      "{} prompts, {} failed with their nodes; fetched {}, slower {}, late {}, paused {}, "
      "unreachable {}, refused {}, waited for others {}\n",
      f.asks, f.failed, f.fetched, f.slower, f.late, f.paused, f.unreachable, f.refused,
      f.lease_waits);
  if (has_peers) {
    fmt::print("borrowed {}, lenders that were busy {}, gone {}, had lost it {}\n", f.borrowed,
               f.lenders_busy, f.lenders_gone, f.lenders_lost);
  }
  fmt::print("one machine: reuse {:.3f}, p99 {:.1f} s; {:.0f} s of this machine's time\n",
             f.ideal_reuse, f.machine_p99, took.count());
  ClusterOptions calm = options;
  calm.faults.clear();
  const double expected = bench::simulate(asks, calm).watched_reuse;
  bool is_well = holds("V1: no wrong block is ever used", f.wrong == 0 && f.refused > 0);
  is_well &= holds("V2: every prompt ends, rightly or since its node was gone",
                   f.answered + f.failed == f.asks && f.failed < f.asks / 100);
  is_well &= holds("V3: no node and no shard has more than it may", f.is_within_budget);
  is_well &=
      holds(fmt::format("V4: a minute after the last fault reuse is {:.3f} of one machine's, "
                        "and without any fault {:.3f}",
                        f.watched_reuse, expected),
            f.watched_reuse > 0.95 * expected);
  is_well &=
      holds("V5: once more, the same events", bench::simulate(asks, options).events == f.events);
  return is_well;
}

}  // namespace

int main(int argument_count, char** arguments) {
  TrafficOptions traffic;
  double folder_gb = 0;
  bool has_faults = false, has_peers = false, is_told = false, shows_traffic = false;
  for (int index = 1; index < argument_count; ++index) {
    const std::string_view argument = arguments[index];
    const std::string_view value = index + 1 < argument_count ? arguments[index + 1] : "";
    if (argument == "--faults") {
      has_faults = true;
    } else if (argument == "--peers") {
      has_peers = true;
    } else if (argument == "--json") {
      is_told = true;
    } else if (argument == "--traffic") {
      shows_traffic = true;
    } else if (argument == "--folder" && parse(value, folder_gb) && folder_gb > 0 &&
               folder_gb < 10000) {
      has_peers = true;
      ++index;
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
                 "[--seed SEED] [--traffic] [--peers | --folder GB | --json] [--faults]\n");
      return 2;
    }
  }
  const std::vector<Ask> asks = make_traffic(traffic);
  if (shows_traffic) {
    print_traffic(asks);
    return 0;
  }
  if (has_faults) {
    return try_faults(asks, traffic, has_peers) ? 0 : 1;
  }
  const Way of_folder{.name = "lent, such folders",
                      .has_peers = true,
                      .folder_blocks = int32_t(folder_gb * 1e9 / kBlockBytes)};
  if (is_told) {
    tell(asks, traffic);
  } else if (has_peers) {
    compare(asks, traffic, folder_gb > 0 ? std::span(&of_folder, 1) : std::span(kLoans), true);
  } else {
    compare(asks, traffic, kTiers, false);
  }
  return 0;
}
