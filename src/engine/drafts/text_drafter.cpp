// A draft goes from text to text; each token's chance with it.
#include "engine/drafts/text_drafter.h"

#include <span>

namespace cairn {

namespace {

// Tokens of a text that are translated at a time, a millisecond or so.
constexpr size_t kTranslatedMost = 4096;
// Of a token that begins within one of the draft model's: the same text may be cut otherwise.
constexpr float kWithin = 0.95f;
// Of a draft's last one: the text behind it may be part of it.
constexpr float kLast = 0.7f;

}  // namespace

TextDrafter::TextDrafter(DraftModel* model, uint64_t tenant)
    : translator_(model->target_tokenizer(), model->engine().tokenizer()),
      greedy_({.temperature = 0}),
      drafter_(model, &greedy_, tenant) {}

void TextDrafter::propose(const draft::View& view, draft::Draft& draft) {
  is_translating_ = !translator_.follow(view.text, kTranslatedMost);
  if (is_translating_) return;
  draft::View own = view;
  own.text = translator_.text();
  own_draft_.clear();
  drafter_.propose(own, own_draft_);
  const std::span pieces = translator_.translate_back(own_draft_.tokens);
  for (const tokenize::Translator::Piece& piece : pieces) {
    if (int32_t(draft.tokens.size()) == view.count_max) return;
    float chance = piece.first == piece.end ? kWithin : 1;
    for (size_t i = piece.first; i < piece.end; ++i) chance *= own_draft_.chances[i];
    if (&piece == &pieces.back()) chance *= kLast;
    draft.add(piece.token, chance);
  }
}

std::unique_ptr<draft::Drafter> make_model_drafter(DraftModel* model,
                                                   const sample::Sampler* sampler,
                                                   uint64_t tenant) {
  if (model->drafts_by_text()) return std::make_unique<TextDrafter>(model, tenant);
  return std::make_unique<ModelDrafter>(model, sampler, tenant);
}

}  // namespace cairn
