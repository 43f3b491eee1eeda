// A sample of what was sent, from which some are drawn.
#include "tier/room.h"

#include <algorithm>

namespace cairn::tier {
namespace {

constexpr size_t kSentMax = 1024;
// What is new has not been driven out yet where anything is; and what is old may have had its time.
constexpr double kAgeMin = 1.0 / 6, kAgeMax = 0.85;

}  // namespace

void Room::note_sent(const Sha256Digest& name, Clock::time_point now) {
  if (sent_count_++ % stride_ != 0) return;
  sent_.push_back({name, now});
  if (sent_.size() < kSentMax) return;
  // Every second one.
  for (size_t index = 0; index < sent_.size() / 2; ++index) sent_[index] = sent_[2 * index];
  sent_.resize(sent_.size() / 2);
  stride_ *= 2;
}

std::optional<Sha256Digest> Room::next(Clock::time_point now) {
  while (!sent_.empty() && now - sent_.front().at > kAgeMax * kept_) sent_.pop_front();
  if (stride_ > 1 && sent_.size() < kSentMax / 8) stride_ /= 2;
  const auto young = std::partition_point(sent_.begin(), sent_.end(), [&](const Sent& sent) {
    return now - sent.at >= kAgeMin * kept_;
  });
  if (young == sent_.begin()) return std::nullopt;
  asked_ = chance_.below(uint32_t(young - sent_.begin()));
  return sent_[asked_].name;
}

// One that is gone is counted once.
void Room::note_found(bool is_there) {
  found_ = is_there ? std::min(found_ + 1, kFoundMax) : 0;
  if (!is_there) sent_.erase(sent_.begin() + std::ptrdiff_t(asked_));
}

int32_t admitted_length(Publishing publishing, int32_t used, int32_t whole, bool has_place) {
  if (publishing == Publishing::nothing) return 0;
  if (publishing == Publishing::all || has_place) return whole;
  return 2 * used >= whole ? whole : used;
}

}  // namespace cairn::tier
