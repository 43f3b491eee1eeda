// Shelves, folders, and entries of the directory.
#include "bench/simulation/lenders.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "tier/peers/peer_server.h"

namespace cairn::bench {
namespace {

using tier::Holder;

constexpr double kEntrySeconds = 1800;
// Connections of two kinds for each machine that is lent to.
constexpr size_t kAskersAtOnce = tier::PeerServer::kLentAtOnce / 2;
constexpr double kAlways = std::numeric_limits<double>::infinity();

double seconds_of(std::chrono::duration<double> time) {
  return time.count();
}

// A sequence has a manifest of its own: its name follows from what it ends with.
const Sha256Digest& manifest_of(const store::Chain& chain) {
  return chain.link(chain.link_count());
}

}  // namespace

Lenders::Lenders(const Options& options, SimulatedRedis::Notes* directory)
    : options_(options),
      secret_(std::string(options.secret)),
      directory_(directory),
      random_(options.seed) {
  lenders_.assign(size_t(options.nodes), Lender(size_t(options.folder_blocks)));
  for (int32_t node = 0; node < options.nodes; ++node) {
    begin_anew(size_t(node), false);
  }
}

int32_t Lenders::folder_common(size_t node, const store::Chain& chain) const {
  return lenders_[node].folder.common(chain);
}

void Lenders::take_off(Lender& lender, size_t index) {
  const store::Chain& chain = *lender.shelf[index].chain;
  for (int32_t link = 1; link <= chain.link_count(); ++link) {
    const auto found = lender.on_shelf.find(store::short_key(chain.link(link)));
    if (--found->second == 0) lender.on_shelf.erase(found);
  }
  lender.shelf_blocks -= chain.link_count();
  lender.shelf.erase(lender.shelf.begin() + std::ptrdiff_t(index));
}

// As tier/peers/shelf.cpp: what is the beginning of this one goes, then the oldest ones.
void Lenders::put_on_shelf(Lender& lender, const std::shared_ptr<const store::Chain>& chain) {
  for (size_t index = lender.shelf.size(); index-- > 0;) {
    const int32_t length = lender.shelf[index].chain->link_count();
    const bool is_beginning = length <= chain->link_count() &&
                              store::short_key(chain->link(length)) == lender.shelf[index].manifest;
    if (is_beginning) take_off(lender, index);
  }
  lender.shelf.push_back({chain, store::short_key(manifest_of(*chain))});
  lender.shelf_blocks += chain->link_count();
  for (int32_t link = 1; link <= chain->link_count(); ++link) {
    ++lender.on_shelf[store::short_key(chain->link(link))];
  }
  while (!lender.shelf.empty() && lender.shelf_blocks > options_.shelf_blocks) take_off(lender, 0);
}

void Lenders::note_read(size_t node, const std::shared_ptr<const store::Chain>& chain, double now,
                        bool is_told) {
  Lender& lender = lenders_[node];
  put_on_shelf(lender, chain);
  std::vector<Sha256Digest> gone;
  lender.folder.use(*chain, gone);
  is_within_budget_ = is_within_budget_ && lender.shelf_blocks <= options_.shelf_blocks &&
                      lender.folder.size() <= size_t(options_.folder_blocks);
  if (!is_told) return;
  const Holder own{.node = number_of(node), .manifest = manifest_of(*chain)};
  for (int32_t link = 1; link <= chain->link_count(); ++link) {
    const std::string key = secret_.key_of(tier::kHoldersKey, chain->link(link));
    const uint64_t place = store::short_key(chain->link(link));
    const SimulatedRedis::Notes::Note* const note = directory_->find(place, now);
    std::vector<Holder> others;
    if (note != nullptr) others = tier::decode_holders(secret_, key, note->value);
    std::vector<std::byte> value =
        tier::encode_holders(secret_, key, tier::with_newest(own, others));
    // A block is of many links, each of which has an entry, which is read and written.
    const size_t before = note == nullptr ? 0 : note->value.size();
    registered_bytes_ += kTokensOfSimulated * double(2 * key.size() + before + value.size());
    directory_->write(place, std::move(value), now, kEntrySeconds * (0.9 + 0.2 * random_.unit()));
  }
}

std::vector<Lenders::Found> Lenders::find(const store::Chain& chain, int32_t known, size_t asker,
                                          size_t most, double now) const {
  std::vector<Found> found;
  std::set<std::pair<uint64_t, Sha256Digest>> seen;
  for (int32_t link = chain.link_count(); link > known && found.size() < most; --link) {
    const SimulatedRedis::Notes::Note* const note =
        directory_->find(store::short_key(chain.link(link)), now);
    if (note == nullptr) continue;
    const std::string key = secret_.key_of(tier::kHoldersKey, chain.link(link));
    for (const Holder& holder : tier::decode_holders(secret_, key, note->value)) {
      if (holder.node == number_of(asker)) continue;
      if (seen.insert({holder.node, holder.manifest}).second) found.push_back({link, holder});
    }
  }
  if (found.size() > most) found.resize(most);
  return found;
}

std::optional<size_t> Lenders::node_of(uint64_t number, double now) const {
  const size_t node = size_t(number & UINT32_MAX);
  if (number != number_of(node) || lenders_[node].heard_until <= now) return std::nullopt;
  return node;
}

bool Lenders::admits(size_t lender, size_t asker, double now) {
  std::vector<Place>& places = lenders_[lender].places;
  std::erase_if(places, [&](const Place& place) { return place.until <= now; });
  const auto own = std::ranges::find(places, uint64_t(asker), &Place::asker);
  const double until = now + seconds_of(tier::PeerServer::kPlaceKept);
  if (own != places.end()) {
    own->until = std::max(own->until, until);
    return true;
  }
  if (places.size() >= kAskersAtOnce) return false;
  places.push_back({asker, until});
  return true;
}

std::optional<int32_t> Lenders::has(size_t node, const store::Chain& chain,
                                    const Found& found) const {
  const Lender& lender = lenders_[node];
  const uint64_t manifest = store::short_key(found.holder.manifest);
  const auto is_there = [&](uint64_t key) {
    return lender.on_shelf.contains(key) || lender.folder.has(key);
  };
  // A record of its own, which goes with the last of its sequence.
  const bool is_on_shelf =
      std::ranges::find(lender.shelf, manifest, &Lent::manifest) != lender.shelf.end();
  if (!is_on_shelf && !lender.folder.has(manifest)) {
    return std::nullopt;
  }
  int32_t links = 0;
  while (links < found.links && is_there(store::short_key(chain.link(links + 1)))) ++links;
  return links;
}

double Lenders::move(size_t lender, size_t asker, int32_t blocks, double now) {
  Lender& from = lenders_[lender];
  const double rate = options_.bytes_per_second, bytes = blocks * options_.block_bytes;
  const double begin = std::max(from.sends_until, now);
  // As tier/peers/peer_server.cpp: what was saved up goes as fast as it can, the rest as it may.
  const double most = rate * seconds_of(tier::PeerServer::kSavedUp);
  from.allowance = std::min(most, from.allowance + rate * (begin - from.sends_until));
  const double fast = std::min(bytes, from.allowance);
  const double took = std::max(fast / options_.link_bytes_per_second, 0.0) + (bytes - fast) / rate;
  from.sends_until = begin + took;
  from.allowance += rate * took - bytes;
  const auto own = std::ranges::find(from.places, uint64_t(asker), &Place::asker);
  if (own != from.places.end()) {
    own->until = from.sends_until + seconds_of(tier::PeerServer::kPlaceKept);
  }
  return from.sends_until;
}

// What it has said last is believed for a while.
void Lenders::set_heard(size_t node, bool is_heard, double now) {
  const double since = random_.unit() * seconds_of(tier::kNodeBeat);
  lenders_[node].heard_until = is_heard ? kAlways : now - since + seconds_of(tier::kNodeKept);
}

void Lenders::begin_anew(size_t node, bool has_folder) {
  Lender& lender = lenders_[node];
  ++lender.life;
  lender.shelf.clear();
  lender.on_shelf.clear();
  lender.shelf_blocks = 0;
  lender.places.clear();
  lender.sends_until = 0;
  lender.allowance = options_.bytes_per_second * seconds_of(tier::PeerServer::kSavedUp);
  lender.heard_until = kAlways;
  if (!has_folder) lender.folder.clear();
}

}  // namespace cairn::bench
