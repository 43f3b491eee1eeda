// A conversation that a server keeps: a session of its own there (docs/server.md), which goes when
// the chat ends. Thread rule: one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/http_client.h"
#include "json/value.h"
#include "sample/params.h"
#include "session/sampling_choice.h"
#include "terminal_chat/chat.h"

namespace cairn::terminal_chat {

struct RemoteChatOptions {
  std::string url, key;
  std::string authority_path;        // As ServerTrust::read() has it.
  session::SamplingChoice sampling;  // What it does not say is the server's.
  session::ChatOptions chat;         // Its sampling is made of the former.
};

class RemoteChat final : public Chat {
 public:
  // Asks the server for its model, and makes a session. Errors: those of HttpClient; the server's,
  // as it says them.
  static Result<std::unique_ptr<RemoteChat>> start(RemoteChatOptions options);
  ~RemoteChat() override;

  std::string greeting() const override;
  Result<ContextShift> begin(const Ask& ask) override;
  Result<session::Answer> complete(const session::AnswerHooks& hooks) override;
  Status write_receipt(const std::string& path) override;
  Result<std::string> json_of(const session::Answer& answer) override;
  std::string figures(Figures figures, const session::Answer& answer) override;
  const session::Dialogue& dialogue() const override { return dialogue_; }
  session::ChatOptions& options() override { return options_; }
  Status set_system(std::string_view text) override;
  Result<std::string> adapters(std::string_view uses) override;
  Result<std::string> memory_lines() override;
  Status clear() override;
  Result<memory::ResumePlan> rewind(int32_t turns) override;
  Status fork(std::string_view name) override;
  Result<memory::ResumePlan> switch_to(std::string_view name) override;
  std::vector<FileIdentity> inputs() const override { return {}; }
  Status save(const std::string& path) override;
  Status load(const std::string& path) override;
  int64_t change_count() const override { return change_count_; }

 private:
  RemoteChat(client::HttpClient client, session::ChatOptions options)
      : client_(std::move(client)), options_(std::move(options)) {}

  Result<json::Value> ask(std::string_view method, const std::string& path,
                          const json::Value& body = {});
  Result<client::HttpClient::Reply> send(std::string_view method, const std::string& path,
                                         const std::string& body,
                                         const client::HttpClient::Hooks& hooks);
  Status look_at_model(const session::SamplingChoice& choice);
  Status make_session(const json::Value& body);
  Status forget_session();
  std::string path(std::string_view verb = "") const;
  json::Value said_json(bool with_system) const;  // The active branch, as a saved conversation.
  Status bring_back();
  // What the server keeps, as it is now.
  Status refresh();
  void look_again();
  Status take_session(const json::Value& whole);
  Result<memory::ResumePlan> change(std::string_view verb, const json::Value& body);
  Status add_settings(json::Value& body) const;

  client::HttpClient client_;
  session::ChatOptions options_;
  std::string model_, architecture_;
  int64_t parameter_count_ = 0;
  std::string id_;              // Of the session; empty: none yet.
  session::Dialogue dialogue_;  // Without the system message.
  bool has_system_ = false;     // The session begins with one.
  std::optional<uint64_t> vocabulary_;
  json::Value asked_;    // The answer that was begun.
  json::Value receipt_;  // Of the last one.
  int64_t change_count_ = 0;
};

}  // namespace cairn::terminal_chat
