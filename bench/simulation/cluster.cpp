// Events in their order: prompts come, nodes begin and end, records arrive, things go wrong.
#include "bench/simulation/cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "bench/figures.h"
#include "bench/simulation/lenders.h"
#include "bench/simulation/node.h"
#include "bench/simulation/simulated_redis.h"
#include "tier/lease.h"
#include "tier/tier.h"

namespace cairn::bench {
namespace {

using tier::Breaker;
using Seconds = tier::Costs::Seconds;

// A model of 32 KiB for a token, on machines with 10 Gbit/s; one server of the tier for four of
// them, with the 64 GB of docs/tier.md.
constexpr double kBlockTokens = double(store::kChainTokens) * kTokensOfSimulated;
constexpr double kBlockBytes = kBlockTokens * 32768;
constexpr double kLinkBytesPerSecond = 1.1e9, kRoundTrip = 0.0005, kConnecting = 0.05;
constexpr int32_t kNodesOfShard = 4;
// At this depth a token costs twice what the first one does.
constexpr double kDoubleDepth = 32768;
// As the real members do: a quarter of the time (its measure follows the newest fifth), between
// questions whether somebody is done.
constexpr double kBusyPart = 0.25, kBusyWeight = 0.2, kAskAgain = 0.25;
constexpr int kLookedFor = 4;
// Sequences of other machines that are looked at, and what one is asked before its records.
constexpr size_t kManifestsMax = 6;
constexpr double kRoundTripsOfPeer = 5;
constexpr double kFolderBytesPerSecond = 2e9;
constexpr double kLeaseUnknown = 2, kLeaseMin = 0.2, kLeaseMax = 60;
constexpr double kGoodWait = 5;
constexpr std::string_view kSecret = "the key of all simulated nodes, 32 bytes and more";

Breaker::Clock::time_point time_of(double seconds) {
  return Breaker::Clock::time_point(
      std::chrono::duration_cast<Breaker::Clock::duration>(Seconds(seconds)));
}

// What a block's bytes have to be: as a model computes them from all tokens up to there.
Sha256Digest payload_of(const Sha256Digest& key) {
  return Sha256().add("a block").add(std::as_bytes(std::span(key))).finish();
}

Sha256Digest seal_of(const Sha256Digest& name, const Sha256Digest& payload) {
  return tier::keyed_digest(kSecret, std::as_bytes(std::span(name)),
                            std::as_bytes(std::span(payload)));
}

double mean_cost(const std::vector<Ask>& asks, bool is_ideal) {
  double cost = 0;
  for (const Ask& ask : asks) {
    const double begin = is_ideal ? ask.reusable * kBlockTokens : 0;
    const double end = ask.blocks * kBlockTokens;
    cost += (end - begin) * (1 + 0.5 * (begin + end) / kDoubleDepth);
  }
  return cost;
}

struct Event {
  double at = 0;
  uint64_t order = 0;  // Of two at one time that which was planned first.
  std::function<void()> what;

  bool operator<(const Event& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};

class Simulation {
 public:
  Simulation(const std::vector<Ask>& asks, const ClusterOptions& options)
      : asks_(asks),
        options_(options),
        random_(options.seed + 1),
        redis_({.shards = (options.nodes + kNodesOfShard - 1) / kNodesOfShard,
                .shard_bytes = options.shard_bytes,
                .block_bytes = kBlockBytes,
                .seed = options.seed + 2}) {
    const double span = asks.empty() ? 1 : asks.back().at;
    token_seconds_ = options.load * span * options.nodes / std::max(1.0, mean_cost(asks, true));
    router_.emplace(Router::Options{.policy = options.policy,
                                    .nodes = options.nodes,
                                    .block_seconds = token_seconds_ * kBlockTokens,
                                    .seed = options.seed + 3});
    if (options.has_peers) {
      lenders_.emplace(Lenders::Options{.nodes = options.nodes,
                                        .shelf_blocks = options.shelf_blocks,
                                        .folder_blocks = options.folder_blocks,
                                        .block_bytes = kBlockBytes,
                                        .bytes_per_second = options.lent_per_second,
                                        .link_bytes_per_second = kLinkBytesPerSecond,
                                        .secret = kSecret,
                                        .seed = options.seed + 4},
                       &redis_.holders);
    }
    for (uint64_t node = 0; node < uint64_t(options.nodes); ++node) {
      nodes_.push_back(
          std::make_unique<Node>(size_t(options.node_blocks), options.seed + 100 + 3 * node));
    }
  }

