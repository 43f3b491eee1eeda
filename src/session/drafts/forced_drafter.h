// Drafts what an answer's form leaves no choice of: keys and punctuation of JSON, the beginning of
// a tool call. How the text is cut into tokens, and where spaces stand, is the model's choice: the
// drafter takes its vocabulary's own cut, and spaces as the answer has had them so far. Thread
// rule: that of drafters.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "draft/draft.h"
#include "session/constraint.h"
#include "tokenize/tokenizer.h"

namespace cairn::session {

class ForcedDrafter final : public draft::Drafter {
 public:
  // Both must outlive it.
  ForcedDrafter(const ConstraintState* constraint, const tokenize::Tokenizer* tokenizer)
      : constraint_(constraint), tokenizer_(tokenizer) {}

  std::string_view name() const override { return "forced"; }
  void propose(const draft::View& view, draft::Draft& draft) override;

 private:
  void learn_layout(std::span<const Token> text);
  std::string_view layout(char before) const;

  const ConstraintState* constraint_;
  const tokenize::Tokenizer* tokenizer_;
  size_t read_count_ = 0;  // Tokens of the text whose layout is known.
  // What stands behind a colon and a comma, and behind opening brackets; while it is being read,
  // whose it is.
  struct Gap {
    char before = 0;
    std::string spaces;
  };
  std::array<Gap, 4> gaps_ = {Gap{':', " "}, Gap{',', " "}, Gap{'{', ""}, Gap{'[', ""}};
  Gap* open_ = nullptr;
  std::string open_spaces_;
  std::vector<Token> tokens_;
};

}  // namespace cairn::session
