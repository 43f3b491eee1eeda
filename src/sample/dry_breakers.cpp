// Finding breakers in a vocabulary and in tokens.
#include "sample/dry_breakers.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "tokenize/tokenizer.h"

namespace cairn::sample {

namespace {

// Bounds of the work that hostile breakers can make.
constexpr size_t kBytesMax = 40;
constexpr size_t kTailTokensMax = 20;

// The sequences for one token: it alone where it holds the breaker, else for each place where its
// end is the breaker's beginning the tokens of what is left.
void add_sequences(const tokenize::Tokenizer& tokenizer, Token token, std::string_view breaker,
                   std::vector<std::vector<Token>>& sequences) {
  const std::string_view word = tokenizer.piece(token);
  if (word.find(breaker) != word.npos) {
    sequences.push_back({token});
    return;
  }
  for (size_t at = word.find(breaker[0]); at != word.npos; at = word.find(breaker[0], at + 1)) {
    const size_t shared = word.size() - at;
    if (shared >= breaker.size() || !breaker.starts_with(word.substr(at))) continue;
    std::vector<Token> tail = tokenizer.encode(breaker.substr(shared));
    tail.resize(std::min(tail.size(), kTailTokensMax));
    tail.insert(tail.begin(), token);
    sequences.push_back(std::move(tail));
  }
}

std::vector<std::vector<Token>> sequences_of(const tokenize::Tokenizer& tokenizer,
                                             std::span<const std::string> texts) {
  std::vector<std::vector<Token>> sequences;
  for (const std::string& text : texts) {
    const std::string_view breaker = std::string_view(text).substr(0, kBytesMax);
    if (breaker.empty()) continue;
    for (size_t token = 0; token < tokenizer.token_count(); ++token) {
      add_sequences(tokenizer, Token(token), breaker, sequences);
    }
  }
  return sequences;
}

}  // namespace

DryBreakers::DryBreakers(std::vector<std::vector<Token>> sequences)
    : sequences_(std::move(sequences)) {
  std::erase_if(sequences_, [](const std::vector<Token>& sequence) { return sequence.empty(); });
  std::sort(sequences_.begin(), sequences_.end());
}

DryBreakers::DryBreakers(const tokenize::Tokenizer& tokenizer, std::span<const std::string> texts)
    : DryBreakers(sequences_of(tokenizer, texts)) {}

bool DryBreakers::is_breaker(Token token) const {
  return std::binary_search(sequences_.begin(), sequences_.end(), std::vector<Token>{token});
}

size_t DryBreakers::repetition_limit(std::span<const Token> tokens) const {
  const size_t count = tokens.size();
  for (size_t behind = 0; behind < count; ++behind) {
    const Token head = tokens[count - 1 - behind];
    auto at = std::lower_bound(sequences_.begin(), sequences_.end(), std::vector<Token>{head});
    std::optional<size_t> longest;
    for (; at != sequences_.end() && at->front() == head; ++at) {
      const auto sequence = tokens.subspan(count - 1 - behind);
      if (at->size() > sequence.size()) continue;
      if (!std::equal(at->begin(), at->end(), sequence.begin())) continue;
      longest = std::max(longest.value_or(0), at->size() - 1);
    }
    if (longest) return behind - *longest;
  }
  return count;
}

}  // namespace cairn::sample
