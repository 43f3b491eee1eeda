// The text that is forced, and the tokens that it is probably cut into.
#include "session/drafts/forced_drafter.h"

#include <algorithm>

namespace cairn::session {

namespace {

constexpr size_t kBytesMax = 256;
// The last token of a forced text may begin what follows, of which nothing is known.
constexpr float kInside = 0.9f, kLast = 0.5f;
// Of a text that is seen for the first time so much is read.
constexpr size_t kTokensRead = 256;

bool is_space(char character) {
  return character == ' ' || character == '\n' || character == '\t' || character == '\r';
}

}  // namespace

// Strings that hold such punctuation mislead it for as long as they are the last.
void ForcedDrafter::learn_layout(std::span<const Token> text) {
  if (read_count_ > text.size() || text.size() - read_count_ > kTokensRead) {
    read_count_ = text.size() - std::min(text.size(), kTokensRead);
    open_ = nullptr;
  }
  for (; read_count_ < text.size(); ++read_count_) {
    if (!tokenizer_->holds(text[read_count_])) continue;
    for (const char character : tokenizer_->piece(text[read_count_])) {
      if (open_ != nullptr && is_space(character)) {
        open_spaces_ += character;
        continue;
      }
      if (open_ != nullptr) open_->spaces = open_spaces_;
      const auto gap = std::find_if(gaps_.begin(), gaps_.end(), [character](const Gap& each) {
        return each.before == character;
      });
      open_ = gap != gaps_.end() ? &*gap : nullptr;
      open_spaces_.clear();
    }
  }
}

std::string_view ForcedDrafter::layout(char before) const {
  // The form begins, or goes on, behind what is written already.
  if (before == 0) {
    if (open_ == nullptr) return {};
    const std::string_view spaces = open_->spaces;
    return spaces.starts_with(open_spaces_) ? spaces.substr(open_spaces_.size())
                                            : std::string_view();
  }
  const auto gap = std::find_if(gaps_.begin(), gaps_.end(),
                                [before](const Gap& each) { return each.before == before; });
  return gap != gaps_.end() ? std::string_view(gap->spaces) : std::string_view();
}

void ForcedDrafter::propose(const draft::View& view, draft::Draft& draft) {
  learn_layout(view.text);
  const auto spaces = [this](char before) { return layout(before); };
  const grammar::Matcher::Forced forced = constraint_->forced(kBytesMax, spaces);
  tokens_.clear();
  tokenizer_->encode_to(forced.bytes, {.goes_on = true}, tokens_);
  const size_t count = std::min(tokens_.size(), size_t(view.count_max));
  for (size_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == tokens_.size() && !forced.token;
    draft.add(tokens_[i], is_last ? kLast : kInside);
  }
  if (forced.token && count == tokens_.size() && count < size_t(view.count_max)) {
    draft.add(*forced.token, kInside);
  }
}

}  // namespace cairn::session
