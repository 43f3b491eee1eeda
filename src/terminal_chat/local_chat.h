// A conversation with an engine in this process. Thread rule: the engine's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "session/chat_session.h"
#include "session/service.h"
#include "terminal_chat/chat.h"

namespace cairn::terminal_chat {

class LocalChat final : public Chat {
 public:
  // All must outlive the chat. The service, where there is one, is the engine's and locked by the
  // caller: it reads ahead in pauses. `inputs`: the files that the engine reads.
  LocalChat(Engine* engine, session::ChatSession* session, session::Service* service,
            std::vector<FileIdentity> inputs)
      : engine_(engine), session_(session), service_(service), inputs_(std::move(inputs)) {}

  std::string greeting() const override;
  void begin_pause() override;
  void end_pause() override;
  Result<ContextShift> begin(const Ask& ask) override;
  Result<session::Answer> complete(const session::AnswerHooks& hooks) override {
    return session_->complete(hooks);
  }
  Status write_receipt(const std::string& path) override;
  Result<std::string> json_of(const session::Answer& answer) override;
  std::string figures(Figures figures, const session::Answer& answer) override;
  const session::Dialogue& dialogue() const override { return session_->dialogue(); }
  session::ChatOptions& options() override { return session_->options(); }
  Status set_system(std::string_view text) override;
  Result<std::string> adapters(std::string_view uses) override;
  Result<std::string> memory_lines() override;
  Status clear() override;
  Result<memory::ResumePlan> rewind(int32_t turns) override { return session_->rewind(turns); }
  Status fork(std::string_view name) override { return session_->fork(name); }
  Result<memory::ResumePlan> switch_to(std::string_view name) override {
    return session_->switch_to(name);
  }
  std::vector<FileIdentity> inputs() const override { return inputs_; }
  Status save(const std::string& path) override { return session_->save(path); }
  Status load(const std::string& path) override { return session_->load(path); }
  int64_t change_count() const override { return session_->change_count(); }

 private:
  Status ask_session(const Ask& ask);

  Engine* engine_;
  session::ChatSession* session_;
  session::Service* service_;
  std::vector<FileIdentity> inputs_;
  std::optional<JobId> ahead_;
};

}  // namespace cairn::terminal_chat
