// Unverified on hardware: see litert_library.h. A model of LiteRT-LM and its sessions, which take
// text and give text; no logits, no ids of tokens. cairn.h opens GGUF files alone, so no way leads
// here from it. Thread rule: one thread at a time, but for cancel().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtimes/litert_lm/litert_library.h"
#include "runtimes/runtime.h"

namespace cairn::runtimes {

class LiteRtEngine;

// Where it cannot go back, it begins again: rewind() reads the texts before once more.
class LiteRtSession {
 public:
  ~LiteRtSession();
  LiteRtSession(const LiteRtSession&) = delete;
  LiteRtSession& operator=(const LiteRtSession&) = delete;

  // Texts that were read or made so far.
  size_t length() const { return texts_.size(); }
  Status prefill(std::string_view text);
  // The whole answer to what was read. Errors: io; cancelled.
  Result<std::string> decode();
  // To so many texts. REQUIRES: at most length().
  Status rewind(size_t text_count);
  void cancel();  // Any thread.

 private:
  friend class LiteRtEngine;
  explicit LiteRtSession(const LiteRtEngine* engine) : engine_(engine) {}
  Status begin();
  Status read(const std::string& text);

  const LiteRtEngine* engine_;
  void* session_ = nullptr;
  std::vector<std::string> texts_;
};

class LiteRtEngine {
 public:
  // On the first device that takes the model: NPU, GPU, CPU. Errors: unsupported: none does.
  static Result<std::unique_ptr<LiteRtEngine>> open(const LiteRtFunctions& functions,
                                                    const std::string& path,
                                                    const RuntimeOptions& options);
  ~LiteRtEngine();
  LiteRtEngine(const LiteRtEngine&) = delete;
  LiteRtEngine& operator=(const LiteRtEngine&) = delete;

  std::string_view device() const { return device_; }
  // It must not outlive this.
  Result<std::unique_ptr<LiteRtSession>> open_session() const;

 private:
  friend class LiteRtSession;
  LiteRtEngine(const LiteRtFunctions& functions, void* engine, std::string_view device)
      : functions_(functions), engine_(engine), device_(device) {}

  LiteRtFunctions functions_;
  void* engine_;
  std::string_view device_;
};

}  // namespace cairn::runtimes