  ClusterFigures run() {
    for (const Fault& fault : options_.faults) {
      plan(fault.at, [this, fault] { begin(fault); });
      if (fault.until > fault.at) plan(fault.until, [this, fault] { end(fault); });
    }
    if (!asks_.empty()) tell_router();
    for (size_t index = 0; index < asks_.size(); ++index) {
      while (!events_.empty() && events_.top().at <= asks_[index].at) take_event();
      now_ = asks_[index].at;
      come(asks_[index]);
    }
    while (!events_.empty()) take_event();
    return finish();
  }

 private:
  void plan(double at, std::function<void()> what) {
    events_.push({at, ++planned_, std::move(what)});
  }
  void take_event() {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.what();
  }
  void log(std::string_view what, uint64_t first, uint64_t second = 0) {
    log_.add(what).add(uint64_t(std::llround(now_ * 1e9))).add(first).add(second);
  }

  void tell_router();
  void come(const Ask& ask);
  void start_next(size_t index);
  void begin_work(size_t index, const std::shared_ptr<Work>& work);
  void end_work(size_t index, uint32_t life);
  // Of a prompt's first blocks so many lie elsewhere: in the tier, or on another node.
  struct Elsewhere {
    int32_t links = 0;
    std::optional<size_t> lender = std::nullopt;
    uint64_t number = 0;  // The lender's.
  };
  void ask_lenders(size_t index, const Work& work, int32_t held, Elsewhere& best, double& spent);
  bool fetch(size_t index, Work& work, int32_t& held, const Elsewhere& there, double& spent);
  double arrival(size_t index, Work& work, const Elsewhere& there);
  bool are_connected(size_t one, size_t other) const {
    return nodes_[other]->is_up && nodes_[one]->is_cut_off == nodes_[other]->is_cut_off;
  }
  bool waits_for_lease(size_t index, const std::shared_ptr<Work>& work, int32_t held,
                       int32_t in_tier);
  bool takes(Node& node, Work& work, int32_t link, const Elsewhere& there);
  const SimulatedRedis::Place& place(Work& work, int32_t link);
  bool is_reached(const Node& node) const { return !is_tier_down_ && !node.is_cut_off; }
  void publish(size_t index, const Work& work, const std::vector<Sha256Digest>& gone);
  void look_for_sent(Node& node);
  void send(Node& node, std::vector<Sha256Digest> keys);
  void begin(const Fault& fault);
  void end(const Fault& fault);
  void crash(size_t index, bool is_cold);
  void fail(const Work& work);
  void note_reuse(const Ask& ask, int32_t reused);
  double machine_p99() const;
  ClusterFigures finish();

