// Texts one after the other, and tenants apart from each other.
#include "draft/corpus.h"

#include <algorithm>

namespace cairn::draft {

namespace {

// A continued text begins with so many of the tokens that are known, so that matches run from them
// into what is new; and tokens are known where at least so many before them are. Short enough that
// turns of some hundred tokens are not stored half again.
constexpr size_t kOverlap = 32;

}  // namespace

size_t Corpus::known_count(std::span<const Token> text) const {
  TextIndex::Cursor cursor;
  for (size_t i = 0; i < text.size(); ++i) {
    index_.follow(cursor, text.first(i + 1), 1);
    if (size_t(index_.longest(cursor).length) < std::min(i + 1, kOverlap)) return i;
  }
  return text.size();
}

void Corpus::append(std::span<const Token> text, size_t known_count) {
  known_count = std::min(known_count, text.size());
  if (known_count == text.size()) return;
  const auto context = text.first(known_count).last(std::min(known_count, kOverlap));
  if (context.empty() || !index_.ends_with(context)) {
    index_.end_text();
    for (const Token token : context) index_.append(token);
  }
  for (const Token token : text.subspan(known_count)) index_.append(token);
}

std::shared_ptr<Knowledge> Corpora::of(std::string_view tenant) {
  const auto found = by_name_.find(tenant);
  if (found != by_name_.end()) {
    tenants_.splice(tenants_.begin(), tenants_, found->second);
  } else {
    tenants_.push_front({.name = std::string(tenant),
                         .knowledge = std::make_shared<Knowledge>(budget_.tenant_bytes)});
    by_name_.emplace(tenants_.front().name, tenants_.begin());
    trim();
  }
  return tenants_.front().knowledge;
}

void Corpora::trim() {
  size_t bytes = this->bytes();
  for (auto tenant = tenants_.end(); bytes > budget_.bytes && tenant != tenants_.begin();) {
    --tenant;
    Knowledge& knowledge = *tenant->knowledge;
    bytes -= knowledge.bytes();
    knowledge.said.forget();
    knowledge.successors.forget();
    if (tenant->knowledge.use_count() > 1) {
      bytes += knowledge.bytes();
      continue;
    }
    by_name_.erase(tenant->name);
    tenant = tenants_.erase(tenant);
  }
}

size_t Corpora::bytes() const {
  size_t bytes = 0;
  for (const Tenant& tenant : tenants_) bytes += tenant.knowledge->bytes();
  return bytes;
}

}  // namespace cairn::draft
