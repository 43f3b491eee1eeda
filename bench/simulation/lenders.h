// What simulated nodes lend each other: for each what it has on its shelf and in its folder, who is
// lent to now, and the directory in the tier, whose entries are the real ones, sealed. Who asks
// whom is decided by whoever asks. Virtual time. Not thread-safe.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/simulation/node.h"
#include "bench/simulation/simulated_redis.h"
#include "store/keys.h"
#include "tier/peers/directory.h"
#include "tier/secret.h"

namespace cairn::bench {

class Lenders {
 public:
  struct Options {
    int32_t nodes = 1;
    int32_t shelf_blocks = 0, folder_blocks = 0;
    double block_bytes = 0;
    double bytes_per_second = 0, link_bytes_per_second = 0;  // That a node lends at most, and can.
    std::string_view secret;
    uint64_t seed = 1;
  };
  Lenders(const Options& options, SimulatedRedis::Notes* directory);

  // So many of a prompt's first blocks a node finds in its own folder.
  int32_t folder_common(size_t node, const store::Chain& chain) const;
  // A node has read a prompt: it keeps it, and, where it reaches the tier, says so.
  void note_read(size_t node, const std::shared_ptr<const store::Chain>& chain, double now,
                 bool is_told);

  // A sequence that begins with so many of a prompt's blocks, and who has it.
  struct Found {
    int32_t links = 0;
    tier::Holder holder;
  };
  // Those that may have more of a prompt than its first `known` blocks: what the most is of first,
  // and so many at most.
  std::vector<Found> find(const store::Chain& chain, int32_t known, size_t asker, size_t most,
                          double now) const;
  // The node of this number, if it has said a moment ago that it lives.
  std::optional<size_t> node_of(uint64_t number, double now) const;
  // Whether a node lends to this one now, which has its place until `until` at least.
  bool admits(size_t lender, size_t asker, double now);
  // So many of a prompt's first blocks it has still; none: not what was found.
  std::optional<int32_t> has(size_t lender, const store::Chain& chain, const Found& found) const;
  // When it has sent so many blocks, after what it has to send already.
  double move(size_t lender, size_t asker, int32_t blocks, double now);

  // It is not heard of any more, or again; what dies comes back with another number.
  void set_heard(size_t node, bool is_heard, double now);
  void begin_anew(size_t node, bool has_folder);

  double registered_bytes() const { return registered_bytes_; }  // Of the directory, both ways.
  bool is_within_budget() const { return is_within_budget_; }

 private:
  struct Lent {
    std::shared_ptr<const store::Chain> chain;
    uint64_t manifest = 0;
  };
  struct Place {
    uint64_t asker = 0;
    double until = 0;
  };
  struct Lender {
    explicit Lender(size_t folder_blocks) : folder(folder_blocks) {}

    std::deque<Lent> shelf;                                 // The newest last.
    boost::unordered_flat_map<uint64_t, int32_t> on_shelf;  // How often a block is on it.
    int32_t shelf_blocks = 0;                               // As snapshots are counted: each alone.
    BlockMemory folder;
    std::vector<Place> places;
    double sends_until = 0, allowance = 0;  // In bytes, at that time.
    double heard_until = 0;
    uint32_t life = 0;
  };
  uint64_t number_of(size_t node) const { return uint64_t(lenders_[node].life) << 32 | node; }
  void take_off(Lender& lender, size_t index);
  void put_on_shelf(Lender& lender, const std::shared_ptr<const store::Chain>& chain);

  Options options_;
  tier::Secret secret_;
  SimulatedRedis::Notes* directory_;
  Random random_;
  std::vector<Lender> lenders_;
  double registered_bytes_ = 0;
  bool is_within_budget_ = true;
};

}  // namespace cairn::bench
