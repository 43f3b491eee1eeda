// What a store has, in memory: which sequences begin how, which records each of them needs, how
// large and how old they are. Made by reading the folder, never written: the files are the truth.
// Not thread-safe: its store locks.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/keys.h"
#include "store/link_table.h"
#include "store/manifest.h"

namespace cairn::store {

struct DigestHash {
  size_t operator()(const Sha256Digest& digest) const { return size_t(short_key(digest)); }
};

// Pages of a group that a stored sequence has.
struct StoredPages {
  int32_t group = 0;
  memory::PageRun pages;

  bool operator==(const StoredPages&) const = default;
};

// A stored sequence.
struct IndexEntry {
  Sha256Digest name{};  // Of its manifest.
  Sha256Digest fingerprint{}, key_at_end{};
  int32_t length = 0;
  uint32_t layout = 0;  // By which its pages are laid out.
  std::string model;
  uint64_t tenant = 0;                       // Whose it is; 0: everybody's.
  std::vector<uint64_t> links;               // Short keys of its chain, without the first.
  std::vector<int32_t> borders;              // Positions that people come back to, ascending.
  std::vector<Sha256Digest> records;         // That it needs.
  std::vector<StoredPages> pages;            // Group by group, ascending.
  std::vector<int32_t> states, hidden_rows;  // Positions that have one, ascending.
  uint64_t manifest_bytes = 0;
  int64_t used_ns = 0;
  bool is_saved = false;  // A session's name stands for it: never evicted.
};

IndexEntry entry_of(const RecordHeader& header, const Manifest& manifest, const Chain& chain);

class Index {
 public:
  // Makes room for so many sequences with so many links in all.
  void reserve(size_t entry_count, size_t link_count);
  void add(IndexEntry entry);
  void remove(const Sha256Digest& name);
  // Null where there is none. Valid until the index changes.
  IndexEntry* find(const Sha256Digest& name);
  const IndexEntry* find(const Sha256Digest& name) const;
  size_t entry_count() const { return numbers_.size(); }
  std::vector<const IndexEntry*> oldest_first() const;

  struct Candidate {
    int32_t links = 0;  // At least so many links are common.
    Sha256Digest name{};
  };
  // Sequences that begin as the chain does, the longest common beginning first; of those that have
  // equally many links in common the newest, and only a few.
  std::vector<Candidate> candidates(const Chain& chain) const;
  // Sequences that `chain` goes on from and that hold no border which `borders` lacks: who has the
  // longer one does not miss them.
  std::vector<Sha256Digest> covered_by(const Chain& chain, int32_t length,
                                       std::span<const int32_t> borders) const;

  // Sequences that have so many whole links of the chain, and perhaps more of it.
  std::vector<Sha256Digest> passing(const Chain& chain, int32_t link_count) const;
  // All that have a file, in no order.
  std::vector<Sha256Digest> records() const;

  // A record's file, which entries may need or not.
  void note_record(const Sha256Digest& name, uint64_t bytes, int64_t written_ns);
  void forget_record(const Sha256Digest& name);
  // That no entry needs, and that were written before a time.
  std::vector<Sha256Digest> unneeded_records(int64_t before_ns) const;
  bool is_needed(const Sha256Digest& name) const;
  uint64_t record_bytes(const Sha256Digest& name) const;
  // Of the files of each tenant's sequences, each file once: tenants have none in common.
  std::map<uint64_t, uint64_t> bytes_by_tenant() const;
  // Those that a session's name stands for, and no others.
  void set_saved(const std::set<Sha256Digest>& names);
  // Grows whenever a sequence comes or goes.
  uint64_t change_count() const { return change_count_; }
  // Of all files.
  uint64_t total_bytes() const { return record_bytes_ + manifest_bytes_; }

 private:
  struct RecordUse {
    uint64_t bytes = 0;
    int64_t written_ns = 0;
    int32_t entries = 0;
    bool is_there = false;
  };

  const Sha256Digest& name_at(uint32_t number) const { return entries_[number].name; }

  std::vector<IndexEntry> entries_;  // By number; those of free numbers are empty.
  std::vector<uint32_t> free_numbers_;
  std::unordered_map<Sha256Digest, uint32_t, DigestHash> numbers_;  // By name.
  std::unordered_map<Sha256Digest, RecordUse, DigestHash> records_;
  LinkTable passing_;  // By each link.
  LinkTable ending_;   // By the last link.
  uint64_t record_bytes_ = 0, manifest_bytes_ = 0;
  uint64_t change_count_ = 0;
};

}  // namespace cairn::store
