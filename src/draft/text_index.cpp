// Two automata that take turns.
#include "draft/text_index.h"

#include <algorithm>
#include <utility>

namespace cairn::draft {

namespace {

constexpr size_t kLeastBudget = size_t(64) << 10;

// The end of the text that is being appended.
std::span<const Token> tail(std::span<const Token> tokens, size_t count) {
  size_t length = 0;
  while (length < count && length < tokens.size() &&
         tokens[tokens.size() - 1 - length] != SuffixAutomaton::kNoToken) {
    ++length;
  }
  return tokens.last(length);
}

}  // namespace

TextIndex::TextIndex(size_t budget_bytes) : budget_bytes_(budget_bytes) {
  forget();
}

void TextIndex::forget() {
  // Cursors see that what they stood in is gone.
  generation_ += 2;
  younger_ = std::make_unique<SuffixAutomaton>();
  older_ = nullptr;
}

void TextIndex::append(Token token) {
  if (budget_bytes_ < kLeastBudget) return;
  if (index_of(token) < 0) return end_text();
  if (younger_->bytes_to_append() > budget_bytes_ / 2) rotate();
  younger_->append(token);
}

void TextIndex::rotate() {
  older_ = std::exchange(younger_, std::make_unique<SuffixAutomaton>());
  ++generation_;
  // Matches across the place where the generations meet.
  for (const Token token : tail(older_->tokens(), kContextTokens)) younger_->append(token);
}

void TextIndex::end_text() {
  younger_->end_text();
}

bool TextIndex::ends_with(std::span<const Token> tokens) const {
  return std::ranges::equal(tail(younger_->tokens(), tokens.size()), tokens);
}

size_t TextIndex::bytes() const {
  return younger_->bytes() + (older_ != nullptr ? older_->bytes() : 0);
}

void TextIndex::follow(Cursor& cursor, std::span<const Token> text, size_t new_count) const {
  for (const bool is_younger : {true, false}) {
    const SuffixAutomaton* automaton = is_younger ? younger_.get() : older_.get();
    if (automaton == nullptr) continue;
    const uint64_t generation = is_younger ? generation_ : generation_ - 1;
    Cursor::Place& place = cursor.places[generation % 2];
    size_t count = new_count;
    if (place.generation != generation || count > kContextTokens) {
      place = {.generation = generation};
      count = kContextTokens;
    }
    for (const Token token : text.last(std::min(count, text.size()))) {
      automaton->advance(place.at, token);
    }
  }
}

TextIndex::Match TextIndex::longest(const Cursor& cursor) const {
  Match best;
  for (const bool is_younger : {true, false}) {
    const SuffixAutomaton* automaton = is_younger ? younger_.get() : older_.get();
    const uint64_t generation = is_younger ? generation_ : generation_ - 1;
    const Cursor::Place& place = cursor.places[generation % 2];
    const bool is_here = automaton != nullptr && place.generation == generation;
    if (!is_here || place.at.length <= best.length) continue;
    best = {.length = place.at.length,
            .automaton = automaton,
            .at = place.at,
            .is_younger = is_younger};
  }
  return best;
}

}  // namespace cairn::draft
