// A conversation with a server of a tier: commands go out, replies come in their order, and each
// may be waited for when it is needed. What takes too long, or cannot be understood, ends it:
// nobody knows then which reply belongs to which command. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tier/reply_reader.h"
#include "tier/secret.h"
#include "tier/wire.h"

namespace cairn::tier {

// A reply that comes, or has come. Shared by whoever waits for it and the connection.
struct Expected {
  size_t bytes_max = 0, items_max = 0;
  bool has_come = false;
  Reply reply;
  Clock::time_point sent_at, came_at;
};
using ExpectedReply = std::shared_ptr<Expected>;

class Connection {
 public:
  // Connects and logs in; with another machine of ours both prove who they are. Errors: those of
  // Wire::connect(), invalid_argument (refused to let in).
  static Result<std::unique_ptr<Connection>> open(const TierAddress& address,
                                                  Clock::time_point deadline,
                                                  const std::atomic<bool>* is_given_up);

  // A command of these words, the last one of which consists of the parts behind it, if any.
  // `bytes_max`, `items_max`: of its reply. Errors: those of Wire::write().
  Result<ExpectedReply> send(std::span<const std::string_view> words, size_t bytes_max,
                             Clock::time_point deadline,
                             std::span<const std::span<const std::byte>> parts = {},
                             size_t items_max = 0);
  // Receives until it is there. Errors: io, invalid_data, cancelled; then the connection is broken.
  Result<Reply*> wait(const ExpectedReply& expected, Clock::time_point deadline);
  // Both.
  Result<Reply> ask(std::span<const std::string_view> words, size_t bytes_max,
                    Clock::time_point deadline,
                    std::span<const std::span<const std::byte>> parts = {});

  bool is_broken() const { return is_broken_; }

 private:
  explicit Connection(std::unique_ptr<Wire> wire);
  Status prove(const Secret& secret, Clock::time_point deadline);
  Status receive(Clock::time_point deadline);

  std::unique_ptr<Wire> wire_;
  bool is_broken_ = false;
  ReplyReader reader_;
  std::deque<ExpectedReply> expected_;  // What is being received first.
  std::vector<std::byte> buffer_;
};

}  // namespace cairn::tier
