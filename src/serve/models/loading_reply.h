// The reply to a request whose model is not in memory: waits until it is loaded, then becomes what
// the route makes. A stream of events is told the progress meanwhile, as comments; from the first
// of them on errors are events too, since its head is sent. Thread rule: that of http::Reply.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http/reply.h"
#include "serve/models/model_registry.h"
#include "serve/refusal.h"

namespace cairn::serve {

// What the registry's thread hands over.
class PendingModel final : public ModelWaiter {
 public:
  // Makes the reply when the model is there, or cannot be loaded. On the registry's thread.
  using Make = std::function<std::unique_ptr<http::Reply>(Checked<ModelHandle> model)>;

  explicit PendingModel(Make make) : make_(std::move(make)) {}

  void add_progress(const std::string& note) override;
  void end(Checked<ModelHandle> model) override;

  void listen(std::function<void()> wake);
  // Nobody waits any more.
  void drop();
  struct News {
    std::string note;                    // The newest one, if there is one.
    std::unique_ptr<http::Reply> reply;  // When it is made.
  };
  News take();

 private:
  std::mutex mutex_;
  Make make_;
  std::function<void()> wake_;
  bool is_dropped_ = false;
  News news_;
};

class LoadingReply final : public http::Reply {
 public:
  // `is_stream`: of events; `form`: of errors in it.
  LoadingReply(std::shared_ptr<PendingModel> pending, bool is_stream, ErrorForm form)
      : pending_(std::move(pending)), is_stream_(is_stream), form_(form) {}
  ~LoadingReply() override { pending_->drop(); }

  void listen(std::function<void()> wake) override;
  State read(std::string& out) override;
  const http::ReplyHead* head() const override;
  std::string_view idle_text() const override;
  std::vector<std::pair<std::string, int64_t>> figures() const override;

 private:
  State read_made(std::string& out);

  std::shared_ptr<PendingModel> pending_;
  bool is_stream_;
  ErrorForm form_;
  std::function<void()> wake_;
  std::unique_ptr<http::Reply> made_;
  std::optional<http::ReplyHead> head_;  // Of a stream that has begun before.
  std::string whole_;                    // What was made, where it is no stream and one has begun.
};

}  // namespace cairn::serve
