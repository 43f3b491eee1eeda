// Marks as a list of switches: appending compares the last origin with the next one.
#include "jinja/values/marked_text.h"

#include <algorithm>

namespace cairn::jinja {

bool MarkedText::is_trusted_at(size_t offset) const {
  const auto after = std::upper_bound(switches_.begin(), switches_.end(), offset);
  return ((after - switches_.begin()) % 2 == 0) == first_;
}

// The origin of what comes next.
void MarkedText::go_on_as(bool trusted) {
  if (bytes_.empty()) {
    first_ = trusted;
    switches_.clear();
  } else if ((switches_.size() % 2 == 0 ? first_ : !first_) != trusted) {
    switches_.push_back(uint32_t(bytes_.size()));
  }
}

void MarkedText::append(std::string_view bytes, bool trusted) {
  if (bytes.empty()) return;
  go_on_as(trusted);
  bytes_.append(bytes);
}

void MarkedText::append(const MarkedText& other, size_t begin, size_t end) {
  if (begin >= end) return;
  const std::string_view bytes = other.bytes().substr(begin, end - begin);
  if (other.switches_.empty()) return append(bytes, other.first_);
  const auto next = std::upper_bound(other.switches_.begin(), other.switches_.end(), begin);
  const auto last = std::lower_bound(next, other.switches_.end(), end);
  go_on_as(((next - other.switches_.begin()) % 2 == 0) == other.first_);
  const size_t offset = bytes_.size() - begin;
  const size_t known = switches_.size();
  switches_.resize(known + size_t(last - next));
  std::transform(next, last, switches_.begin() + std::ptrdiff_t(known),
                 [offset](uint32_t at) { return uint32_t(at + offset); });
  bytes_.append(bytes);
}

MarkedText MarkedText::slice(size_t begin, size_t end) const {
  MarkedText piece;
  piece.append(*this, begin, end);
  return piece;
}

bool OriginWalk::is_trusted_at(size_t offset) {
  while (next_ < text_.switches_.size() && text_.switches_[next_] <= offset) ++next_;
  return (next_ % 2 == 0) == text_.first_;
}

std::vector<OriginSpan> MarkedText::spans() const {
  std::vector<OriginSpan> spans;
  if (bytes_.empty()) return spans;
  size_t begin = 0;
  bool trusted = first_;
  for (const uint32_t at : switches_) {
    spans.push_back({begin, at, trusted});
    begin = at;
    trusted = !trusted;
  }
  spans.push_back({begin, bytes_.size(), trusted});
  return spans;
}

}  // namespace cairn::jinja
