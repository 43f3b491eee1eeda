// A vocabulary's tokens as three byte tries in preorder: a mask is made by one pass that skips
// subtrees that do not match. Tokens that are not text (such as control tokens) are in none. Knows
// no grammar. Thread-safe: constant once built; shared by all users of the vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "tokenize/tokenizer.h"

namespace cairn::grammar {

class TokenTrie {
 public:
  // Short tokens are nearly all there are. Counted repetitions matter to them only near a limit, so
  // that their masks are often the same.
  static constexpr size_t kShortBytesMax = 16;
  // Of the short tokens, those that are plain text: whole characters, neither quotes, backslashes
  // nor control characters. Inside a string all of them are allowed, which takes no walk to see.
  static bool is_plain(std::string_view bytes);
  // Longer tokens are never taken under a grammar.
  static constexpr size_t kBytesMax = 255;

  struct Node {
    uint32_t behind;  // The first node that is not below this one.
    int32_t token;    // That ends here, or -1.
    uint8_t byte;
    uint8_t depth;  // Of the root's children: 1.
  };

  static std::shared_ptr<const TokenTrie> build(const tokenize::Tokenizer& tokenizer);

  size_t token_count() const { return token_count_; }
  std::span<const Node> plain_nodes() const { return plain_; }
  std::span<const Node> other_nodes() const { return other_; }
  // The tokens of plain_nodes(), a bit each.
  std::span<const uint64_t> plain_mask() const { return plain_mask_; }
  std::span<const Node> long_nodes() const { return long_; }
  size_t longest() const { return longest_; }
  // Tokens with the bytes of another one that is in a tree, and that one.
  std::span<const std::pair<int32_t, int32_t>> twins() const { return twins_; }
  std::span<const int32_t> ends() const { return ends_; }

  bool is_text(Token token) const {
    return size_t(index_of(token)) < is_text_.size() && is_text_[size_t(index_of(token))];
  }
  bool is_end(Token token) const;
  // REQUIRES: the token is below token_count().
  std::string_view bytes_of(Token token) const {
    const auto id = size_t(index_of(token));
    return std::string_view(bytes_).substr(begins_[id], begins_[id + 1] - begins_[id]);
  }
  // A token that text cannot spell, by its name.
  std::optional<int32_t> find_special(std::string_view name) const;
  std::optional<int32_t> find_any(std::string_view name) const;

 private:
  size_t token_count_ = 0;
  std::string bytes_;
  std::vector<uint32_t> begins_;
  std::vector<bool> is_text_;
  std::vector<Node> plain_, other_, long_;
  std::vector<uint64_t> plain_mask_;
  std::vector<std::pair<int32_t, int32_t>> twins_;
  std::vector<int32_t> ends_;
  size_t longest_ = 0;
};

}  // namespace cairn::grammar
