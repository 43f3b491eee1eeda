// Walks the tree of tokens from each place on as far as it goes, and takes the last token it saw.
#include "tokenize/greedy.h"

namespace cairn::tokenize {

class Greedy::Session : public EncoderSession {
 public:
  explicit Session(const Greedy& encoder) : encoder_(encoder) {}

  void encode(std::string_view text, bool /*follows_special*/, std::vector<Token>& out) override {
    const VocabularyTrie& tokens = encoder_.tokens_;
    for (size_t at = 0; at < text.size();) {
      uint32_t node = VocabularyTrie::kRoot;
      int32_t longest = kNoToken;
      size_t longest_end = at + 1;  // A byte that begins no token is unknown.
      for (size_t end = at; end < text.size();) {
        node = tokens.step(node, static_cast<unsigned char>(text[end++]));
        if (node == VocabularyTrie::kNowhere) break;
        if (tokens.token(node) == kNoToken) continue;
        longest = tokens.token(node);
        longest_end = end;
      }
      at = longest_end;
      const std::optional<Token>& unknown = encoder_.vocabulary_.special_ids().unk;
      if (longest != kNoToken) {
        out.push_back(Token(longest));
      } else if (unknown) {
        out.push_back(*unknown);
      }
    }
  }

 private:
  const Greedy& encoder_;
};

Greedy::Greedy(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const Token token = Token(id);
    const bool is_word =
        !vocabulary.is_control(token) && vocabulary.type(token) != TokenType::unused;
    if (is_word && !vocabulary.piece(token).empty()) {
      tokens_.insert(vocabulary.piece(token), int32_t(id));
    }
  }
}

std::unique_ptr<EncoderSession> Greedy::start(size_t /*text_bytes*/) const {
  return std::make_unique<Session>(*this);
}

}  // namespace cairn::tokenize
