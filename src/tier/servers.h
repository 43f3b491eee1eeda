// Commands to a tier, be it one server or a cluster of them: each goes to the server that has its
// key, all of those to one server on one connection, one behind the other. Where a server of a
// cluster cannot be reached, or refuses, the replies of its keys alone are lost; where there is but
// one server, that is an error. That a tier is a cluster is learned from the first reply that says
// that a key is elsewhere. Thread rule: one thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tier/cluster.h"
#include "tier/connection.h"

namespace cairn::tier {

// A reply that comes, or has come, and what has to be known to ask again elsewhere.
struct Pending {
  std::shared_ptr<Connection> connection;  // Null: it is lost.
  std::shared_ptr<Shard> shard;            // Null: the one server that is known.
  ExpectedReply expected;
  std::vector<std::string> words;
  std::vector<std::span<const std::byte>> parts;
  bool was_followed = false;
};
using PendingReply = std::shared_ptr<Pending>;

// What a lost reply says where its server was not asked, since it failed before.
inline constexpr std::string_view kPausedReply = "tier: one of its servers is left alone";

class Servers {
 public:
  enum class Use : uint8_t { reads, writes };

  // All of them outlive it. Without a cluster it is one server, whatever that says.
  Servers(const TierAddress* address, const TierTimes* times, Cluster* cluster, Use use,
          const std::atomic<bool>* is_given_up)
      : address_(address), times_(times), cluster_(cluster), use_(use), is_given_up_(is_given_up) {}

  // To the server of the URL, unless it is known to be one of several. Errors: as
  // Connection::open().
  Status connect(Clock::time_point deadline);

  // A command whose second word is its key; the last one consists of the parts behind it, if any,
  // which stay until its reply was waited for. Errors: those of Connection::send().
  Result<PendingReply> send(std::span<const std::string_view> words, size_t bytes_max,
                            Clock::time_point deadline,
                            std::span<const std::span<const std::byte>> parts = {});
  // Its reply, wherever it leads; one that is lost says why (Reply::Kind::lost). Errors: those of
  // Connection::wait().
  Result<Reply*> wait(const PendingReply& pending, Clock::time_point deadline);
  // Both.
  Result<Reply> ask(std::span<const std::string_view> words, size_t bytes_max,
                    Clock::time_point deadline,
                    std::span<const std::span<const std::byte>> parts = {});

  bool is_broken() const { return only_ != nullptr && only_->is_broken(); }

 private:
  bool knows_cluster() const { return cluster_ != nullptr && cluster_->is_known(); }
  Breaker& breaker_of(Shard& shard) const {
    return use_ == Use::reads ? shard.reads : shard.writes;
  }
  Result<std::shared_ptr<Connection>> connect_to(Shard& shard, Clock::time_point deadline);
  Status send_to(const std::shared_ptr<Shard>& shard, Pending& pending, bool asks_first,
                 Clock::time_point deadline);
  Status follow(Pending& pending, const Redirect& redirect, Clock::time_point deadline);
  Status refresh(Clock::time_point deadline);
  Status ask_slots(Connection& connection, Clock::time_point deadline);
  Status lose(Pending& pending, const Error& error);
  void note_failure(Shard& shard, std::shared_ptr<Connection> connection, const Error& error);

  const TierAddress* address_;
  const TierTimes* times_;
  Cluster* cluster_;
  Use use_;
  const std::atomic<bool>* is_given_up_;
  std::shared_ptr<Connection> only_;                                // While no cluster is known.
  std::map<std::string, std::shared_ptr<Connection>> connections_;  // By names of shards.
};

}  // namespace cairn::tier
