// The reference tokenizer's steps, character by character, with no copy but the word at hand.
#include "tokenize/wpm.h"

namespace cairn::tokenize {
namespace {

// Longer words are unknown without being looked at, as in the reference tokenizer.
constexpr size_t kWordCharactersMax = 100;

}  // namespace

class Wpm::Session : public EncoderSession {
 public:
  explicit Session(const Wpm& encoder) : encoder_(encoder) {}

  void encode(std::string_view text, bool /*follows_special*/, std::vector<Token>& out) override {
    while (!text.empty()) {
      const unicode::Character character = unicode::first_character(text);
      if (character.length == 0) {
        text.remove_prefix(1);  // What is no character is dropped, as U+FFFD is.
        continue;
      }
      text.remove_prefix(character.length);
      take(character.code, out);
    }
    end_word(out);
  }

 private:
  void take(char32_t code, std::vector<Token>& out) {
    // Controls before spaces: a form feed, which is both, joins what it stands between.
    if (code == 0 || code == 0xFFFD || unicode::is_control(code)) return;
    if (unicode::is_space(code)) return end_word(out);
    const bool stands_alone = unicode::is_ideograph(code);
    if (stands_alone) end_word(out);
    folded_.clear();
    unicode::append_folded(code, encoder_.folding_, folded_);
    for (const char32_t part : folded_) {
      if (unicode::is_punctuation(part)) {
        end_word(out);
        add(part);
        end_word(out);
      } else {
        add(part);
      }
    }
    if (stands_alone) end_word(out);
  }

  void add(char32_t code) {
    if (++character_count_ <= kWordCharactersMax) unicode::append_utf8(code, word_);
  }

  void end_word(std::vector<Token>& out) {
    if (character_count_ == 0) return;
    const size_t before = out.size();
    bool is_known = character_count_ <= kWordCharactersMax;
    for (size_t at = 0; is_known && at < word_.size();) {
      uint32_t node = VocabularyTrie::kRoot;
      int32_t longest = kNoToken;
      size_t longest_end = at;
      for (size_t end = at; end < word_.size();) {
        node = encoder_.tokens_.step(node, static_cast<unsigned char>(word_[end++]));
        if (node == VocabularyTrie::kNowhere) break;
        if (encoder_.tokens_.token(node) == kNoToken) continue;
        longest = encoder_.tokens_.token(node);
        longest_end = end;
      }
      is_known = longest != kNoToken;
      if (is_known) out.push_back(Token(longest));
      at = longest_end;
    }
    if (!is_known) {
      out.resize(before);
      if (encoder_.vocabulary_.special_ids().unk) {
        out.push_back(*encoder_.vocabulary_.special_ids().unk);
      }
    }
    word_.assign(1, ' ');  // What marks the beginning of a word, unescaped.
    character_count_ = 0;
  }

  const Wpm& encoder_;
  std::string word_ = " ";
  size_t character_count_ = 0;
  std::u32string folded_;
};

Wpm::Wpm(const Vocabulary& vocabulary, unicode::Folding folding)
    : vocabulary_(vocabulary), folding_(folding) {
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const Token token = Token(id);
    if (!vocabulary.is_control(token) && !vocabulary.piece(token).empty()) {
      tokens_.insert(vocabulary.piece(token), int32_t(id));
    }
  }
}

std::unique_ptr<EncoderSession> Wpm::start(size_t /*text_bytes*/) const {
  return std::make_unique<Session>(*this);
}

}  // namespace cairn::tokenize
