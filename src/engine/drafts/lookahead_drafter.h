// Drafts from what rows behind a wrong draft have said (Jacobi iteration: Santilli et al.,
// 2305.10427; with a pool of what such rows said before: Fu et al., lookahead decoding,
// 2402.02057): they had a wrong token somewhere before them, and are often right all the same.
// Every step has rows for guesses, so this pays only where rows cost next to nothing. Thread rule:
// that of drafters.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "draft/draft.h"
#include "draft/recycle_table.h"
#include "engine/drafts/row_reader.h"

namespace cairn {

class LookaheadDrafter final : public draft::Drafter, public RowReader {
 public:
  std::string_view name() const override { return "lookahead"; }
  void propose(const draft::View& view, draft::Draft& draft) override;

  void take(int32_t position, const StepOutputs& rows, int32_t count) override;
  using draft::Drafter::take;

 private:
  // What the last step's rows have said of the text from guesses_begin_ on.
  std::vector<Token> guesses_;
  size_t guesses_begin_ = 0;
  draft::RecycleTable pool_;  // What followed a token in what rows have said.
};

}  // namespace cairn
