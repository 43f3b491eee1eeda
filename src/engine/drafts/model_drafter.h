// Drafts what a draft model would say next, token after token, chosen as the answer's are: by the
// same chain and the same noise, which belongs to a position and a token. So both models choose
// alike wherever their probabilities are alike, at any temperature. Reads of the answer's text what
// it has not read yet, a slice at a time. An error of the draft model ends the drafts, never the
// answer. Thread rule: that of drafters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "draft/draft.h"
#include "engine/drafts/draft_chooser.h"
#include "engine/drafts/draft_model.h"
#include "memory/memory.h"
#include "sample/sampler.h"

namespace cairn {

class ModelDrafter final : public draft::Drafter {
 public:
  // The sampler is the answer's; both must outlive the drafter. What is read for a tenant is found
  // by nobody else (0: by everybody).
  ModelDrafter(DraftModel* model, const sample::Sampler* sampler, uint64_t tenant = 0);
  // What it has read stays in the draft model's prefix cache, for the conversation's next answer.
  ~ModelDrafter() override;
  ModelDrafter(const ModelDrafter&) = delete;
  ModelDrafter& operator=(const ModelDrafter&) = delete;

  std::string_view name() const override { return "draft"; }
  void propose(const draft::View& view, draft::Draft& draft) override;
  bool is_costly() const override { return true; }
  bool is_reading() const override { return is_reading_; }
  std::string_view off_reason() const override { return off_reason_; }

  // Rows that the draft model has computed for this answer.
  int64_t computed_rows() const { return computed_rows_; }

 private:
  Status try_propose(const draft::View& view, draft::Draft& draft);
  Status follow(std::span<const Token> text);
  Status go_back(int32_t length);
  Status start(std::span<const Token> text);
  void keep();
  Result<bool> read(std::span<const Token> text);
  void let_go_of_windows();
  Status compute(std::span<const Token> tokens, bool wants_logits);
  void give_up(const Error& error);

  DraftModel* model_;
  Engine* engine_;
  DraftChooser chooser_;
  memory::Variant variant_;

  memory::Sequence sequence_;  // Of the text from begin_ on; drafts may be at its end.
  size_t begin_ = 0;
  size_t seen_count_ = 0;  // Of the text, when it was last followed.
  bool has_started_ = false;
  int64_t computed_rows_ = 0;
  int32_t reading_rows_ = 0;  // Read before there was a draft.
  bool is_reading_ = false;
  std::string_view off_reason_;

  std::span<const float> logits_;  // Behind the end, until the engine computes again.
};

}  // namespace cairn
