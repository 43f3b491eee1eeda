// Drafts: tokens that are likely to follow a text, proposed before the model has chosen any of
// them. The engine computes their rows together with the row that it has to compute anyway, and
// keeps those that the model's own choice confirms. So nothing here decides a token: a drafter that
// is wrong, or broken, costs time alone. Knows neither models nor memory. Thread rule: a drafter
// belongs to one sequence and to the engine's thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace cairn::draft {

// A chain: each token follows the one before it.
struct Draft {
  std::vector<Token> tokens;
  // Of each token, how likely it is where those before it were right, as the drafter sees it: from
  // 0 to 1. Calibrated before anybody relies on it.
  std::vector<float> chances;

  void clear() {
    tokens.clear();
    chances.clear();
  }
  void add(Token token, float chance) {
    tokens.push_back(token);
    chances.push_back(chance);
  }
};

// What a drafter sees.
struct View {
  // Prompt and answer so far; the last token is chosen, and its row is not computed yet.
  std::span<const Token> text;
  int32_t count_max = 0;  // More tokens are of no use.
  // What a step without drafts takes; 0: not known. What takes time of its own to find a token
  // ends where another one would not be worth it.
  double step_seconds = 0;
};

// What became of a draft.
struct Verdict {
  int32_t checked = 0;   // Its first tokens, whose rows were computed.
  int32_t accepted = 0;  // The first of these, which the model chose too.
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string_view name() const = 0;
  // Adds what may follow to `draft`, which is empty; nothing where it knows nothing. The text is
  // that of the last call with tokens more or fewer: a rewind may have come between. Costs time in
  // proportion to what is new of it.
  virtual void propose(const View& view, Draft& draft) = 0;
  // Of the last draft. Not called where none of it was checked.
  virtual void take(const Verdict& verdict) { (void)verdict; }

  // It computes for each token that it proposes, so it is not asked where another drafter knows
  // enough.
  virtual bool is_costly() const { return false; }
  // The last propose() read of the text what was there before this drafter was. Such calls are few,
  // whatever comes of the drafts: they are no loss that ends drafting.
  virtual bool is_reading() const { return false; }
  // Why it will not propose anything any more, from a text that is constant; empty: it may.
  virtual std::string_view off_reason() const { return {}; }
};

}  // namespace cairn::draft
