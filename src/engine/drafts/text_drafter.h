// Drafts of a draft model whose tokens are not the target's, by text: it reads the text in its own
// tokens, and what it would say is cut into the target's. The noise of an answer belongs to the
// target's tokens, so the draft is what the draft model finds likeliest. Whatever gets lost between
// the two vocabularies makes drafts wrong more often, and nothing else. Thread rule: that of
// drafters.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "draft/draft.h"
#include "engine/drafts/draft_model.h"
#include "engine/drafts/model_drafter.h"
#include "sample/sampler.h"
#include "tokenize/translator.h"

namespace cairn {

class TextDrafter final : public draft::Drafter {
 public:
  // REQUIRES: the model drafts by text. It must outlive the drafter.
  explicit TextDrafter(DraftModel* model, uint64_t tenant = 0);

  std::string_view name() const override { return "draft"; }
  void propose(const draft::View& view, draft::Draft& draft) override;
  bool is_costly() const override { return true; }
  bool is_reading() const override { return is_translating_ || drafter_.is_reading(); }
  std::string_view off_reason() const override { return drafter_.off_reason(); }

 private:
  tokenize::Translator translator_;
  sample::Sampler greedy_;
  ModelDrafter drafter_;
  draft::Draft own_draft_;  // In the draft model's tokens.
  bool is_translating_ = false;
};

// The drafter of a draft model, by tokens or by text. The sampler is the answer's.
std::unique_ptr<draft::Drafter> make_model_drafter(DraftModel* model,
                                                   const sample::Sampler* sampler,
                                                   uint64_t tenant = 0);

}  // namespace cairn
