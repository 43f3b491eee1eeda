// The built-in engine as callers have it. Its conversations are jobs of, and questions to, the
// thread that computes. Thread-safe, but for its tracks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "capi/objects.h"
#include "engine/engine.h"
#include "session/service.h"

namespace cairn::capi {

class BuiltInEngine final : public EngineObject {
 public:
  // Starts the engine's thread. Errors: io: the system gives none.
  static Result<std::shared_ptr<BuiltInEngine>> start(std::unique_ptr<Engine> engine,
                                                      const SchedulerOptions& options);

  session::Service& service() { return *service_; }

  cairn_engine_facts facts() override;
  cairn_memory memory() override;
  session::TenantGrammars grammars() override { return service_->grammars(); }
  cairn_plan plan_prompt(std::span<const Token> tokens) override;
  Result<session::PromptProbabilities> score(std::vector<Token> tokens) override;
  Result<std::unique_ptr<Track>> open_track(Mailbox* mailbox) override;
  Result<std::vector<float>> embed(std::vector<Token> tokens) override;

 private:
  explicit BuiltInEngine(std::unique_ptr<Engine> engine);

  // The engine's thread's own, but for its constant parts.
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<session::Service> service_;  // Goes before its engine.
};

}  // namespace cairn::capi
