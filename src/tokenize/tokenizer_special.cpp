// A walk over the text that stops only at bytes with which a special token begins.
#include "tokenize/tokenizer_special.h"

#include <algorithm>

namespace cairn::tokenize {
namespace {

// Angle brackets with bars, as templates mark turns and tools; plain tags are ordinary HTML.
bool looks_like_markup(std::string_view text) {
  constexpr std::string_view kWideBar = "\xEF\xBD\x9C";  // U+FF5C.
  if (text.size() < 4 || text.front() != '<' || text.back() != '>') return false;
  const std::string_view inside = text.substr(1, text.size() - 2);
  return inside.front() == '|' || inside.back() == '|' || inside.starts_with(kWideBar);
}

Trust needed_trust(const Vocabulary& vocabulary, Token token) {
  if (vocabulary.is_control(token)) return Trust::full;
  return looks_like_markup(vocabulary.piece(token)) ? Trust::plain : Trust::user;
}

bool is_c_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

}  // namespace

SpecialMatcher::SpecialMatcher(const Vocabulary& vocabulary, bool strips_right)
    : vocabulary_(vocabulary), strips_right_(strips_right) {
  for (const Token token : vocabulary.specials()) {
    trie_.insert(vocabulary.piece(token), index_of(token));
  }
}

SpecialMatcher::Match SpecialMatcher::longest_at(std::string_view text, size_t at,
                                                 std::span<const Region> regions) const {
  Match longest;
  Trust trust = regions.front().trust;  // The least of the regions up to the byte walked to.
  uint32_t node = VocabularyTrie::kRoot;
  for (size_t end = at; end < text.size();) {
    while (regions.front().end <= end) regions = regions.subspan(1);
    trust = std::min(trust, regions.front().trust);
    node = trie_.step(node, static_cast<unsigned char>(text[end++]));
    if (node == VocabularyTrie::kNowhere) break;
    const int32_t token = trie_.token(node);
    if (token != kNoToken && needed_trust(vocabulary_, Token(token)) <= trust) {
      longest = {token, end};
    }
  }
  return longest;
}

void SpecialMatcher::split(std::string_view text, std::span<const Region> regions,
                           std::vector<Fragment>& fragments) const {
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!trie_.starts(static_cast<unsigned char>(text[at]))) continue;
    while (regions.front().end <= at) regions = regions.subspan(1);
    const Match match = longest_at(text, at, regions);
    if (match.token == kNoToken) continue;
    if (at > begin) fragments.push_back({begin, at, kNoToken});
    fragments.push_back({at, match.end, match.token});
    begin = match.end;
    const std::string_view piece = vocabulary_.piece(Token(match.token));
    const bool keeps_spaces = piece == "<unk>" || piece == "<s>" || piece == "<|endoftext|>";
    while (strips_right_ && !keeps_spaces && begin < text.size() && is_c_space(text[begin])) {
      ++begin;
    }
    at = begin - 1;
  }
  if (begin < text.size()) fragments.push_back({begin, text.size(), kNoToken});
}

}  // namespace cairn::tokenize
