// Searching, weighing, and who is asked.
#include "tier/tier_source.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/text/byte_text.h"
#include "tier/lease.h"
#include "tier/peers/peer_server.h"

namespace cairn::tier {

namespace {

using std::chrono::milliseconds;

// Links that are asked for at once: two rounds for 4,096 of them.
constexpr int32_t kProbes = 64;
// Manifests that are looked at: those of the longest common beginnings.
constexpr size_t kManifestsMax = 6;
// Who waits for another machine asks so often whether it is done.
constexpr milliseconds kAskAgain(25);
// Of a lease: twice what computing takes, in these bounds.
constexpr milliseconds kLeaseMin(200), kLeaseUnknown(2000), kLeaseMax(60000);
// Who refuses a connection costs nothing; one who is waited for in vain for longer is the last.
constexpr milliseconds kRefusedWithin(5);
// Machines that are remembered.
constexpr size_t kPeersMax = 256;

Clock::time_point soon(const Tier& tier) {
  return Clock::now() + tier.options().times.look_up;
}

}  // namespace

store::RecordSource::Answer TierSource::look_up(const Question& question) {
  outcome_ = Outcome::absent;
  has_failed_peer_ = false;
  if (!tier_->reads().admits()) {
    tier_->count(Outcome::paused);
    return {.match = {}, .note = name_of(Outcome::paused)};
  }
  home_->begin_search();
  Result<Answer> answer = search(question);
  if (!answer) {
    outcome_ = home_->note_failure(answer.error());
    tier_->count(outcome_);
    return {.match = {}, .note = name_of(outcome_)};
  }
  if (answer->match) {
    tier_->reads().end_trial();
  } else {
    tier_->reads().note_success();
  }
  if (answer->match || answer->ask_again.count() > 0) return std::move(answer).value();
  const bool is_known = outcome_ == Outcome::damaged || outcome_ == Outcome::slower;
  if (home_->lost_reply() && !is_known) outcome_ = *home_->lost_reply();
  tier_->count(outcome_);
  return {.match = {}, .note = name_of(outcome_)};
}

Result<store::RecordSource::Answer> TierSource::search(const Question& question) {
  const store::Chain chain(question.fingerprint, question.prompt);
  CAIRN_TRY(home_->connect(Clock::now() + tier_->options().times.connect));
  CAIRN_TRY(const std::vector<Pointer> pointers, find_pointers(chain, question, soon(*tier_)));
  CAIRN_TRY(std::optional<store::Match> match, find(question, chain, pointers));
  if (match) {
    const auto& place = static_cast<const PlaceReader&>(*match->place);
    const FetchDecision decision = place.weigh(question, *match);
    if (!decision.is_worth_it) {
      outcome_ = Outcome::slower;
      if (place.origin() == store::Origin::peer) tier_->count_peer(outcome_);
      return Answer{};
    }
    match->patience = decision.patience;
    return Answer{.match = std::move(match), .note = name_of(Outcome::fetched)};
  }
  const int32_t held_links = pointers.empty() ? 0 : pointers.front().links;
  CAIRN_TRY(const milliseconds ask_again,
            wait_for_lease(question, chain, held_links, soon(*tier_)));
  return Answer{.match = {}, .ask_again = ask_again, .note = name_of(outcome_)};
}

// A sequence that ends where the prompt does comes first. Where nobody has anything of a link
// nobody has anything of those behind, but for what has expired: narrower and narrower around the
// last one.
Result<std::vector<TierSource::Pointer>> TierSource::find_pointers(const store::Chain& chain,
                                                                   const Question& question,
                                                                   Clock::time_point deadline) {
  const int32_t length = int32_t(question.prompt.size());
  std::vector<AskedPointer> asked = {{chain.link_count(), true, chain.key_at(length)}};
  std::vector<Pointer> found;
  int32_t low = question.known / store::kChainTokens, high = chain.link_count();
  while (low < high || !asked.empty()) {
    std::vector<int32_t> links;
    const int32_t step = (high - low + kProbes - 1) / kProbes;
    for (int32_t link = low + step; link < high; link += step) links.push_back(link);
    if (low < high) links.push_back(high);
    for (const int32_t link : links) asked.push_back({link, false, chain.link(link)});
    const Clock::time_point begin = Clock::now();
    CAIRN_TRY(const std::vector<Pointer> there, ask_pointers(asked, deadline));
    if (!home_->lost_reply()) tier_->costs().note_round_trip(Clock::now() - begin);
    asked.clear();
    found.insert(found.end(), there.begin(), there.end());
    const bool has_link = !there.empty() && !there.back().is_end;
    const int32_t last = has_link ? there.back().links : low;
    const auto next = std::ranges::upper_bound(links, last);
    high = next == links.end() ? last : *next - 1;
    low = last;
  }
  // The tier before machines.
  std::ranges::stable_sort(found, [](const Pointer& one, const Pointer& other) {
    return std::tuple(other.links, one.node != 0) < std::tuple(one.links, other.node != 0);
  });
  std::set<std::pair<Sha256Digest, uint64_t>> seen;
  std::erase_if(found, [&](const Pointer& one) {
    return !seen.insert({one.name, one.node}).second;
  });
  return found;
}

// Those that are there, in their order; at each link that of the tier, then machines.
Result<std::vector<TierSource::Pointer>> TierSource::ask_pointers(
    std::span<const AskedPointer> asked, Clock::time_point deadline) {
  struct Questions {
    PendingReply tier, holders;  // Null: nobody is asked.
    std::string holders_key;
  };
  std::vector<Questions> replies;
  for (const AskedPointer& one : asked) {
    Questions& questions = replies.emplace_back();
    const auto send = [&](const std::string& key, size_t bytes_max) {
      const std::array<std::string_view, 2> words = {"GET", key};
      return home_->questions().send(words, bytes_max, deadline);
    };
    const std::string key = tier_->key_of(one.is_end ? kEndKey : kPointerKey, one.digest);
    CAIRN_TRY(questions.tier, send(key, sizeof(Sha256Digest)));
    if (tier_->peers() == nullptr) continue;
    questions.holders_key = tier_->key_of(one.is_end ? kEndHoldersKey : kHoldersKey, one.digest);
    CAIRN_TRY(questions.holders, send(questions.holders_key, kHoldersBytesMax));
  }
  std::vector<Pointer> found;
  const auto come = [&](const PendingReply& pending) -> Result<const Reply*> {
    CAIRN_TRY(const Reply* const reply, home_->questions().wait(pending, deadline));
    if (reply->kind == Reply::Kind::error) return refusal(*reply);
    return home_->is_lost(*reply) ? nullptr : reply;
  };
  for (size_t index = 0; index < asked.size(); ++index) {
    Pointer pointer{.links = asked[index].links, .is_end = asked[index].is_end};
    CAIRN_TRY(const Reply* const reply, come(replies[index].tier));
    if (reply != nullptr && reply->bytes.size() == sizeof(Sha256Digest)) {
      std::ranges::transform(reply->bytes, pointer.name.begin(),
                             [](std::byte byte) { return uint8_t(byte); });
      found.push_back(pointer);
    }
    if (replies[index].holders == nullptr) continue;
    CAIRN_TRY(const Reply* const holders, come(replies[index].holders));
    if (holders == nullptr) continue;
    for (const Holder& holder :
         decode_holders(tier_->secret(), replies[index].holders_key, holders->bytes)) {
      if (holder.node == tier_->node()) continue;
      pointer.node = holder.node;
      pointer.name = holder.manifest;
      found.push_back(pointer);
    }
  }
  return found;
}

// Of several that from which the fewest tokens have to be computed. A damaged one is passed over.
Result<std::optional<store::Match>> TierSource::find(const Question& question,
                                                     const store::Chain& chain,
                                                     std::span<const Pointer> pointers) {
  std::optional<store::Match> best;
  int32_t least = question.known;
  const Clock::time_point deadline = soon(*tier_);
  for (const Pointer& pointer : pointers.first(std::min(pointers.size(), kManifestsMax))) {
    const int32_t links = std::min(pointer.links + 1, chain.link_count() + 1);
    if (links * int64_t(store::kChainTokens) <= least) break;
    std::optional<store::Match> match;
    if (pointer.node == 0) {
      CAIRN_TRY(match, home_->find(question, pointer.name, least, deadline, outcome_));
      if (match) match->place = home_;
    } else {
      CAIRN_TRY(match, ask_peer(question, pointer, least));
    }
    if (!match) continue;
    least = match->resume;
    best = std::move(*match);
    if (least == int32_t(question.prompt.size())) break;
  }
  return best;
}

// A machine that fails is a miss, with its reason; the tier has done nothing.
Result<std::optional<store::Match>> TierSource::ask_peer(const Question& question,
                                                         const Pointer& pointer, int32_t least) {
  std::optional<store::Match> match;
  CAIRN_TRY(const std::shared_ptr<PlaceReader> peer, reach(pointer.node));
  if (peer == nullptr) return match;
  peer->begin_search();
  Outcome why = Outcome::absent;
  const Clock::time_point began = Clock::now();
  const auto ask = [&]() -> Status {
    CAIRN_TRY(peer->connect(Clock::now() + tier_->options().times.connect));
    CAIRN_TRY(match, peer->find(question, pointer.name, least, soon(*tier_), why));
    return Ok{};
  };
  const Status asked = ask();
  if (!asked && asked.error().code == ErrorCode::cancelled) return asked.error();
  if (asked && match) {
    peer->reads().end_trial();
  } else if (asked) {
    peer->reads().note_success();
  } else {
    why = peer->note_failure(asked.error());
    has_failed_peer_ |= Clock::now() - began > kRefusedWithin;
  }
  if (match) {
    match->place = peer;
  } else {
    tier_->count_peer(why);
    if (why != Outcome::absent) outcome_ = why;
  }
  return match;
}

// Where it is it says itself, as long as it lives.
Result<std::shared_ptr<PlaceReader>> TierSource::reach(uint64_t node) {
  std::shared_ptr<PlaceReader> nobody;
  if (has_failed_peer_) return nobody;
  const std::string key = tier_->secret().key_of(kNodeKey, node);
  const std::array<std::string_view, 2> words = {"GET", key};
  CAIRN_TRY(const Reply reply, home_->questions().ask(words, kNodeBytesMax, soon(*tier_)));
  if (home_->is_lost(reply) || reply.kind != Reply::Kind::bytes) return nobody;
  const std::optional<std::string> address = decode_node(tier_->secret(), key, reply.bytes);
  if (!address) return nobody;
  std::shared_ptr<PlaceReader> peer = peer_at(node, *address);
  if (peer == nullptr || peer->reads().admits()) return peer;
  tier_->count_peer(Outcome::paused);
  outcome_ = Outcome::paused;
  return nobody;
}

std::shared_ptr<PlaceReader> TierSource::peer_at(uint64_t node, const std::string& address) {
  const auto known = peers_.find(node);
  if (known != peers_.end() && known->second->address().url.host == address) return known->second;
  std::optional<TierAddress> found = peer_address(tier_->address(), address);
  if (!found) return nullptr;
  if (peers_.size() >= kPeersMax) peers_.clear();
  return peers_[node] = std::make_shared<PlaceReader>(tier_, std::move(*found), is_given_up_);
}

// Zero: compute. Who takes the lease computes; who finds it taken may wait.
Result<milliseconds> TierSource::wait_for_lease(const Question& question, const store::Chain& chain,
                                                int32_t held_links, Clock::time_point deadline) {
  const std::optional<int32_t> link = lease_link(held_links, chain);
  const bool is_told =
      tier_->options().publishing != Publishing::nothing || tier_->peers() != nullptr;
  if (!tier_->options().uses_leases || !is_told || !link) return milliseconds(0);
  const std::string key = tier_->key_of(kLeaseKey, chain.link(*link));
  const auto computing = tier_->costs().computing(question.known, int64_t(question.prompt.size()));
  milliseconds length = kLeaseUnknown;
  if (computing) length = std::chrono::ceil<milliseconds>(2 * *computing);
  const std::string kept = fmt::format("{}", std::clamp(length, kLeaseMin, kLeaseMax).count());
  const std::vector<std::byte> lease =
      encode(lease_of(tier_->node(), chain, int32_t(question.prompt.size())));
  const std::array<std::string_view, 6> words = {"SET", key, as_text(lease), "NX", "PX", kept};
  CAIRN_TRY(const Reply reply, home_->questions().ask(words, 0, deadline));
  if (reply.kind != Reply::Kind::nothing) return milliseconds(0);  // Ours, or nobody can tell.
  return weigh_lease(question, chain, key, deadline);
}

// It pays to wait while what is left of the lease, fetching and computing the rest take less than
// computing all of it. Whoever computes is told that somebody waits.
Result<milliseconds> TierSource::weigh_lease(const Question& question, const store::Chain& chain,
                                             const std::string& key, Clock::time_point deadline) {
  const std::array<std::string_view, 2> get = {"GET", key}, left_of = {"PTTL", key};
  CAIRN_TRY(const Reply value, home_->questions().ask(get, kLeaseBytesMax, deadline));
  CAIRN_TRY(const Reply left, home_->questions().ask(left_of, 0, deadline));
  Result<Lease> lease = decode_lease(value.bytes);
  if (!lease || left.kind != Reply::Kind::number || left.number <= 0) return milliseconds(0);
  const int32_t common = common_tokens(*lease, chain, int32_t(question.prompt.size()));
  const int32_t saved = common - question.known;
  if (lease->node == tier_->node() || saved <= 0) return milliseconds(0);
  const auto waited = Clock::now() - question.first_asked;
  const auto own = tier_->costs().computing(question.known, common);
  const Costs::Seconds longest = own ? *own : Costs::Seconds(kLeaseUnknown);
  const bool is_worth_it = milliseconds(left.number) < longest && waited < longest;
  if (!is_worth_it && tier_->options().fetching != Fetching::always) {
    outcome_ = Outcome::computed;
    return milliseconds(0);
  }
  if (waited > kLeaseMax) return milliseconds(0);
  const std::string wanted = tier_->key_of(kWantedKey, chain.key_at(common)),
                    kept = tier_->kept_ms();
  const std::array<std::string_view, 5> set = {"SET", wanted, "1", "PX", kept};
  CAIRN_TRY(home_->questions().ask(set, 0, deadline));
  if (waits_since_ != question.first_asked) tier_->count(&TierStats::lease_waits);
  waits_since_ = question.first_asked;
  return kAskAgain;
}

}  // namespace cairn::tier
