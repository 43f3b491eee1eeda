// Slots, and what servers say of them.
#include "tier/cluster.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/text/byte_text.h"

namespace cairn::tier {
namespace {

// Of each byte, by x^16 + x^12 + x^5 + 1.
constexpr std::array<uint16_t, 256> kRemainders = [] {
  std::array<uint16_t, 256> made{};
  for (uint32_t byte = 0; byte < made.size(); ++byte) {
    uint32_t remainder = byte << 8;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = (remainder << 1) ^ ((remainder & 0x8000) != 0 ? 0x1021 : 0);
    }
    made[byte] = uint16_t(remainder);
  }
  return made;
}();

Error wrong_slots(std::string_view expected) {
  return fail(ErrorCode::invalid_data, "tier: expected {} in a list of slots", expected);
}

bool read_slot(std::string_view text, int32_t& slot) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slot);
  return error == std::errc() && end == text.data() + text.size() && slot >= 0 && slot < kSlots;
}

// A line of a list: the first slot, the last one, the server that writes, and those that copy it.
struct SlotRange {
  int32_t first = 0, last = 0;
  std::string server;
};

Result<SlotRange> read_range(const Reply& line) {
  using Kind = Reply::Kind;
  const std::vector<Reply>& items = line.items;
  if (line.kind != Kind::list || items.size() < 3 || items[0].kind != Kind::number ||
      items[1].kind != Kind::number || items[2].kind != Kind::list) {
    return wrong_slots("two numbers and a server");
  }
  const int64_t first = items[0].number, last = items[1].number;
  if (first < 0 || last < first || last >= kSlots) return wrong_slots("slots below 16384");
  const std::vector<Reply>& server = items[2].items;
  if (server.size() < 2 || server[1].kind != Kind::number) return wrong_slots("a host and a port");
  return SlotRange{.first = int32_t(first),
                   .last = int32_t(last),
                   .server = fmt::format("{}:{}", as_text(server[0].bytes), server[1].number)};
}

}  // namespace

int32_t slot_of(std::string_view key) {
  uint32_t remainder = 0;
  for (const char sign : key) {
    remainder = ((remainder << 8) & 0xffff) ^ kRemainders[(remainder >> 8) ^ uint8_t(sign)];
  }
  return int32_t(remainder) % kSlots;
}

std::optional<Redirect> Redirect::read(const Reply& reply) {
  if (reply.kind != Reply::Kind::error) return std::nullopt;
  std::string_view text = reply.text;
  Redirect redirect{.is_for_good = text.starts_with("MOVED "), .slot = 0, .server = {}};
  if (!redirect.is_for_good && !text.starts_with("ASK ")) return std::nullopt;
  text.remove_prefix(text.find(' ') + 1);
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || !read_slot(text.substr(0, space), redirect.slot)) {
    return std::nullopt;
  }
  redirect.server = text.substr(space + 1);
  return redirect;
}

Cluster::Cluster(const TierAddress* home, uint64_t seed)
    : home_(home),
      seed_(seed),
      home_shard_(std::make_shared<Shard>(std::string(), std::nullopt, seed)),
      shards_{{home_shard_->name, home_shard_}} {}

bool Cluster::is_known() const {
  const std::lock_guard lock(mutex_);
  return is_known_;
}

bool Cluster::is_complete() const {
  const std::lock_guard lock(mutex_);
  return is_complete_;
}

std::shared_ptr<Shard> Cluster::shard_of(int32_t slot) const {
  const std::lock_guard lock(mutex_);
  return slots_[size_t(slot)];
}

std::shared_ptr<Shard> Cluster::shard_named(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return find_or_add(name);
}

std::shared_ptr<Shard> Cluster::any_shard() {
  const std::lock_guard lock(mutex_);
  auto next = shards_.upper_bound(last_any_);
  if (next == shards_.end()) next = shards_.begin();
  last_any_ = next->first;
  return next->second;
}

std::shared_ptr<Shard> Cluster::find_or_add(const std::string& name) {
  const auto found = shards_.find(name);
  if (found != shards_.end()) return found->second;
  const size_t colon = name.rfind(':');
  if (colon == std::string::npos || shards_.size() >= kShardsMax) return nullptr;
  const uint64_t seed = seed_ + 2 * shards_.size();
  auto made = std::make_shared<Shard>(
      name, numeric_address(*home_, name.substr(0, colon), name.substr(colon + 1)), seed);
  shards_.emplace(name, made);
  return made;
}

// Servers that have no slot any more are forgotten, with how they did.
Status Cluster::take(const Reply& reply) {
  if (reply.kind != Reply::Kind::list) return wrong_slots("a list");
  std::vector<SlotRange> ranges;
  int32_t slot_count = 0;
  for (const Reply& line : reply.items) {
    CAIRN_TRY(SlotRange range, read_range(line));
    slot_count += range.last - range.first + 1;
    if (slot_count > kSlots) return wrong_slots("each slot once");
    ranges.push_back(std::move(range));
  }
  if (ranges.empty()) return wrong_slots("a server");
  std::set<std::string> names = {home_shard_->name};
  for (const SlotRange& range : ranges) names.insert(range.server);
  const std::lock_guard lock(mutex_);
  std::erase_if(shards_, [&](const auto& one) { return !names.contains(one.first); });
  slots_.fill(nullptr);
  for (const SlotRange& range : ranges) {
    const auto first = slots_.begin() + range.first, last = slots_.begin() + range.last;
    std::fill(first, last + 1, find_or_add(range.server));
  }
  is_known_ = is_complete_ = true;
  is_stale_ = false;
  return Ok{};
}

void Cluster::note_moved(const Redirect& redirect) {
  const std::lock_guard lock(mutex_);
  is_known_ = is_stale_ = true;
  slots_[size_t(redirect.slot)] = find_or_add(redirect.server);
}

void Cluster::note_stale() {
  const std::lock_guard lock(mutex_);
  is_stale_ = true;
}

bool Cluster::begin_refresh(Breaker::Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!is_known_ || !is_stale_) return false;
  if (refreshed_at_ && now - *refreshed_at_ < kRefresh) return false;
  refreshed_at_ = now;
  return true;
}

uint64_t Cluster::opened() const {
  const std::lock_guard lock(mutex_);
  uint64_t opened = 0;
  for (const auto& [name, shard] : shards_)
    opened += shard->reads.opened() + shard->writes.opened();
  return opened;
}

bool Cluster::is_open() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(shards_, [](const auto& one) { return one.second->reads.is_open(); });
}

}  // namespace cairn::tier
