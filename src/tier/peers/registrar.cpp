// Who is there is read, and written again with this machine first.
#include "tier/peers/registrar.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/byte_text.h"
#include "tier/peers/peer_server.h"

namespace cairn::tier {

namespace {

// Commands that are on their way at once: their replies are short.
constexpr size_t kPlacesAtOnce = 256;

Status expect_taken(const Reply& reply) {
  if (reply.kind == Reply::Kind::text || reply.kind == Reply::Kind::lost) return Ok{};
  return refusal(reply);
}

}  // namespace

Registrar::Entry Registrar::entry_of(const store::Chain& chain, int32_t length,
                                     const Sha256Digest& manifest) {
  Entry entry{.links = {}, .end = chain.key_at(length), .manifest = manifest};
  for (int32_t link = 1; link <= length / store::kChainTokens; ++link) {
    entry.links.push_back(chain.link(link));
  }
  return entry;
}

Status Registrar::beat(Servers& servers) {
  const Clock::time_point now = Clock::now();
  if (now < next_beat_) return Ok{};
  const std::string key = tier_->secret().key_of(kNodeKey, tier_->node());
  const std::vector<std::byte> value = encode_node(tier_->secret(), key, tier_->peers()->address());
  const std::string kept =
      fmt::format("{}", std::chrono::milliseconds(kNodeKept) / std::chrono::milliseconds(1));
  const std::array<std::string_view, 4> words = {"PSETEX", key, kept, as_text(value)};
  CAIRN_TRY(const Reply reply, servers.ask(words, 0, now + tier_->options().times.write));
  CAIRN_TRY(expect_taken(reply));
  next_beat_ = now + kNodeBeat;
  return Ok{};
}

Status Registrar::add(Servers& servers, const Entry& entry, const std::atomic<bool>& gives_up) {
  const Holder holder{.node = tier_->node(), .manifest = entry.manifest};
  std::vector<Place> places = {{tier_->key_of(kEndHoldersKey, entry.end), holder}};
  for (const Sha256Digest& link : entry.links) {
    places.push_back({tier_->key_of(kHoldersKey, link), holder});
  }
  for (size_t first = 0; first < places.size(); first += kPlacesAtOnce) {
    if (gives_up) return fail(ErrorCode::cancelled, "tier: the memory is needed");
    CAIRN_TRY(beat(servers));
    const size_t count = std::min(kPlacesAtOnce, places.size() - first);
    CAIRN_TRY(add_some(servers, std::span(places).subspan(first, count)));
  }
  tier_->count(&TierStats::registered);
  return Ok{};
}

Status Registrar::add_some(Servers& servers, std::span<const Place> places) {
  const Clock::time_point deadline = Clock::now() + tier_->options().times.write;
  std::vector<PendingReply> replies;
  for (const Place& place : places) {
    const std::array<std::string_view, 2> words = {"GET", place.key};
    CAIRN_TRY(PendingReply reply, servers.send(words, kHoldersBytesMax, deadline));
    replies.push_back(std::move(reply));
  }
  std::vector<std::vector<Holder>> holders;
  for (size_t index = 0; index < places.size(); ++index) {
    CAIRN_TRY(const Reply* const reply, servers.wait(replies[index], deadline));
    if (reply->kind == Reply::Kind::error) return refusal(*reply);
    holders.push_back(with_newest(
        places[index].holder, decode_holders(tier_->secret(), places[index].key, reply->bytes)));
  }
  replies.clear();
  for (size_t index = 0; index < places.size(); ++index) {
    const std::vector<std::byte> value =
        encode_holders(tier_->secret(), places[index].key, holders[index]);
    const std::string kept = tier_->kept_ms();
    const std::array<std::string_view, 4> words = {"PSETEX", places[index].key, kept,
                                                   as_text(value)};
    CAIRN_TRY(PendingReply reply, servers.send(words, 0, deadline));
    replies.push_back(std::move(reply));
  }
  for (const PendingReply& reply : replies) {
    CAIRN_TRY(const Reply* const come, servers.wait(reply, deadline));
    CAIRN_TRY(expect_taken(*come));
  }
  return Ok{};
}

}  // namespace cairn::tier
