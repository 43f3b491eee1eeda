// The automaton of Aho and Corasick (1975): a state for each beginning of the texts that may have
// been read. A rule for each, so that any text before costs no stack.
#include "grammar/text_without.h"

#include <map>
#include <vector>

namespace cairn::grammar {

namespace {

class Beginnings {
 public:
  explicit Beginnings(std::span<const std::string> texts) {
    states_.emplace_back();
    for (const std::string& text : texts) add(text);
    link();
  }

  size_t count() const { return states_.size(); }
  // A whole text has been read.
  bool is_whole(size_t state) const { return states_[state].is_whole; }
  size_t next(size_t state, char32_t character) const {
    while (true) {
      const auto found = states_[state].next.find(character);
      if (found != states_[state].next.end()) return found->second;
      if (state == 0) return 0;
      state = states_[state].failure;
    }
  }
  const CharacterSet& characters() const { return characters_; }

 private:
  struct State {
    std::map<char32_t, size_t> next;
    size_t failure = 0;  // The longest beginning that is a proper tail of this one.
    bool is_whole = false;
  };

  void add(std::string_view text) {
    CHECK(!text.empty());
    size_t state = 0;
    while (!text.empty()) {
      const auto character = decode_character(text);
      CHECK(character);
      text.remove_prefix(character->bytes);
      characters_.add(character->value);
      const auto known = states_[state].next.find(character->value);
      if (known != states_[state].next.end()) {
        state = known->second;
        continue;
      }
      states_[state].next.emplace(character->value, states_.size());
      state = states_.size();
      states_.emplace_back();
    }
    states_[state].is_whole = true;
  }

  // Shorter beginnings first: what a state links to is known before it.
  void link() {
    std::vector<size_t> order = {0};
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t state = order[i];
      for (const auto& [character, longer] : states_[state].next) {
        const size_t failure = state == 0 ? 0 : next(states_[state].failure, character);
        states_[longer].failure = failure;
        states_[longer].is_whole = states_[longer].is_whole || states_[failure].is_whole;
        order.push_back(longer);
      }
    }
  }

  std::vector<State> states_;
  CharacterSet characters_;
};

}  // namespace

Node text_without(std::span<const std::string> never, Expressions& expressions) {
  Expressions& e = expressions;
  const Beginnings beginnings(never);
  std::vector<Rule> rules;
  for (size_t state = 0; state < beginnings.count(); ++state) {
    rules.push_back(e.declare("text without"));
  }
  for (size_t state = 0; state < beginnings.count(); ++state) {
    std::map<size_t, CharacterSet> ways;
    if (!beginnings.is_whole(state)) {
      ways[0] = beginnings.characters().inverse();
      for (const CharacterRange& range : beginnings.characters().ranges()) {
        for (char32_t character = range.first; character <= range.last; ++character) {
          const size_t next = beginnings.next(state, character);
          if (!beginnings.is_whole(next)) ways[next].add(character);
        }
      }
    }
    std::vector<Node> choices;
    if (!beginnings.is_whole(state)) choices.push_back(e.empty());
    for (const auto& [next, characters] : ways) {
      choices.push_back(e.sequence({e.characters(characters), e.call(rules[next])}));
    }
    e.define(rules[state], e.choice(choices));
  }
  return e.call(rules[0]);
}

}  // namespace cairn::grammar
