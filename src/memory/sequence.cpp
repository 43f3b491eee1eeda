// What a sequence keeps and releases as it grows, is cut and gets anchors.
#include "memory/sequence.h"

#include <algorithm>
#include <utility>

namespace cairn::memory {

Sequence::Sequence(Store* store, Variant variant) : store_(store), variant_(variant) {
  const int32_t tokens_max = store->options().context_tokens_max;
  tokens_ = TokenList(size_t(tokens_max));
  for (int32_t group = 0; group < store->group_count(); ++group) {
    const GroupSpec& spec = store->spec(group);
    PageTable& table = tables_.emplace_back(spec.has_pages() ? &store->pool(group) : nullptr);
    if (spec.has_pages()) table.reserve(size_t(spec.page_count(tokens_max)));
  }
}

Sequence::Sequence(Sequence&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      variant_(other.variant_),
      tokens_(std::exchange(other.tokens_, {})),
      tables_(std::exchange(other.tables_, {})),
      state_(std::move(other.state_)),
      hidden_(std::move(other.hidden_)),
      anchors_(std::exchange(other.anchors_, {})),
      log_begin_(std::exchange(other.log_begin_, 0)),
      protected_from_(std::exchange(other.protected_from_, 0)) {}

Sequence& Sequence::operator=(Sequence other) noexcept {
  std::swap(store_, other.store_);
  std::swap(variant_, other.variant_);
  std::swap(tokens_, other.tokens_);
  std::swap(tables_, other.tables_);
  std::swap(state_, other.state_);
  std::swap(hidden_, other.hidden_);
  std::swap(anchors_, other.anchors_);
  std::swap(log_begin_, other.log_begin_);
  std::swap(protected_from_, other.protected_from_);
  return *this;
}

int32_t Sequence::base_anchor() const {
  for (size_t index = anchors_.size(); index-- > 0;) {
    if (anchors_[index].state) return int32_t(index);
  }
  return -1;
}

bool Sequence::log_derives_end(size_t without_anchor) const {
  if (!store_->has_log()) return false;
  if (log_begin_ == 0) return true;  // From the zeros at the beginning.
  for (size_t index = 0; index < anchors_.size(); ++index) {
    const Anchor& anchor = anchors_[index];
    if (index != without_anchor && anchor.state && anchor.position >= log_begin_) return true;
  }
  return false;
}

const Anchor* Sequence::anchor_at(int32_t position) const {
  const auto found = std::lower_bound(
      anchors_.begin(), anchors_.end(), position,
      [](const Anchor& anchor, int32_t wanted) { return anchor.position < wanted; });
  return found != anchors_.end() && found->position == position ? &*found : nullptr;
}

void Sequence::cut(int32_t length) {
  if (length == this->length()) return;
  tokens_.truncate(length);
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    const GroupSpec& spec = store_->spec(group);
    if (spec.has_pages()) tables_[size_t(group)].truncate(spec.page_count(length));
  }
  while (!anchors_.empty() && anchors_.back().position > length) anchors_.pop_back();
  const Anchor* const anchor = anchor_at(length);
  state_ = anchor == nullptr ? BlockRef() : anchor->state;
  hidden_ = anchor == nullptr ? BlockRef() : anchor->hidden;
  log_begin_ = std::min(log_begin_, length);
  trim_log();
  drop_unneeded_pages();
}

// A position has one anchor, with the newest kind and all that was ever kept there. The kind `tail`
// does not replace another.
void Sequence::add_anchor(Anchor anchor) {
  Anchor* const last = anchors_.empty() ? nullptr : &anchors_.back();
  DCHECK(last == nullptr || last->position <= anchor.position);
  if (last == nullptr || last->position < anchor.position) {
    if (anchor.kind != AnchorKind::tail) ++store_->snapshot_counts().created;
    anchors_.push_back(std::move(anchor));
    return;
  }
  if (anchor.kind != AnchorKind::tail) {
    if (last->kind == AnchorKind::tail) ++store_->snapshot_counts().created;
    last->kind = anchor.kind;
  }
  if (!last->state) last->state = std::move(anchor.state);
  if (!last->hidden) last->hidden = std::move(anchor.hidden);
}

// The log begins at the oldest state that is near enough; tails before it have no use.
void Sequence::trim_log() {
  if (!store_->has_log()) return;
  const int32_t oldest = std::max(log_begin_, length() - store_->options().log_tokens_max);
  int32_t begin = length();
  if (oldest <= 0) {
    begin = 0;
  } else {
    for (const Anchor& anchor : anchors_) {
      if (!anchor.state || anchor.position < oldest) continue;
      begin = anchor.position;
      break;
    }
  }
  log_begin_ = begin;
  std::erase_if(anchors_, [&](const Anchor& anchor) {
    return anchor.kind == AnchorKind::tail && anchor.position < begin;
  });
  PageTable& log = tables_[size_t(store_->layout().log_group)];
  log.drop_before(begin == length() ? log.size() : begin / kLogPageTokens);
}

// Between two states that are at most a step of the log apart, a third one saves next to nothing.
// From the end on, as far as the log reaches: there are few.
void Sequence::drop_spare_tails() {
  if (!store_->has_log()) return;
  const auto is_logged = [this](size_t index) { return anchors_[index].position >= log_begin_; };
  int32_t next = state_ ? length() : INT32_MAX;  // The state behind.
  for (size_t index = anchors_.size(); index-- > 0 && is_logged(index);) {
    if (!anchors_[index].state) continue;
    size_t before = index;
    while (before > 0 && is_logged(before - 1) && !anchors_[before - 1].state) --before;
    const bool has_before = before > 0 && is_logged(before - 1);
    const bool is_spare =
        anchors_[index].kind == AnchorKind::tail && next != INT32_MAX &&
        (has_before || log_begin_ == 0) &&
        next - (has_before ? anchors_[before - 1].position : 0) <= store_->log_step();
    if (is_spare) {
      anchors_.erase(anchors_.begin() + std::ptrdiff_t(index));
    } else {
      next = anchors_[index].position;
    }
  }
}

void Sequence::drop_unneeded_pages() {
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    if (store_->spec(group).has_window()) drop_unneeded_pages(group);
  }
}

// Anchors ascend, and what they need begins and ends in the same order: one walk over both.
void Sequence::drop_unneeded_pages(int32_t group) {
  const GroupSpec& spec = store_->spec(group);
  PageTable& table = tables_[size_t(group)];
  const int32_t protected_begin = first_needed(spec, std::min(protected_from_, length()));
  const int32_t page_end = std::min(protected_begin / kPageTokens, table.size());
  size_t index = 0;
  for (int32_t page = table.first_kept(); page < page_end; ++page) {
    const int32_t begin = page * kPageTokens;
    while (index < anchors_.size() && anchors_[index].position <= begin) ++index;
    const bool is_needed = index < anchors_.size() &&
                           first_needed(spec, anchors_[index].position) < begin + kPageTokens;
    if (!is_needed) table.drop(page);
  }
}

}  // namespace cairn::memory
