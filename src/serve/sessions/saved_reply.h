// A reply that changes a session: it ends when the change is on the disk, so that whoever has read
// to its end finds the session so, even if the server is killed right then. Thread rule: that of
// http::Reply.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http/reply.h"
#include "serve/sessions/session_table.h"

namespace cairn::serve {

class SavedReply final : public http::Reply {
 public:
  // `made`: has changed the session when it ends.
  SavedReply(std::unique_ptr<http::Reply> made, std::shared_ptr<SessionTable> sessions,
             std::string owner, std::string id)
      : made_(std::move(made)),
        sessions_(std::move(sessions)),
        owner_(std::move(owner)),
        id_(std::move(id)) {}
  ~SavedReply() override;

  void listen(std::function<void()> wake) override;
  State read(std::string& out) override;
  const http::ReplyHead* head() const override;
  std::string_view idle_text() const override { return made_->idle_text(); }
  std::vector<std::pair<std::string, int64_t>> figures() const override { return made_->figures(); }

 private:
  // Shared with the thread that writes, which may come to it when the reply is gone.
  struct Writing {
    std::mutex mutex;
    std::function<void()> wake;  // Empty once nobody waits any more.
    bool is_over = false;
  };
  bool is_written();

  std::unique_ptr<http::Reply> made_;
  std::shared_ptr<SessionTable> sessions_;
  std::string owner_, id_;
  std::function<void()> wake_;
  State state_ = State::waiting;      // Of what was made.
  std::string last_;                  // Its last bytes, which wait for the disk.
  std::shared_ptr<Writing> writing_;  // Null: nobody has asked yet.
  bool has_ended_ = false;
};

}  // namespace cairn::serve
