// The reply to a request: its head and bytes, as far as there are any yet. Made by routes, asked by
// the connection. Thread rule: made on any thread, then the I/O thread's; what calls the waker may
// be any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http/message.h"

namespace cairn::serve::http {

class Reply {
 public:
  Reply() = default;
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  // Before its end: nobody wants it any more, and what is done for it ends.
  virtual ~Reply() = default;

  // From now on `wake` is called when read() may have more to say, until the reply is destroyed.
  // Called once, first.
  virtual void listen(std::function<void()> wake) = 0;

  enum class State : uint8_t {
    waiting,  // More will come.
    ended,    // That was all.
    broken,   // There is no more, and the client is to see that: the connection is cut.
  };
  // Appends the bytes of the body that there are. Never waits.
  virtual State read(std::string& out) = 0;
  // Null as long as it is not known; known when bytes or an end have come.
  virtual const ReplyHead* head() const = 0;
  // It has no end of its own: a server that stops does not wait for it.
  virtual bool is_endless() const { return false; }
  // What is sent when nothing has come for a while; empty: nothing.
  virtual std::string_view idle_text() const { return {}; }
  // What the log tells of it.
  virtual std::vector<std::pair<std::string, int64_t>> figures() const { return {}; }

  // What the reply points to: it is let go when all else of the reply is destroyed.
  void keep(std::shared_ptr<const void> what) { kept_ = std::move(what); }

 private:
  std::shared_ptr<const void> kept_;
};

// A reply that is there.
class WholeReply final : public Reply {
 public:
  WholeReply(ReplyHead head, std::string body) : head_(std::move(head)), body_(std::move(body)) {}

  void listen(std::function<void()>) override {}
  State read(std::string& out) override {
    out += body_;
    body_.clear();
    return State::ended;
  }
  const ReplyHead* head() const override { return &head_; }

 private:
  ReplyHead head_;
  std::string body_;
};

}  // namespace cairn::serve::http
