// Drafts what followed the end of the text where it occurred before: in the text itself, and in
// what else its tenant's conversations said. Knows no request. Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "draft/corpus.h"
#include "draft/draft.h"
#include "draft/match_chances.h"
#include "draft/text_index.h"
#include "draft/text_place.h"

namespace cairn::draft {

class LookupDrafter : public Drafter {
 public:
  static constexpr int32_t kCountMax = 64;

  struct Options {
    // What the tenant's conversations said; null: the text alone.
    std::shared_ptr<Knowledge> knowledge;
    // So many first tokens of the text are part of it (the turns before, as they were appended):
    // the text's own index begins where they end.
    size_t known_count = 0;
    size_t own_bytes = size_t(16) << 20;  // Of that index.
  };
  explicit LookupDrafter(Options options);

  std::string_view name() const override { return "lookup"; }
  void propose(const View& view, Draft& draft) override;
  bool is_reading() const override { return is_reading_; }

 private:
  void follow(std::span<const Token> text);
  size_t kept_count(std::span<const Token> text) const;
  void rewind(size_t count);
  // A match, and the token that its index does not have yet, if it is that of the text itself.
  struct Source {
    TextIndex::Match match;
    const Token* last = nullptr;
    // Where what follows begins, in the index; -1: nothing follows.
    int64_t begin(SuffixAutomaton::Cursor at) const;
    Token token_at(size_t place, const Draft& draft) const;
  };
  Source longest(const View& view, size_t followed_before);
  void remember(const Source& source, size_t begin);
  bool is_in_step() const;
  void go_on(int32_t count_max, Draft& draft) const;
  // Of the first token behind the match, at this place of its index.
  static MatchChances::Evidence evidence_of(const Source& source, size_t begin, Token before);
  // That token and those that follow.
  void copy(const Source& source, size_t begin, MatchChances::Evidence evidence, int32_t count_max,
            Draft& draft);
  MatchChances& chances();
  void learn(std::span<const Token> text);

  Options options_;
  TextIndex::Cursor corpus_cursor_;

  // The text as it was followed, and an index of it without its last token: so that what is found
  // is an occurrence before the one at the end.
  std::vector<Token> text_;
  size_t begin_ = 0;  // Where in the real text it begins.
  bool is_begun_ = false;
  bool is_reading_ = false;  // The last propose() followed more than a few steps' tokens.
  TextIndex own_;
  TextIndex::Cursor own_cursor_;
  // What followed the last long match, and where in it the text is: changes here and there do not
  // end a copy.
  std::vector<Token> copied_;
  TextPlace place_;

  // What was drafted behind a match, to learn from what comes.
  std::vector<MatchChances::Evidence> drafted_;
  size_t drafted_begin_ = 0;                   // In the real text.
  std::unique_ptr<MatchChances> own_chances_;  // Without knowledge.
};

}  // namespace cairn::draft
