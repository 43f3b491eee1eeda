// Reads what a next prompt will begin with, before it is asked for: the history of a conversation
// as the model's template writes it behind an answer. An idle job: it is computed while nobody
// wants anything else, and the prefix cache keeps what it has read. Thread rule: that of Job.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/schedule/job.h"

namespace cairn::session {

struct PromptBeginning {
  std::vector<Token> tokens;
  std::vector<int32_t> message_starts;  // As far as they lie within the tokens.
  Selection selection;                  // The adapters that read it.
};

class ReadAhead final : public Job {
 public:
  ReadAhead(Engine* engine, PromptBeginning beginning)
      : engine_(engine), beginning_(std::move(beginning)) {}

  Lane* lane() override;
  memory::Variant variant() const override { return beginning_.selection.variant(); }
  std::span<const Token> prompt() const override { return beginning_.tokens; }
  std::span<const int32_t> message_starts() const override { return beginning_.message_starts; }
  memory::ResumePlan plan() override;
  Status start() override;
  Status advance() override;
  bool is_done() const override { return is_done_; }
  void end(Status status) override;

 private:
  Engine* engine_;
  PromptBeginning beginning_;
  std::optional<Lane> lane_;
  bool is_done_ = false;
};

}  // namespace cairn::session
