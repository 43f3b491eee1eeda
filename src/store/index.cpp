// Tables by links, and counts of who needs which record.
#include "store/index.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "store/pieces.h"

namespace cairn::store {
namespace {

constexpr size_t kOfOneLength = 4;
constexpr size_t kCandidatesMax = 16;

// Sequences without a whole link end under this one.
uint64_t last_link(const IndexEntry& entry) {
  return entry.links.empty() ? short_key(entry.fingerprint) : entry.links.back();
}

}  // namespace

IndexEntry entry_of(const RecordHeader& header, const Manifest& manifest, const Chain& chain) {
  IndexEntry entry{.name = name_of(header),
                   .fingerprint = header.fingerprint,
                   .key_at_end = header.key_at_end,
                   .length = manifest.outline.length(),
                   .layout = header.layout,
                   .model = manifest.model,
                   .tenant = manifest.tenant,
                   .manifest_bytes = header.file_bytes()};
  entry.links.reserve(size_t(chain.link_count()));
  for (int32_t link = 1; link <= chain.link_count(); ++link) {
    entry.links.push_back(short_key(chain.link(link)));
  }
  entry.states = manifest.outline.state_positions();
  entry.hidden_rows = manifest.outline.hidden_positions();
  for (size_t group = 0; group < manifest.outline.runs.size(); ++group) {
    for (const memory::PageRun& run : manifest.outline.runs[group]) {
      entry.pages.push_back({.group = int32_t(group), .pages = run});
    }
  }
  const bool needs_states = !entry.states.empty();
  for (const memory::OutlineAnchor& anchor : manifest.outline.anchors) {
    const bool is_lasting = anchor.kind == memory::AnchorKind::message_start ||
                            anchor.kind == memory::AnchorKind::branch;
    if (is_lasting && (anchor.has_state || !needs_states)) entry.borders.push_back(anchor.position);
  }
  entry.records.reserve(manifest.pieces.size());
  for (const PieceRef& piece : manifest.pieces) entry.records.push_back(piece.name);
  return entry;
}

void Index::reserve(size_t entry_count, size_t link_count) {
  entries_.reserve(entry_count);
  numbers_.reserve(entry_count);
  ending_.reserve(entry_count);
  passing_.reserve(link_count);
}

void Index::add(IndexEntry entry) {
  remove(entry.name);
  ++change_count_;
  manifest_bytes_ += entry.manifest_bytes;
  if (free_numbers_.empty()) {
    free_numbers_.push_back(uint32_t(entries_.size()));
    entries_.emplace_back();
  }
  const uint32_t number = free_numbers_.back();
  free_numbers_.pop_back();
  for (const Sha256Digest& record : entry.records) ++records_[record].entries;
  for (const uint64_t link : entry.links) passing_.add(link, number);
  ending_.add(last_link(entry), number);
  numbers_.emplace(entry.name, number);
  entries_[number] = std::move(entry);
}

void Index::remove(const Sha256Digest& name) {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return;
  ++change_count_;
  const uint32_t number = found->second;
  const IndexEntry entry = std::exchange(entries_[number], {});
  manifest_bytes_ -= entry.manifest_bytes;
  for (const Sha256Digest& record : entry.records) {
    RecordUse& use = records_[record];
    if (--use.entries == 0 && !use.is_there) records_.erase(record);
  }
  for (const uint64_t link : entry.links) passing_.remove(link, number);
  ending_.remove(last_link(entry), number);
  numbers_.erase(found);
  free_numbers_.push_back(number);
}

IndexEntry* Index::find(const Sha256Digest& name) {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? nullptr : &entries_[found->second];
}

const IndexEntry* Index::find(const Sha256Digest& name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? nullptr : &entries_[found->second];
}

std::vector<const IndexEntry*> Index::oldest_first() const {
  std::vector<const IndexEntry*> list;
  for (const auto& [name, number] : numbers_) list.push_back(&entries_[number]);
  std::ranges::sort(list, [](const IndexEntry* a, const IndexEntry* b) {
    return a->used_ns != b->used_ns ? a->used_ns < b->used_ns : a->name < b->name;
  });
  return list;
}

std::vector<Index::Candidate> Index::candidates(const Chain& chain) const {
  std::vector<Candidate> list;
  std::set<uint32_t> seen;
  for (int32_t link = chain.link_count(); link > 0 && list.size() < kCandidatesMax; --link) {
    for (const uint32_t number : passing_.find(short_key(chain.link(link)), kOfOneLength)) {
      if (seen.insert(number).second) list.push_back({.links = link, .name = name_at(number)});
    }
  }
  return list;
}

std::vector<Sha256Digest> Index::covered_by(const Chain& chain, int32_t length,
                                            std::span<const int32_t> borders) const {
  std::vector<Sha256Digest> covered;
  for (int32_t link = 0; link <= chain.link_count(); ++link) {
    const Sha256Digest& last = link == 0 ? chain.fingerprint() : chain.link(link);
    for (const uint32_t number : ending_.find(short_key(last))) {
      const IndexEntry& entry = entries_[number];
      if (entry.length > length || entry.key_at_end != chain.key_at(entry.length)) continue;
      if (std::ranges::includes(borders, entry.borders)) covered.push_back(entry.name);
    }
  }
  return covered;
}

std::vector<Sha256Digest> Index::passing(const Chain& chain, int32_t link_count) const {
  std::vector<Sha256Digest> names;
  if (link_count > 0) {
    for (const uint32_t number : passing_.find(short_key(chain.link(link_count)))) {
      names.push_back(name_at(number));
    }
    return names;
  }
  for (const auto& [name, number] : numbers_) {
    if (entries_[number].fingerprint == chain.fingerprint()) names.push_back(name);
  }
  return names;
}

std::vector<Sha256Digest> Index::records() const {
  std::vector<Sha256Digest> names;
  for (const auto& [name, use] : records_) {
    if (use.is_there) names.push_back(name);
  }
  return names;
}

void Index::note_record(const Sha256Digest& name, uint64_t bytes, int64_t written_ns) {
  RecordUse& use = records_[name];
  if (use.is_there) record_bytes_ -= use.bytes;
  use.is_there = true;
  use.bytes = bytes;
  use.written_ns = written_ns;
  record_bytes_ += bytes;
}

void Index::forget_record(const Sha256Digest& name) {
  const auto found = records_.find(name);
  if (found == records_.end() || !found->second.is_there) return;
  record_bytes_ -= found->second.bytes;
  found->second.is_there = false;
  if (found->second.entries == 0) records_.erase(found);
}

std::vector<Sha256Digest> Index::unneeded_records(int64_t before_ns) const {
  std::vector<Sha256Digest> names;
  for (const auto& [name, use] : records_) {
    if (use.entries == 0 && use.written_ns < before_ns) names.push_back(name);
  }
  return names;
}

bool Index::is_needed(const Sha256Digest& name) const {
  const auto found = records_.find(name);
  return found != records_.end() && found->second.entries > 0;
}

uint64_t Index::record_bytes(const Sha256Digest& name) const {
  const auto found = records_.find(name);
  return found == records_.end() || !found->second.is_there ? 0 : found->second.bytes;
}

void Index::set_saved(const std::set<Sha256Digest>& names) {
  for (const auto& [name, number] : numbers_) entries_[number].is_saved = names.contains(name);
}

std::map<uint64_t, uint64_t> Index::bytes_by_tenant() const {
  std::map<uint64_t, uint64_t> bytes;
  std::unordered_set<Sha256Digest, DigestHash> counted;
  for (const auto& [name, number] : numbers_) {
    const IndexEntry& entry = entries_[number];
    uint64_t& of_tenant = bytes[entry.tenant];
    of_tenant += entry.manifest_bytes;
    for (const Sha256Digest& record : entry.records) {
      if (counted.insert(record).second) of_tenant += record_bytes(record);
    }
  }
  return bytes;
}

}  // namespace cairn::store
