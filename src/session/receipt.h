// Receipts: what an answer was asked with, and for each of its tokens the bits of the logits that
// it was chosen from, as a digest (docs/receipts.md). Whoever has the model can compute the answer
// again (session/replay.h) and compare. Thread-safe: values; a ChoiceLog belongs to one answer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/sha256.h"
#include "engine/engine.h"
#include "engine/fingerprint.h"
#include "sample/sampler.h"
#include "session/answer.h"
#include "session/constraint.h"

namespace cairn::session {

// One token of an answer. The end token, where the model chose it, is one too.
struct Choice {
  Token token = Token(-1);
  bool is_forced = false;  // Not chosen: it ends reasoning that has had its tokens.
  uint64_t rows = 0;       // The first 64 bits of the digest of all rows up to this token's.

  bool operator==(const Choice&) const = default;
};

// Tokens with a rolling SHA-256 over the rows of logits that they were chosen from: each row's f32
// in the order of the vocabulary, little-endian.
class ChoiceLog {
 public:
  void add(std::span<const float> logits, Token token, bool is_forced);
  // The last one is not used after all. REQUIRES: add() was called last.
  void take_back();
  const std::vector<Choice>& choices() const { return choices_; }
  Sha256Digest rows() const { return Sha256(rows_).finish(); }  // Of all of them.

 private:
  Sha256 rows_, rows_before_;  // With and without the last row.
  std::vector<Choice> choices_;
};

// What decides the bits, field by field (engine/fingerprint.h).
struct ReceiptSources {
  Sha256Digest model{};
  Numerics numerics = Numerics::exact_1;
  std::string isa;  // Under fast-1 alone; else empty.
  KvType key_type = KvType::f16, value_type = KvType::f16;
  std::vector<AdapterSource> adapters;
  models::Program program;

  static ReceiptSources of(const Engine& engine, std::span<const AdapterUse> adapters);
  Fingerprint fingerprint() const;
};

// What the answer had to look like.
struct ReceiptForm {
  ConstraintChoice constraint = {};
  std::string tools = {};        // A JSON list; empty: none.
  std::string tool_choice = {};  // As ChatOptions has it.
  std::string calls_end = {};    // What the grammar of calls goes on with: a prompt's last bytes.
  bool calls_once = false;       // It has one call at most.
  bool is_to_results = false;    // The answer to results of calls.
};

struct Receipt {
  std::string program;  // "cairn 0.1.0": who wrote it; not compared.
  ReceiptSources sources;
  // The request.
  std::vector<Token> prompt;
  int32_t answer_prefix = 0;            // Its last tokens are the beginning of the answer.
  std::vector<int32_t> message_starts;  // As AnswerRequest has them, like what follows.
  bool is_raw = false;                  // No format: all is text.
  std::string prompt_end;
  std::vector<std::string> stop;
  int32_t reasoning_tokens_max = -1;
  ReceiptForm form;
  int32_t context_tokens = 0;
  ContextPolicy context_policy = ContextPolicy::stop;
  int32_t shift_keep = 0;
  sample::SamplingParams sampling;
  std::vector<sample::SamplerState::Step>
      sampler;  // What stages remember of an answer's beginning.
  // The answer.
  std::vector<Choice> choices;
  Sha256Digest rows{};
  FinishReason finish = FinishReason::stop;  // Not compared: a person may have ended it.
};

// A receipt of an answer that is being made.
class ReceiptDraft {
 public:
  // `request`: what the answer is begun with.
  ReceiptDraft(const Engine& engine, const Selection& selection, const AnswerRequest& request,
               const sample::Sampler& sampler, ReceiptForm form);
  Receipt finish(FinishReason reason) &&;

  ChoiceLog choices;  // For AnswerRequest::choices.

 private:
  Receipt receipt_;
};

// A place where two receipts of one request are not the same.
struct ReceiptDifference {
  std::string field;   // "fingerprint.model", "answer.token", "answer.logits" …
  int32_t token = -1;  // Of the answer's tokens, from 0; -1: of none.
  std::string expected, found;
};

// Of the sources: the first field that differs.
std::optional<ReceiptDifference> difference_of(const ReceiptSources& expected,
                                               const ReceiptSources& found);
// Of the answers: at the first token that is not the same, its logits come before the token itself.
std::optional<ReceiptDifference> difference_of(const Receipt& expected, const Receipt& found);

}  // namespace cairn::session