  const std::vector<Ask>& asks_;
  const ClusterOptions& options_;
  Random random_;
  SimulatedRedis redis_;
  std::optional<Router> router_;
  std::optional<Lenders> lenders_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::priority_queue<Event> events_;
  uint64_t planned_ = 0;
  double now_ = 0, token_seconds_ = 0;
  bool is_tier_down_ = false;
  double flips_ = 0;
  std::vector<double> waits_, firsts_;
  double blocks_ = 0, ideal_ = 0, local_ = 0, fetched_ = 0;
  double watched_ideal_ = 0, watched_reused_ = 0;
  ClusterFigures figures_;
  Sha256 log_;
};

// As `cairn route` asks each second.
void Simulation::tell_router() {
  for (size_t index = 0; index < nodes_.size(); ++index) {
    const Node& node = *nodes_[index];
    const int32_t running = node.at_work == nullptr ? 0 : 1;
    if (node.is_up) router_->set_told(index, int32_t(node.waiting.size()), running);
  }
  if (now_ + 1 < asks_.back().at) plan(now_ + 1, [this] { tell_router(); });
}

void Simulation::come(const Ask& ask) {
  ++figures_.asks;
  auto work = std::make_shared<Work>();
  work->ask = ask;
  work->chain = std::make_unique<store::Chain>(Sha256Digest{}, tokens_of(ask));
  const std::optional<Router::Choice> choice = router_->choose(ask, *work->chain, now_);
  if (!choice) {
    ++figures_.failed;
    return;
  }
  work->choice = *choice;
  nodes_[choice->node]->waiting.push_back(std::move(work));
  start_next(choice->node);
}

void Simulation::start_next(size_t index) {
  Node& node = *nodes_[index];
  while (node.is_up && node.at_work == nullptr && !node.waiting.empty()) {
    const std::shared_ptr<Work> work = std::move(node.waiting.front());
    node.waiting.pop_front();
    begin_work(index, work);
  }
}

// What memory has, what the tier has, what is left.
void Simulation::begin_work(size_t index, const std::shared_ptr<Work>& work) {
  Node& node = *nodes_[index];
  const store::Chain& chain = *work->chain;
  int32_t held = node.memory.common(chain);
  double spent = 0;
  if (lenders_) {
    const int32_t in_folder = lenders_->folder_common(index, chain);
    if (in_folder > held) spent += in_folder * kBlockBytes / kFolderBytesPerSecond;
    held = std::max(held, in_folder);
  }
  const int32_t local = held;
  if (work->first_looked < 0) work->first_looked = now_;
  if (options_.has_tier && held < chain.link_count()) {
    if (!node.reads.admits(time_of(now_))) {
      ++figures_.paused;
    } else if (!is_reached(node)) {
      ++figures_.unreachable;
      spent += kConnecting;
      node.reads.note_failure(time_of(now_));
    } else {
      spent += 3 * kRoundTrip;
      node.costs.note_round_trip(Seconds(kRoundTrip));
      Elsewhere there;
      while (there.links < chain.link_count() &&
             redis_.find(place(*work, there.links + 1), now_) != nullptr) {
        ++there.links;
      }
      if (lenders_) ask_lenders(index, *work, held, there, spent);
      node.reads.note_success();
      const bool has_fetched = there.links > held && fetch(index, *work, held, there, spent);
      if (!has_fetched && waits_for_lease(index, work, held, there.links)) return;
    }
  }
  work->began = now_;
  work->computed = chain.link_count() - held;
  const double begin = held * kBlockTokens, end = chain.link_count() * kBlockTokens;
  work->computing_seconds =
      node.slowness * token_seconds_ * (end - begin) * (1 + 0.5 * (begin + end) / kDoubleDepth);
  note_reuse(work->ask, held);
  local_ += local;
  fetched_ += held - local;
  work->reading_seconds = spent + work->computing_seconds;
  node.work_seconds += work->reading_seconds;
  waits_.push_back(now_ - work->ask.at);
  firsts_.push_back(now_ - work->ask.at + work->reading_seconds);
  node.at_work = work;
  log("begins", index * 1000 + uint64_t(held), uint64_t(local));
  plan(now_ + work->reading_seconds, [this, index, life = node.life] { end_work(index, life); });
}

// As tier_source.cpp does: those who may have more than the tier has, until one cannot be reached.
void Simulation::ask_lenders(size_t index, const Work& work, int32_t held, Elsewhere& best,
                             double& spent) {
  Node& node = *nodes_[index];
  const store::Chain& chain = *work.chain;
  for (const Lenders::Found& found :
       lenders_->find(chain, std::max(held, best.links), index, kManifestsMax, now_)) {
    if (found.links <= best.links) break;
    const std::optional<size_t> lender = lenders_->node_of(found.holder.node, now_);
    if (!lender) continue;
    Breaker& breaker = node.breaker_of(found.holder.node);
    if (!breaker.admits(time_of(now_))) continue;
    if (!are_connected(index, *lender)) {
      ++figures_.lenders_gone;
      spent += kConnecting;
      breaker.note_failure(time_of(now_));
      break;
    }
    breaker.note_success();
    spent += kRoundTripsOfPeer * kRoundTrip;
    node.peer_costs.note_round_trip(Seconds(kRoundTrip));
    if (!lenders_->admits(*lender, index, now_)) {
      ++figures_.lenders_busy;
      continue;
    }
    const std::optional<int32_t> links = lenders_->has(*lender, chain, found);
    if (!links) ++figures_.lenders_lost;
    if (links && *links > best.links) {
      best = {.links = *links, .lender = lender, .number = found.holder.node};
    }
  }
}

// Records come from several servers at once, or from one node, by this one's link; all that the
// prompt begins with, as tier/place_reader.cpp fetches it. Wrong ones end it there.
bool Simulation::fetch(size_t index, Work& work, int32_t& held, const Elsewhere& there,
                       double& spent) {
  Node& node = *nodes_[index];
  tier::Costs& costs = there.lender ? node.peer_costs : node.costs;
  const double bytes = there.links * kBlockBytes;
  const tier::FetchDecision decision =
      tier::decide_fetch(costs, {.bytes = uint64_t(bytes),
                                 .begin = int64_t(held * kBlockTokens),
                                 .end = int64_t(there.links * kBlockTokens)});
  if (!decision.is_worth_it) {
    ++figures_.slower;
    return false;
  }
  const double patience = Seconds(decision.patience).count();
  const double took = arrival(index, work, there) - now_;
  (there.lender ? figures_.lent_bytes : figures_.read_bytes) += bytes;
  costs.note_fetched(uint64_t(bytes), Seconds(took));
  if (took > patience) {
    ++figures_.late;
    spent += patience;
    Breaker& breaker = there.lender ? node.breaker_of(there.number) : node.reads;
    breaker.note_failure(time_of(now_));
    return false;
  }
  spent += took;
  const int32_t before = held;
  int32_t good = 0;
  while (good < there.links && takes(node, work, good + 1, there)) ++good;
  held = std::max(held, good);
  figures_.reused_bytes += (held - before) * kBlockBytes;
  ++(there.lender ? figures_.borrowed : figures_.fetched);
  return held > before;
}

double Simulation::arrival(size_t index, Work& work, const Elsewhere& there) {
  const double arrived = now_ + there.links * kBlockBytes / kLinkBytesPerSecond;
  if (there.lender) {
    return std::max(arrived, lenders_->move(*there.lender, index, there.links, now_));
  }
  double all = arrived;
  for (int32_t link = 1; link <= there.links; ++link) {
    all = std::max(all, redis_.move(place(work, link), now_, SimulatedRedis::Way::out));
  }
  return all;
}

// Of a block of its prompt, which is asked for more than once.
const SimulatedRedis::Place& Simulation::place(Work& work, int32_t link) {
  while (int32_t(work.places.size()) < link) {
    work.places.push_back(redis_.place_of(work.chain->link(int32_t(work.places.size()) + 1)));
  }
  return work.places[size_t(link - 1)];
}

// What a node lends it has computed, or taken over as it was.
bool Simulation::takes(Node& node, Work& work, int32_t link, const Elsewhere& there) {
  const Sha256Digest& key = work.chain->link(link);
  SimulatedRecord record;
  if (there.lender) {
    record = {.payload = payload_of(key), .seal = seal_of(key, payload_of(key))};
  } else {
    const SimulatedRecord* const kept = redis_.find(place(work, link), now_);
    if (kept == nullptr) return false;
    record = *kept;
  }
  if (flips_ > 0 && random_.unit() < flips_) {
    record.payload[random_.below(record.payload.size())] ^= uint8_t(1u << random_.below(8));
  }
  if (record.seal == seal_of(key, record.payload)) {
    figures_.wrong += int64_t(record.payload != payload_of(key));
    if (!there.lender) redis_.keep(place(work, link), now_);
    return true;
  }
  ++figures_.refused;
  if (there.lender) {
    (void)node.breaker_of(there.number).note_refusal(time_of(now_));
    return false;
  }
  (void)node.reads.note_refusal(time_of(now_));
  node.bad.insert(place(work, link).key);  // Written again when it is sent.
  return false;
}

// As tier_source.cpp does: who takes the lease computes; who finds it taken may wait.
bool Simulation::waits_for_lease(size_t index, const std::shared_ptr<Work>& work, int32_t held,
                                 int32_t in_tier) {
  Node& node = *nodes_[index];
  const store::Chain& chain = *work->chain;
  const auto link = tier::lease_link(in_tier, chain);
  const bool is_told = options_.publishing != tier::Publishing::nothing || lenders_;
  if (!link || !is_told) return false;
  const int32_t length = chain.link_count() * store::kChainTokens;
  const uint64_t key = store::short_key(chain.link(*link));
  const int64_t from = int64_t(held * kBlockTokens);
  const SimulatedRedis::Notes::Note* const note = redis_.leases.find(key, now_);
  if (note == nullptr) {
    const auto own = node.costs.computing(from, int64_t(chain.link_count() * kBlockTokens));
    const double seconds = own ? std::clamp(2 * own->count(), kLeaseMin, kLeaseMax) : kLeaseUnknown;
    redis_.leases.write(key, tier::encode(tier::lease_of(index, chain, length)), now_, seconds);
    return false;
  }
  Result<tier::Lease> lease = tier::decode_lease(note->value);
  if (!lease) return false;
  const int32_t common = tier::common_tokens(*lease, chain, length) * kTokensOfSimulated;
  if (lease->node == index || common <= from) return false;
  const auto own = node.costs.computing(from, common);
  const double longest = own ? own->count() : kLeaseUnknown;
  if (note->expires - now_ >= longest || now_ - work->first_looked >= longest) return false;
  if (now_ == work->first_looked) ++figures_.lease_waits;
  const uint64_t wanted = store::short_key(chain.link(int32_t(common / kBlockTokens)));
  redis_.wanted.write(wanted, {std::byte(1)}, now_, 1800);
  plan(now_ + kAskAgain, [this, index, work, life = node.life] {
    Node& then = *nodes_[index];
    if (then.life != life) return fail(*work);
    then.waiting.push_front(work);
    start_next(index);
  });
  return true;
}

void Simulation::end_work(size_t index, uint32_t life) {
  Node& node = *nodes_[index];
  if (node.life != life) return;
  const std::shared_ptr<Work> work = std::exchange(node.at_work, nullptr);
  ++figures_.answered;
  if (work->computed > 0) {
    const double end = work->chain->link_count() * kBlockTokens;
    const double begin = end - work->computed * kBlockTokens;
    for (tier::Costs* const costs : {&node.costs, &node.peer_costs}) {
      costs->note_computed(int64_t(end - begin), Seconds(work->computing_seconds),
                           0.5 * (begin + end));
    }
  }
  router_->note_done(work->choice, work->chain->link_count() - work->computed, work->computed,
                     work->reading_seconds, now_);
  std::vector<Sha256Digest> gone;
  node.memory.use(*work->chain, gone);
  figures_.is_within_budget =
      figures_.is_within_budget && node.memory.size() <= size_t(options_.node_blocks) &&
      redis_.is_within_budget() && (!lenders_ || lenders_->is_within_budget());
  log("ends", index, uint64_t(work->computed));
  if (options_.has_tier) publish(index, *work, gone);
  if (lenders_) lenders_->note_read(index, work->chain, now_, is_reached(node));
  start_next(index);
}

// As tier_publisher.cpp chooses: what was used before, or is waited for; the rest, and what leaves
// memory, where there is room.
void Simulation::publish(size_t index, const Work& work, const std::vector<Sha256Digest>& gone) {
  Node& node = *nodes_[index];
  const store::Chain& chain = *work.chain;
  const int32_t used =
      node.counts.add_prompt(chain, chain.link_count() * store::kChainTokens) / store::kChainTokens;
  if (options_.publishing == tier::Publishing::second_use) look_for_sent(node);
  const bool has_place = node.busy_part < kBusyPart && node.room.has_place();
  int32_t sent = tier::admitted_length(options_.publishing, used, chain.link_count(), has_place);
  if (options_.publishing == tier::Publishing::second_use) {
    for (int32_t link = sent + 1; link <= chain.link_count(); ++link) {
      if (redis_.wanted.find(store::short_key(chain.link(link)), now_)) sent = link;
    }
  }
  std::vector<Sha256Digest> keys;
  for (int32_t link = 1; link <= sent; ++link) keys.push_back(chain.link(link));
  if (tier::admitted_length(options_.publishing, 0, 1, has_place) > 0) {
    keys.insert(keys.end(), gone.begin(), gone.end());
  }
  if (!keys.empty()) send(node, std::move(keys));
}

void Simulation::look_for_sent(Node& node) {
  for (int count = 0; is_reached(node) && count < kLookedFor; ++count) {
    const std::optional<Sha256Digest> name = node.room.next(time_of(now_));
    if (name) node.room.note_found(redis_.find(redis_.place_of(*name), now_) != nullptr);
  }
}

// What is there is kept for another while; the rest arrives when the link has carried it.
void Simulation::send(Node& node, std::vector<Sha256Digest> keys) {
  if (!node.writes.admits(time_of(now_))) return;
  if (!is_reached(node)) {
    node.writes.note_failure(time_of(now_));
    return;
  }
  node.writes.note_success();
  double arrives = std::max(now_, node.sends_until);
  const double began = arrives;
  std::vector<std::pair<Sha256Digest, SimulatedRedis::Place>> news;
  for (const Sha256Digest& key : keys) {
    const SimulatedRedis::Place place = redis_.place_of(key);
    const bool is_bad = node.bad.erase(place.key) > 0;
    if (redis_.find(place, now_) != nullptr && !is_bad) {
      redis_.keep(place, now_);
      continue;
    }
    arrives = std::max(arrives + kBlockBytes / kLinkBytesPerSecond,
                       redis_.move(place, now_, SimulatedRedis::Way::in));
    news.emplace_back(key, place);
    node.room.note_sent(key, time_of(arrives));
  }
  const double busy = arrives - began, all = std::max(arrives - node.sent_at, 1e-9);
  node.busy_part += kBusyWeight * (std::min(1.0, busy / all) - node.busy_part);
  node.sends_until = node.sent_at = arrives;
  if (news.empty()) return;
  figures_.written_bytes += double(news.size()) * kBlockBytes;
  plan(arrives, [this, news = std::move(news)] {
    for (const auto& [key, place] : news) {
      const Sha256Digest payload = payload_of(key);
      redis_.write(place, {.payload = payload, .seal = seal_of(key, payload)}, now_);
    }
  });
}

void Simulation::begin(const Fault& fault) {
  using Kind = Fault::Kind;
  log("fault", uint64_t(fault.kind));
  const size_t count = size_t(std::ceil(fault.part * double(nodes_.size())));
  if (fault.kind == Kind::tier_down) is_tier_down_ = true;
  if (fault.kind == Kind::flips) flips_ = fault.part;
  if (fault.kind == Kind::eviction) redis_.evict(fault.part);
  if (fault.kind == Kind::forgery) redis_.forge(fault.part);
  if (fault.kind == Kind::router_restart) router_->forget();
  for (size_t index = 0; index < count; ++index) {
    if (fault.kind == Kind::partition) {
      nodes_[index]->is_cut_off = true;
      if (lenders_) lenders_->set_heard(index, false, now_);
    }
    if (fault.kind == Kind::slow) nodes_[index]->slowness = 10;
    const bool is_cold = fault.kind == Kind::crash_cold;
    if (is_cold || fault.kind == Kind::crash_warm) crash(index, is_cold);
  }
}

void Simulation::end(const Fault& fault) {
  using Kind = Fault::Kind;
  if (fault.kind == Kind::tier_down) is_tier_down_ = false;
  if (fault.kind == Kind::flips) flips_ = 0;
  for (size_t index = 0; index < nodes_.size(); ++index) {
    Node& node = *nodes_[index];
    if (fault.kind == Kind::partition && std::exchange(node.is_cut_off, false) && lenders_) {
      lenders_->set_heard(index, true, now_);
    }
    if (fault.kind == Kind::slow) node.slowness = 1;
    if (!node.is_up && (fault.kind == Kind::crash_cold || fault.kind == Kind::crash_warm)) {
      node.is_up = true;
      if (lenders_) lenders_->begin_anew(index, fault.kind == Kind::crash_warm);
      router_->set_up(index, true);
    }
  }
}

// Its prompts end with an error, which is what their callers are told.
void Simulation::crash(size_t index, bool is_cold) {
  Node& node = *nodes_[index];
  ++node.life;
  node.is_up = false;
  router_->set_up(index, false);
  if (lenders_) lenders_->set_heard(index, false, now_);
  if (node.at_work != nullptr) node.waiting.push_front(std::exchange(node.at_work, nullptr));
  for (const std::shared_ptr<Work>& work : node.waiting) fail(*work);
  node.waiting.clear();
  if (is_cold) node.memory.clear();
}

void Simulation::fail(const Work& work) {
  ++figures_.failed;
  router_->note_failed(work.choice);
}

void Simulation::note_reuse(const Ask& ask, int32_t reused) {
  blocks_ += ask.blocks;
  ideal_ += ask.reusable;
  if (now_ < options_.watched_from || now_ >= options_.watched_until) return;
  watched_ideal_ += ask.reusable;
  watched_reused_ += std::min(reused, ask.reusable);
}

double Simulation::machine_p99() const {
  std::vector<double> waits;
  double free_at = 0;
  for (const Ask& ask : asks_) {
    const double begins = std::max(free_at, ask.at);
    waits.push_back(begins - ask.at);
    free_at = begins + token_seconds_ / options_.nodes * mean_cost({ask}, true);
  }
  return waits.empty() ? 0 : quantile(waits, 0.99);
}

ClusterFigures Simulation::finish() {
  ClusterFigures& made = figures_;
  const double blocks = std::max(blocks_, 1.0);
  made.ideal_reuse = ideal_ / blocks;
  made.local_reuse = local_ / blocks;
  made.reuse = (local_ + fetched_) / blocks;
  if (!waits_.empty()) {
    made.wait_p50 = quantile(waits_, 0.5);
    made.wait_p99 = quantile(waits_, 0.99);
    made.first_p99 = quantile(firsts_, 0.99);
    made.goodput = double(std::ranges::count_if(waits_, [](double w) { return w <= kGoodWait; })) /
                   double(made.asks);
  }
  made.machine_p99 = machine_p99();
  double most = 0, all = 0;
  for (const auto& node : nodes_) {
    most = std::max(most, node->work_seconds);
    all += node->work_seconds;
  }
  made.work_max = all == 0 ? 1 : most * double(nodes_.size()) / all;
  made.largest_shard = redis_.largest_shard();
  const double moved = made.read_bytes + made.written_bytes;
  const double shards = (options_.nodes + kNodesOfShard - 1) / kNodesOfShard;
  made.busiest_shard = moved == 0 ? 1 : redis_.moved_bytes_max() * shards / moved;
  if (watched_ideal_ > 0) made.watched_reuse = watched_reused_ / watched_ideal_;
  if (lenders_) made.directory_bytes = lenders_->registered_bytes();
  made.events = log_.finish();
  return made;
}

}  // namespace

std::vector<Fault> all_faults(double seconds) {
  using Kind = Fault::Kind;
  const double from = 0.25 * seconds, step = 0.045 * seconds;
  std::vector<Fault> faults = {
      {.kind = Kind::router_restart},
      {.kind = Kind::crash_cold, .until = 30, .part = 0.05},
      {.kind = Kind::tier_down, .until = 60},
      {.kind = Kind::partition, .until = 30, .part = 0.5},
      {.kind = Kind::slow, .until = 60, .part = 0.05},
      {.kind = Kind::eviction, .until = 0, .part = 0.1},
      {.kind = Kind::flips, .until = 60, .part = 1e-3},
      {.kind = Kind::forgery, .until = 0, .part = 1e-2},
      {.kind = Kind::crash_warm, .until = 30, .part = 0.05},
  };
  for (size_t index = 0; index < faults.size(); ++index) {
    faults[index].at = from + step * double(index);
    faults[index].until = faults[index].at + std::min(faults[index].until, step);
  }
  return faults;
}

ClusterFigures simulate(const std::vector<Ask>& asks, const ClusterOptions& options) {
  return Simulation(asks, options).run();
}

}  // namespace cairn::bench
