// What a machine that lends records says to one that asks: who asks proves first that it knows the
// secret of both, and then gets records by their names, sealed as in a tier. Knows no sockets:
// bytes come, and bytes go. Thread-safe: one object, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tier/peers/request_reader.h"
#include "tier/secret.h"

namespace cairn::tier {

class PeerSession {
 public:
  // What is lent, and to how many at a time. Thread rule: that of the session.
  class Records {
   public:
    virtual ~Records() = default;
    virtual bool has(const Sha256Digest& name) = 0;
    // Errors: not_found, and what goes wrong on a disk.
    virtual Result<std::vector<std::byte>> read(const Sha256Digest& name) = 0;
    // Whether this session may have one now.
    virtual bool admits(PeerSession& session) = 0;
  };

  // More is not read of one who asks, and not said, before what was said is taken.
  static constexpr size_t kWaitingMax = size_t(64) << 10;

  // Both outlive it.
  PeerSession(const Secret* secret, Records* records);

  // Errors: invalid_data: it is no machine of ours; then the output that is there is the last one.
  Status take(std::span<const std::byte> bytes);
  bool wants_bytes() const { return output_bytes() < kWaitingMax && input_.size() < kWaitingMax; }
  bool is_let_in() const { return stage_ == Stage::let_in; }

  std::span<const std::byte> output() const { return std::span(output_).subspan(sent_); }
  size_t output_bytes() const { return output_.size() - sent_; }
  // So many bytes of it have gone; what waits is answered then. Errors: as take().
  Status note_sent(size_t count);

 private:
  enum class Stage : uint8_t { unknown, greeted, let_in };
  Status answer_waiting();
  Status answer(const Request& request);
  void answer_read(const Sha256Digest& name);
  void say(std::string_view text);
  void say_bytes(std::span<const std::byte> bytes, std::span<const std::byte> more = {});

  const Secret* secret_;
  Records* records_;
  std::string key_beginning_;  // Of records.
  Stage stage_ = Stage::unknown;
  RequestReader reader_;
  Sha256Digest expected_{};  // The proof.
  std::vector<std::byte> input_, output_;
  size_t sent_ = 0;
};

}  // namespace cairn::tier
