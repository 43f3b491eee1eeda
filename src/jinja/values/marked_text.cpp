// Marks as a list of switches: appending compares the last origin with the next one.
#include "jinja/values/marked_text.h"

#include <algorithm>

namespace cairn::jinja {

bool MarkedText::is_trusted_at(size_t offset) const {
  const auto after = std::upper_bound(switches_.begin(), switches_.end(), offset);
  return ((after - switches_.begin()) % 2 == 0) == first_;
}

void MarkedText::append(std::string_view bytes, bool trusted) {
  if (bytes.empty()) return;
  if (bytes_.empty()) {
    first_ = trusted;
    switches_.clear();
  } else if ((switches_.size() % 2 == 0 ? first_ : !first_) != trusted) {
    switches_.push_back(uint32_t(bytes_.size()));
  }
  bytes_.append(bytes);
}

void MarkedText::append(const MarkedText& other, size_t begin, size_t end) {
  if (begin >= end) return;
  const std::string_view bytes = other.bytes();
  if (other.switches_.empty()) return append(bytes.substr(begin, end - begin), other.first_);
  auto next = std::upper_bound(other.switches_.begin(), other.switches_.end(), begin);
  bool trusted = ((next - other.switches_.begin()) % 2 == 0) == other.first_;
  while (begin < end) {
    const size_t stop = next == other.switches_.end() ? end : std::min<size_t>(end, *next++);
    append(bytes.substr(begin, stop - begin), trusted);
    begin = stop;
    trusted = !trusted;
  }
}

MarkedText MarkedText::slice(size_t begin, size_t end) const {
  MarkedText piece;
  piece.append(*this, begin, end);
  return piece;
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
