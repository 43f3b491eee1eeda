// A conversation that `cairn run` shows, wherever it is computed: by an engine in this process
// (local_chat.h) or by a server (remote_chat.h). Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "engine/lane.h"
#include "session/chat_session.h"
#include "session/completion.h"
#include "terminal_chat/report.h"

namespace cairn::terminal_chat {

// What asks for an answer.
struct Ask {
  enum class Kind : uint8_t {
    message,     // `text` is said.
    results,     // Those of the open calls, in their order.
    regenerate,  // The last answer, with the next seed.
    go_on,       // With an answer that was stopped.
    edit,        // `text` in place of the last message.
  };
  Kind kind = Kind::message;
  std::string text = {};
  std::vector<std::string> results = {};
};

class Chat {
 public:
  virtual ~Chat() = default;

  // "nano: granitehybrid (4 million parameters)".
  virtual std::string greeting() const = 0;
  // A person is going to type, and has: in between, what comes next may be prepared.
  virtual void begin_pause() {}
  virtual void end_pause() {}

  // Begins an answer, and what is left out of its prompt where that is known by now; complete() is
  // called then. Errors leave the conversation as it was, in both.
  virtual Result<ContextShift> begin(const Ask& ask) = 0;
  virtual Result<session::Answer> complete(const session::AnswerHooks& hooks) = 0;
  // Of the last answer, where receipts are kept.
  virtual Status write_receipt(const std::string& path) = 0;
  // For programs (--json).
  virtual Result<std::string> json_of(const session::Answer& answer) = 0;
  virtual std::string figures(Figures figures, const session::Answer& answer) = 0;

  virtual const session::Dialogue& dialogue() const = 0;
  // Settings, for what is answered from now on.
  virtual session::ChatOptions& options() = 0;
  virtual Status set_system(std::string_view text) = 0;
  // Changes the adapters, unless `uses` is empty, and lists them.
  virtual Result<std::string> adapters(std::string_view uses) = 0;
  virtual Result<std::string> memory_lines() = 0;

  virtual Status clear() = 0;
  virtual Result<memory::ResumePlan> rewind(int32_t turns) = 0;
  virtual Status fork(std::string_view name) = 0;
  virtual Result<memory::ResumePlan> switch_to(std::string_view name) = 0;

  // As a file (session/transcript.h). `inputs`: what such a file must not replace.
  virtual std::vector<FileIdentity> inputs() const = 0;
  virtual Status save(const std::string& path) = 0;
  virtual Status load(const std::string& path) = 0;
  // Grows with every change of what save() would write.
  virtual int64_t change_count() const = 0;
};

}  // namespace cairn::terminal_chat
