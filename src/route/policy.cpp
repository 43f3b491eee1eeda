// Estimates, and the least of them.
#include "route/policy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/digest.h"

namespace cairn::route {

namespace {

// What is taken for what no node has measured: half a millisecond for a token of four bytes.
constexpr double kFirstMsPerByte = 0.125;
constexpr double kFirstPromptMs = 200;
// What takes longer than expected is as likely as not to take so much of it again.
constexpr double kLongerPart = 0.5;
// By so much of an answer's time each answer that is made beside it delays one; and of a prompt's,
// where no answer's is known.
constexpr double kAnswerPart = 0.1, kPromptPart = 0.25;
// What made a node slow may have passed, which nobody finds out who is not sent there: after so
// long without a request half of what it was slower than the fastest one is forgotten.
constexpr double kForgottenMs = 10000;
// Costs that differ by so little are equal: then who has read more, then the hash decides.
constexpr double kEqualFactor = 1.25, kEqualMs = 20;
// No node gets more than this times an even share by its hash alone.
constexpr double kShare = 1.25;
constexpr size_t kFewNodes = 8;
constexpr size_t kOwnersMax = size_t(1) << 16;
constexpr size_t kEntriesMin = 1024;

size_t entries_max(const PolicyOptions& options) {
  const size_t fitting = size_t(options.table_bytes_max) / PrefixTable::entry_bytes();
  return std::max(std::bit_floor(fitting), kEntriesMin);
}

}  // namespace

std::string_view name_of(Why why) {
  switch (why) {
    case Why::prefix:
      return "prefix";
    case Why::hash:
      return "hash";
    case Why::load:
      return "load";
    case Why::owner:
      break;
  }
  return "owner";
}

Policy::Policy(PolicyOptions options)
    : options_(options),
      table_(std::min(options.entry_count, entries_max(options))),
      chance_(options.seed, 0, 0) {}

bool Policy::has_room_for(const std::string& name) const {
  return node_count() < kNodesMax || numbers_.contains(name);
}

int32_t Policy::add_node(const std::string& name) {
  CHECK(has_room_for(name));
  const auto [place, is_new] = numbers_.try_emplace(name, node_count());
  if (!is_new) {
    nodes_[size_t(place->second)].is_draining = false;
    return place->second;
  }
  nodes_.push_back({.name = name, .name_hash = digest(std::as_bytes(std::span(name)))});
  give_table_room();
  return int32_t(nodes_.size() - 1);
}

// With room for the prompts of some minutes of all nodes together less of them would be known than
// nodes have.
void Policy::give_table_room() {
  const size_t wanted = std::bit_ceil(nodes_.size() * options_.entries_of_node);
  const size_t count = std::min(wanted, entries_max(options_));
  if (count > table_.entry_count()) table_.grow(count);
}

void Policy::drain_node(int32_t node) {
  nodes_[size_t(node)].is_draining = true;
}

void Policy::set_up(int32_t node, bool is_up) {
  nodes_[size_t(node)].is_up = is_up;
}

bool Policy::is_chosen_from(int32_t node) const {
  return nodes_[size_t(node)].is_up && !nodes_[size_t(node)].is_draining;
}

void Policy::asked(int32_t number) {
  Node& node = nodes_[size_t(number)];
  node.own_since_asked = node.own_count();
}

void Policy::told(int32_t number, int32_t waiting, int32_t running) {
  Node& node = nodes_[size_t(number)];
  // Those of this router are among them; which of them, nobody says, nor when between the question
  // and the answer they were counted: none of what was there meanwhile is another's.
  node.foreign_running = std::max(running - node.own_since_asked, 0);
  const int32_t own_waiting = std::max(node.own_since_asked - running, 0);
  node.foreign_waiting = std::max(waiting - own_waiting, 0);
}

double Policy::mean_of(Mean Node::*figure, double otherwise) const {
  double sum = 0;
  int32_t count = 0;
  for (const Node& node : nodes_) {
    if (!(node.*figure).is_known()) continue;
    sum += (node.*figure).value();
    ++count;
  }
  return count == 0 ? otherwise : sum / count;
}

double Policy::ms_per_byte(const Node& node, double now) const {
  if (!node.ms_per_byte.is_known()) return mean_of(&Node::ms_per_byte, kFirstMsPerByte);
  double least = node.ms_per_byte.value();
  for (const Node& other : nodes_) {
    if (other.is_up && other.ms_per_byte.is_known()) {
      least = std::min(least, other.ms_per_byte.value());
    }
  }
  const double slower = node.ms_per_byte.value() - least;
  return least + slower * std::exp2(-std::max(now - node.sent_at, 0.0) / kForgottenMs);
}

double Policy::prompt_ms(const Node& node) const {
  return node.prompt_ms.is_known() ? node.prompt_ms.value()
                                   : mean_of(&Node::prompt_ms, kFirstPromptMs);
}

double Policy::answering_ms(const Node& node) const {
  const double otherwise = kPromptPart / kAnswerPart * prompt_ms(node);
  return kAnswerPart * (node.answer_ms.is_known() ? node.answer_ms.value()
                                                  : mean_of(&Node::answer_ms, otherwise));
}

// What it has read of the prompt that it is reading is done, of no other one: which takes as long
// as they do on average, or a while yet where it takes longer than that.
double Policy::queue_ms(const Node& node, double now) const {
  double queue = node.foreign_waiting * prompt_ms(node) +
                 (node.answering_count + node.foreign_running) * answering_ms(node);
  if (node.unread_count == 0) return queue;
  const double each = node.unread_ms / node.unread_count, elapsed = now - node.reading_since;
  return queue + node.unread_ms - each + std::max(each - elapsed, kLongerPart * elapsed);
}

int32_t Policy::load_of(const Node& node) const {
  return node.own_count() + node.foreign_waiting + node.foreign_running;
}

// In no order: there may be a thousand.
std::vector<Policy::Place> Policy::places(uint64_t key, std::span<const int32_t> avoid) const {
  std::vector<Place> places;
  places.reserve(nodes_.size());
  for (int32_t node = 0; node < node_count(); ++node) {
    const bool is_avoided = std::find(avoid.begin(), avoid.end(), node) != avoid.end();
    if (is_avoided || !is_chosen_from(node)) continue;
    places.push_back({weight_of(key, nodes_[size_t(node)].name_hash), node});
  }
  return places;
}

// By weight the first one that has no more than its share.
int32_t Policy::hashed(std::span<const Place> places) const {
  int64_t all = 1;  // A node may say that it has a million.
  for (const Place& place : places) all += load_of(nodes_[size_t(place.node)]);
  const double most = std::ceil(kShare * double(all) / double(places.size()));
  const Place* best = nullptr;
  for (const Place& place : places) {
    const bool has_room = load_of(nodes_[size_t(place.node)]) < most;
    if (has_room && (best == nullptr || *best < place)) best = &place;
  }
  return best == nullptr ? std::max_element(places.begin(), places.end())->node : best->node;
}

Decision Policy::choose(const PromptKeys& keys, double now, std::span<const int32_t> avoid) {
  Decision best{.prompt_bytes = keys.bytes()};
  const auto owner = keys.owned.empty() ? owners_.end() : owners_.find(keys.owned);
  if (owner != owners_.end() && is_chosen_from(owner->second.node) && avoid.empty()) {
    own(keys.owned, owner->second.node);  // What is asked for is kept.
    best.node = owner->second.node;
    best.why = Why::owner;
    best.cost_ms = best.queue_ms = queue_ms(nodes_[size_t(best.node)], now);
    return best;
  }
  const uint64_t key =
      keys.owned.empty() ? keys.affinity : digest(std::as_bytes(std::span(keys.owned)));
  const std::vector<Place> places = this->places(key, avoid);
  if (places.empty()) return best;
  // What was made before this router knew of it: its name alone says where.
  const int32_t home =
      keys.owned.empty() ? hashed(places) : std::max_element(places.begin(), places.end())->node;
  std::vector<Decision> costs(1);
  const std::vector<PrefixTable::Known> known = table_.find(keys.prefixes);
  size_t most_known = 0;
  for (const auto& one : known) most_known = std::max(most_known, one.bytes);
  const auto cost_of = [&](int32_t number) {
    const Node& node = nodes_[size_t(number)];
    Decision cost{.node = number, .prompt_bytes = keys.bytes(), .queue_ms = queue_ms(node, now)};
    for (const auto& one : known) {
      if (one.node == number) cost.known_bytes = one.bytes;
    }
    const double trust = node.trust.is_known() ? std::min(node.trust.value(), 1.0) : 1.0;
    const double missed = double(cost.prompt_bytes) - trust * double(cost.known_bytes);
    cost.cost_ms = missed * ms_per_byte(node, now) + cost.queue_ms;
    cost.why = cost.known_bytes > 0 ? Why::prefix : number == home ? Why::hash : Why::load;
    return cost;
  };
  costs.front() = cost_of(home);
  if (keys.owned.empty()) {
    // Of few nodes all are looked at; of many those who have most of it, and two.
    std::vector<Place> others;
    for (const Place& place : places) {
      const bool is_looked_at = places.size() <= kFewNodes ||
                                std::any_of(known.begin(), known.end(), [&](const auto& one) {
                                  return one.node == place.node && one.bytes == most_known;
                                });
      if (is_looked_at && place.node != home) others.push_back(place);
    }
    std::sort(others.rbegin(), others.rend());
    for (const Place& place : others) costs.push_back(cost_of(place.node));
    for (int count = 0; places.size() > kFewNodes && count < 2; ++count) {
      costs.push_back(cost_of(places[chance_.below(uint32_t(places.size()))].node));
    }
  }
  double least = costs.front().cost_ms;
  for (const Decision& cost : costs) least = std::min(least, cost.cost_ms);
  const double limit = least * kEqualFactor + kEqualMs;
  best = costs.front();
  for (const Decision& cost : costs) {
    const auto place = [&](const Decision& one) {
      return std::pair(std::max(one.cost_ms, limit), -double(one.known_bytes));
    };
    if (place(cost) < place(best)) best = cost;
  }
  return best;
}

uint64_t Policy::sent(const PromptKeys& keys, const Decision& decision, double now) {
  Node& node = nodes_[size_t(decision.node)];
  const uint64_t request = next_request_++;
  const double read_ms = std::max(decision.cost_ms - decision.queue_ms, 0.0);
  if (node.unread_count++ == 0) node.reading_since = now;
  node.own_since_asked = std::max(node.own_since_asked, node.own_count());
  node.sent_at = now;
  node.unread_ms += read_ms;
  requests_.emplace(request, Request{.node = decision.node,
                                     .prefixes = keys.prefixes,
                                     .known_bytes = decision.known_bytes,
                                     .read_ms = read_ms});
  // At once, so that what begins alike and comes meanwhile follows.
  table_.add(keys.prefixes, uint16_t(decision.node));
  return request;
}

void Policy::leave_reading(Node& node, Request& request, double now) {
  request.is_begun = true;
  node.unread_ms = --node.unread_count == 0 ? 0 : std::max(node.unread_ms - request.read_ms, 0.0);
  node.reading_since = now;
}

void Policy::begun(uint64_t number, double now) {
  const auto found = requests_.find(number);
  if (found == requests_.end() || found->second.is_begun) return;
  Node& node = nodes_[size_t(found->second.node)];
  leave_reading(node, found->second, now);
  ++node.answering_count;
}

void Policy::ended(uint64_t number, const std::optional<ReplyFigures>& figures, bool was_read) {
  const auto found = requests_.find(number);
  if (found == requests_.end()) return;
  Request& request = found->second;
  Node& node = nodes_[size_t(request.node)];
  if (request.is_begun) {
    --node.answering_count;
  } else {
    leave_reading(node, request, node.reading_since);
  }
  const size_t bytes = request.prefixes.empty() ? 0 : request.prefixes.back().end;
  if (!was_read) {
    // What it had before, it has.
    const auto rest = std::find_if(request.prefixes.begin(), request.prefixes.end(),
                                   [&](const auto& one) { return one.end > request.known_bytes; });
    table_.forget(std::span(rest, request.prefixes.end()), uint16_t(request.node));
  } else if (figures && figures->reused_tokens + figures->computed_tokens > 0 && bytes > 0) {
    const double all = double(figures->reused_tokens + figures->computed_tokens);
    const double reused = double(bytes) * double(figures->reused_tokens) / all;
    const double computed = double(bytes) - reused;
    if (request.known_bytes > 0) {
      // The beginning and the end of what a template adds are of no message.
      const double thought = double(request.known_bytes);
      node.trust.add(std::min(reused * 1.02, thought), thought);
    }
    if (figures->answer_ms) node.answer_ms.add(*figures->answer_ms, 1);
    if (figures->prompt_ms) {
      node.prompt_ms.add(*figures->prompt_ms, 1);
      if (figures->computed_tokens > 0) node.ms_per_byte.add(*figures->prompt_ms, computed);
    }
  }
  requests_.erase(found);
}

void Policy::own(const std::string& name, int32_t node) {
  const auto found = owners_.find(name);
  if (found != owners_.end()) owner_uses_.erase(found->second.used);
  owners_[name] = {node, ++owner_clock_};
  owner_uses_[owner_clock_] = name;
  if (owners_.size() <= kOwnersMax) return;
  owners_.erase(owner_uses_.begin()->second);
  owner_uses_.erase(owner_uses_.begin());
}

Policy::NodeView Policy::view(int32_t number, double now) const {
  const Node& node = nodes_[size_t(number)];
  return {.name = node.name,
          .is_up = node.is_up,
          .is_draining = node.is_draining,
          .outstanding = node.own_count(),
          .queue_ms = queue_ms(node, now),
          .ms_per_kib = 1024 * ms_per_byte(node, now),
          .trust = node.trust.is_known() ? node.trust.value() : 1};
}

}  // namespace cairn::route
