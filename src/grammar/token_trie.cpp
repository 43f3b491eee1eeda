// Sorted by their bytes, tokens are a tree already: what follows is where each differs from the one
// before.
#include "grammar/token_trie.h"

#include <algorithm>

#include "grammar/characters.h"

namespace cairn::grammar {

namespace {

bool spells_text(const tokenize::Tokenizer& tokenizer, Token token) {
  if (tokenizer.is_control(token) || tokenizer.is_end_of_generation(token)) return false;
  const tokenize::TokenType type = tokenizer.type(token);
  if (type == tokenize::TokenType::unknown || type == tokenize::TokenType::unused) return false;
  const size_t size = tokenizer.piece(token).size();
  return 0 < size && size <= TokenTrie::kBytesMax;
}

// `tokens`: sorted by bytes, no bytes twice.
std::vector<TokenTrie::Node> make_nodes(
    std::span<const std::pair<std::string_view, int32_t>> tokens) {
  std::vector<TokenTrie::Node> nodes;
  std::vector<uint32_t> path;  // The nodes that are open, by depth.
  std::string_view before;
  for (const auto& [bytes, token] : tokens) {
    size_t equal = 0;
    while (equal < before.size() && equal < bytes.size() && before[equal] == bytes[equal]) ++equal;
    for (; path.size() > equal; path.pop_back()) nodes[path.back()].behind = uint32_t(nodes.size());
    for (size_t i = equal; i < bytes.size(); ++i) {
      path.push_back(uint32_t(nodes.size()));
      nodes.push_back({.behind = 0,
                       .token = i + 1 == bytes.size() ? token : -1,
                       .byte = uint8_t(bytes[i]),
                       .depth = uint8_t(i + 1)});
    }
    before = bytes;
  }
  for (; !path.empty(); path.pop_back()) nodes[path.back()].behind = uint32_t(nodes.size());
  return nodes;
}

}  // namespace

std::shared_ptr<const TokenTrie> TokenTrie::build(const tokenize::Tokenizer& tokenizer) {
  auto trie = std::make_shared<TokenTrie>();
  trie->token_count_ = tokenizer.token_count();
  trie->is_text_.assign(trie->token_count_, false);
  std::vector<std::pair<std::string_view, int32_t>> sorted;
  for (int32_t id = 0; size_t(id) < trie->token_count_; ++id) {
    const std::string_view bytes = tokenizer.piece(Token(id));
    trie->begins_.push_back(uint32_t(trie->bytes_.size()));
    trie->bytes_ += bytes;
    if (tokenizer.is_end_of_generation(Token(id))) trie->ends_.push_back(id);
    if (!spells_text(tokenizer, Token(id))) continue;
    trie->is_text_[size_t(id)] = true;
    trie->longest_ = std::max(trie->longest_, bytes.size());
    sorted.emplace_back(bytes, id);
  }
  trie->begins_.push_back(uint32_t(trie->bytes_.size()));
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::pair<std::string_view, int32_t>> plain, other, many;
  trie->plain_mask_.assign((trie->token_count_ + 63) / 64, 0);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && sorted[i].first == sorted[i - 1].first) {
      const bool has_twin =
          !trie->twins_.empty() && trie->twins_.back().first == sorted[i - 1].second;
      trie->twins_.emplace_back(sorted[i].second,
                                has_twin ? trie->twins_.back().second : sorted[i - 1].second);
    } else {
      const auto& [bytes, token] = sorted[i];
      const bool is_short = bytes.size() <= kShortBytesMax;
      const bool counts_as_plain = is_short && is_plain(bytes);
      (counts_as_plain ? plain : is_short ? other : many).push_back(sorted[i]);
      if (counts_as_plain) trie->plain_mask_[size_t(token) / 64] |= uint64_t(1) << (token % 64);
    }
  }
  trie->plain_ = make_nodes(plain);
  trie->other_ = make_nodes(other);
  trie->long_ = make_nodes(many);
  return trie;
}

bool TokenTrie::is_plain(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto character = decode_character(bytes);
    if (!character || character->value < 0x20 || character->value == 0x7F) return false;
    if (character->value == '"' || character->value == '\\') return false;
    bytes.remove_prefix(character->bytes);
  }
  return true;
}

bool TokenTrie::is_end(Token token) const {
  return std::binary_search(ends_.begin(), ends_.end(), index_of(token));
}

std::optional<int32_t> TokenTrie::find_special(std::string_view name) const {
  for (int32_t id = 0; size_t(id) < token_count_; ++id) {
    if (!is_text_[size_t(id)] && bytes_of(Token(id)) == name) return id;
  }
  return std::nullopt;
}

std::optional<int32_t> TokenTrie::find_any(std::string_view name) const {
  if (const auto special = find_special(name)) return special;
  for (int32_t id = 0; size_t(id) < token_count_; ++id) {
    if (bytes_of(Token(id)) == name) return id;
  }
  return std::nullopt;
}

}  // namespace cairn::grammar
