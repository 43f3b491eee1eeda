// Finding the sequence, and what becomes of the proof.
#include "engine/schedule/sequence_audit.h"

#include "memory/common_prefix.h"

namespace cairn {

namespace {

// Others wait for a step of so many rows.
constexpr int32_t kRowsMax = 16;

}  // namespace

std::unique_ptr<SequenceAudit> SequenceAudit::next(Engine* engine) {
  SequenceStore* const store = engine->sequence_store();
  if (store == nullptr) return nullptr;
  std::optional<SequenceStore::Audit> audit = store->next_audit();
  return audit ? std::make_unique<SequenceAudit>(engine, std::move(*audit)) : nullptr;
}

// A conversation that has gone on since has the same blocks. The plans may have gone.
Status SequenceAudit::start() {
  CAIRN_TRY(const Selection selection, engine_->select(audit_.selection.uses()));
  audit_.selection = selection.for_tenant(variant().tenant);
  const int32_t length = int32_t(audit_.tokens.size());
  const memory::Memory& memory = engine_->memory();
  for (const memory::Sequence* kept : engine_->cache().sequences()) {
    if (kept->variant() != variant()) continue;
    if (memory::common_prefix(kept->tokens(), audit_.tokens) < length) continue;
    CAIRN_TRY(memory::Sequence loaded, memory.at(*kept, length));
    if (loaded.length() < length) continue;
    prover_.emplace(engine_, std::move(loaded));
    return Ok{};
  }
  return fail(ErrorCode::not_found, "audit: the sequence is not in memory any more");
}

Status SequenceAudit::advance() {
  memory::Memory& memory = engine_->memory();
  const memory::Usage usage = memory.usage();
  const memory::Sequence empty = memory.new_sequence(variant());
  // Of a step, and of what follows a state that is shared.
  const size_t wanted = 2 * memory.plan(empty, 2 * kRowsMax).new_bytes;
  if (usage.budget_bytes - usage.used_bytes() < wanted) {
    return fail(ErrorCode::memory_full, "audit: there is no room");
  }
  return prover_->advance(kRowsMax);
}

void SequenceAudit::end(Status status) {
  SequenceStore& store = *engine_->sequence_store();
  if (!status || !is_done()) return store.pass_over(audit_);
  const SequenceProof& proof = prover_->proof();
  std::optional<SequenceStore::Difference> difference;
  if (proof.differing_bytes > 0) difference = {proof.first_position, proof.first_difference};
  prover_.reset();
  store.close_audit(audit_, difference);
}

}  // namespace cairn
