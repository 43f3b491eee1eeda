// Who is asked, who is asked instead, and what is lost.
#include "tier/servers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"

namespace cairn::tier {
namespace {

using std::chrono::milliseconds;

// While one server is waited for, replies of others have come: those are still read.
constexpr milliseconds kGrace(5);
// Servers that are asked where the slots are, before that is left for later.
constexpr int kRefreshTries = 3;
// Of a host, and of the numbers beside it.
constexpr size_t kSlotBytesMax = 256;
// 16,384 ranges of two numbers, each with a server and two copies of it, of four words.
constexpr size_t kSlotItemsMax = size_t(1) << 18;

bool ends_all(const Error& error) {
  return error.code == ErrorCode::cancelled;
}

}  // namespace

Status Servers::connect(Clock::time_point deadline) {
  if (knows_cluster() || (only_ != nullptr && !only_->is_broken())) return Ok{};
  only_.reset();
  CAIRN_TRY(only_, Connection::open(*address_, deadline, is_given_up_));
  return Ok{};
}

Result<PendingReply> Servers::send(std::span<const std::string_view> words, size_t bytes_max,
                                   Clock::time_point deadline,
                                   std::span<const std::span<const std::byte>> parts) {
  CHECK(words.size() >= 2);
  auto pending = std::make_shared<Pending>();
  pending->words.assign(words.begin(), words.end());
  pending->parts.assign(parts.begin(), parts.end());
  pending->expected = std::make_shared<Expected>();
  pending->expected->bytes_max = bytes_max;
  if (!knows_cluster()) {
    if (only_ == nullptr) return fail(ErrorCode::io, "tier: the connection is broken");
    pending->connection = only_;
    CAIRN_TRY(pending->expected, only_->send(words, bytes_max, deadline, parts));
    return pending;
  }
  only_.reset();
  CAIRN_TRY(refresh(deadline));
  std::shared_ptr<Shard> shard = cluster_->shard_of(slot_of(words[1]));
  if (shard == nullptr && !cluster_->is_complete()) shard = cluster_->home();
  CAIRN_TRY(send_to(shard, *pending, false, deadline));
  return pending;
}

Result<Reply*> Servers::wait(const PendingReply& pending, Clock::time_point deadline) {
  for (;;) {
    Expected& expected = *pending->expected;
    if (pending->connection == nullptr) return &expected.reply;
    const auto until =
        pending->shard == nullptr ? deadline : std::max(deadline, Clock::now() + kGrace);
    Result<Reply*> reply = pending->connection->wait(pending->expected, until);
    if (!reply && (pending->shard == nullptr || ends_all(reply.error()))) return reply;
    if (!reply) {
      CAIRN_TRY(lose(*pending, reply.error()));
      continue;
    }
    if (cluster_ == nullptr) return reply;
    const std::optional<Redirect> redirect = Redirect::read(**reply);
    // Who says where a key is is there.
    if (redirect && pending->shard != nullptr) breaker_of(*pending->shard).note_success();
    if (redirect && !pending->was_followed) {
      CAIRN_TRY(follow(*pending, *redirect, until));
    } else if (redirect) {
      pending->connection = nullptr;
      CAIRN_TRY(lose(*pending, fail(ErrorCode::io, "tier: a key is neither here nor there")));
    } else if (pending->shard == nullptr) {
      return reply;
    } else if (expected.reply.kind == Reply::Kind::error) {
      CAIRN_TRY(lose(*pending, fail(ErrorCode::io, "tier: {}: {}", pending->shard->name,
                                    expected.reply.text.substr(0, 100))));
    } else {
      breaker_of(*pending->shard).note_success();
      return reply;
    }
  }
}

Result<Reply> Servers::ask(std::span<const std::string_view> words, size_t bytes_max,
                           Clock::time_point deadline,
                           std::span<const std::span<const std::byte>> parts) {
  CAIRN_TRY(const PendingReply pending, send(words, bytes_max, deadline, parts));
  CAIRN_TRY(Reply* const reply, wait(pending, deadline));
  return std::move(*reply);
}

// All have the login and the certificates of the URL's server, whose name theirs has to be as well.
Result<std::shared_ptr<Connection>> Servers::connect_to(Shard& shard, Clock::time_point deadline) {
  std::shared_ptr<Connection>& connection = connections_[shard.name];
  if (connection != nullptr && !connection->is_broken()) return connection;
  connection.reset();
  const bool is_home = shard.name.empty();
  if (!shard.address && !is_home) {
    return fail(ErrorCode::unsupported, "tier: expected an address, found the server {}",
                shard.name);
  }
  TierAddress address = *address_;
  if (!is_home) address.sockets = {*shard.address};
  CAIRN_TRY(
      connection,
      Connection::open(address, std::min(deadline, Clock::now() + times_->connect), is_given_up_));
  return connection;
}

// Ok, too, where it is lost.
Status Servers::send_to(const std::shared_ptr<Shard>& shard, Pending& pending, bool asks_first,
                        Clock::time_point deadline) {
  pending.shard = shard;
  if (shard == nullptr) {
    return lose(pending, fail(ErrorCode::io, "tier: no server of the cluster has this key"));
  }
  if (!breaker_of(*shard).admits()) {
    pending.connection = nullptr;
    return lose(pending, fail(ErrorCode::io, "{}", kPausedReply));
  }
  const auto attempt = [&]() -> Status {
    CAIRN_TRY(pending.connection, connect_to(*shard, deadline));
    if (asks_first) {
      const std::array<std::string_view, 1> asking = {"ASKING"};
      CAIRN_TRY(pending.connection->send(asking, 0, deadline));
    }
    const std::vector<std::string_view> words(pending.words.begin(), pending.words.end());
    const size_t bytes_max = pending.expected->bytes_max;
    CAIRN_TRY(pending.expected,
              pending.connection->send(words, bytes_max, deadline, pending.parts));
    return Ok{};
  };
  pending.connection = nullptr;
  Status sent = attempt();
  if (sent || ends_all(sent.error())) return sent;
  if (pending.connection == nullptr) note_failure(*shard, nullptr, sent.error());
  return lose(pending, sent.error());
}

// Who says that a key is elsewhere for good knows where all of them are.
Status Servers::follow(Pending& pending, const Redirect& redirect, Clock::time_point deadline) {
  pending.was_followed = true;
  if (redirect.is_for_good) cluster_->note_moved(redirect);
  if (cluster_->begin_refresh()) {
    const Status asked = ask_slots(*pending.connection, deadline);
    if (!asked && ends_all(asked.error())) return asked;
    if (!asked) log::info("{}", asked.error().message);
  }
  return send_to(cluster_->shard_named(redirect.server), pending, !redirect.is_for_good, deadline);
}

// Of the servers another one each time: one that is gone knows nothing.
Status Servers::refresh(Clock::time_point deadline) {
  if (!cluster_->begin_refresh()) return Ok{};
  const auto until = std::min(deadline, Clock::now() + times_->look_up);
  for (int tries = 0; tries < kRefreshTries && Clock::now() < until; ++tries) {
    const std::shared_ptr<Shard> shard = cluster_->any_shard();
    if (!breaker_of(*shard).admits()) continue;
    const auto attempt = [&]() -> Status {
      CAIRN_TRY(const std::shared_ptr<Connection> connection, connect_to(*shard, until));
      return ask_slots(*connection, until);
    };
    const Status asked = attempt();
    if (asked) breaker_of(*shard).note_success();
    if (asked || ends_all(asked.error())) return asked;
    note_failure(*shard, connections_[shard->name], asked.error());
  }
  return Ok{};
}

Status Servers::ask_slots(Connection& connection, Clock::time_point deadline) {
  const std::array<std::string_view, 2> words = {"CLUSTER", "SLOTS"};
  CAIRN_TRY(const ExpectedReply expected,
            connection.send(words, kSlotBytesMax, deadline, {}, kSlotItemsMax));
  CAIRN_TRY(const Reply* const reply, connection.wait(expected, deadline));
  if (reply->kind == Reply::Kind::error) {
    return fail(ErrorCode::io, "tier: CLUSTER SLOTS: {}", reply->text.substr(0, 100));
  }
  return cluster_->take(*reply);
}

// Its reply says why. Of several that waited for one connection the first one notices.
Status Servers::lose(Pending& pending, const Error& error) {
  if (pending.connection != nullptr) note_failure(*pending.shard, pending.connection, error);
  pending.connection = nullptr;
  const size_t bytes_max = pending.expected->bytes_max;
  pending.expected = std::make_shared<Expected>();
  pending.expected->bytes_max = bytes_max;
  pending.expected->has_come = true;
  pending.expected->reply = {.kind = Reply::Kind::lost, .text = error.message};
  return Ok{};
}

void Servers::note_failure(Shard& shard, std::shared_ptr<Connection> connection,
                           const Error& error) {
  const auto known = connections_.find(shard.name);
  if (known == connections_.end() || known->second != connection) return;
  log::info("{}", error.message);
  cluster_->note_stale();
  breaker_of(shard).note_failure();
  if (connection == nullptr || connection->is_broken()) connections_.erase(known);
}

}  // namespace cairn::tier
