// A sequence that was loaded from the store is computed again, on pages of its own, and compared
// bit by bit: so what a damaged memory or disk, or a defect, made of it is noticed. An idle job
// without a lane: each step is a few rows of its own, and it gives up where memory is short. Thread
// rule: that of Job.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "engine/schedule/job.h"
#include "engine/sequence_proof.h"

namespace cairn {

class SequenceAudit final : public Job {
 public:
  // Of the loaded sequence that waits longest for it; null: none does.
  static std::unique_ptr<SequenceAudit> next(Engine* engine);
  SequenceAudit(Engine* engine, SequenceStore::Audit audit)
      : engine_(engine), audit_(std::move(audit)) {}

  Lane* lane() override { return nullptr; }
  int64_t own_tokens() const override { return prover_ ? prover_->computed_tokens() : 0; }
  memory::Variant variant() const override { return audit_.selection.variant(); }
  std::span<const Token> prompt() const override { return {}; }
  memory::ResumePlan plan() override { return {}; }
  // Errors: not_found: it is not in memory any more; those of Engine::select().
  Status start() override;
  // Errors: memory_full: it takes no room that others could use.
  Status advance() override;
  bool is_done() const override { return prover_ && prover_->is_done(); }
  void end(Status status) override;

 private:
  Engine* engine_;
  SequenceStore::Audit audit_;
  std::optional<SequenceProver> prover_;
};

}  // namespace cairn
