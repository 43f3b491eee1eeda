// A walk through the table.
#include "draft/recycle_drafter.h"

#include <algorithm>
#include <array>

namespace cairn::draft {

namespace {

constexpr int32_t kCountMax = 8;
// Of a prompt, only the end teaches: what comes later replaces what came before.
constexpr size_t kLearnedMost = 16384;

// How likely a successor is that was confirmed so many times. What drafts claim is calibrated;
// these only have to be different where it matters.
constexpr std::array<float, 8> kChances = {.12f, .25f, .35f, .45f, .55f, .62f, .68f, .75f};

}  // namespace

void RecycleDrafter::propose(const View& view, Draft& draft) {
  const std::span<const Token> text = view.text;
  if (text.empty()) return;
  // After a rewind, what comes anew.
  seen_ = std::min(seen_, text.size());
  const size_t first = text.size() - std::min(text.size() - seen_, kLearnedMost);
  for (size_t i = std::max(first, size_t(1)); i < text.size(); ++i) {
    table_->learn(text[i - 1], text[i]);
  }
  seen_ = text.size();

  Token token = text.back();
  for (int32_t i = 0; i < std::min(view.count_max, kCountMax); ++i) {
    const RecycleTable::Successor next = table_->best(token);
    if (index_of(next.token) < 0) return;
    draft.add(next.token, kChances[size_t(next.confirmed)]);
    token = next.token;
  }
}

}  // namespace cairn::draft
