// Both encoders cut text into words that are encoded by themselves: by the pre-tokenizer, or where
// no token of the vocabulary can span (tokenizer_pairs.h).
#include "tokenize/bpe.h"

#include <algorithm>

#include "tokenize/tokenizer_cache.h"
#include "tokenize/tokenizer_merge.h"
#include "tokenize/tokenizer_words.h"
#include "unicode/unicode.h"

namespace cairn::tokenize {

class ByteLevelBpe::Session : public EncoderSession {
 public:
  Session(const ByteLevelBpe& encoder, size_t text_bytes)
      : encoder_(encoder), splitter_(*encoder.pretokenizer_), cache_(text_bytes) {}

  // Bytes that are no UTF-8 are words of their own: no expression sees them.
  void encode(std::string_view text, bool /*follows_special*/, std::vector<Token>& out) override {
    const auto take = [&](std::string_view word) { encode_word(word, out); };
    while (!text.empty()) {
      const size_t valid_bytes = unicode::valid_utf8_bytes(text);
      splitter_.split(text.substr(0, valid_bytes), take);
      text.remove_prefix(valid_bytes);
      if (text.empty()) break;
      take(text.substr(0, 1));
      text.remove_prefix(1);
    }
  }

 private:
  void encode_word(std::string_view word, std::vector<Token>& out) {
    if (encoder_.whole_words_) {
      const int32_t token = encoder_.vocabulary_.find_word(word);
      if (token != kNoToken) return out.push_back(Token(token));
    }
    if (!cache_.takes(word)) return merge_word(word, out);
    const std::span<const Token> known = cache_.find(word);
    if (!known.empty()) {
      out.insert(out.end(), known.begin(), known.end());
      return;
    }
    const size_t before = out.size();
    merge_word(word, out);
    cache_.insert(word, std::span(out).subspan(before));
  }

  void merge_word(std::string_view word, std::vector<Token>& out) {
    while (word.size() > kWordBytesMax) {
      merge_word(word.substr(0, kWordBytesMax), out);
      word.remove_prefix(kWordBytesMax);
    }
    buffer_.symbols.clear();
    for (uint32_t i = 0; i < word.size(); ++i) {
      const auto byte = static_cast<unsigned char>(word[i]);
      buffer_.symbols.push_back({i, i + 1, encoder_.vocabulary_.byte_token(byte)});
    }
    buffer_.merge([&](const Symbol& left, const Symbol& right) {
      return encoder_.merges_.find(left.token, right.token);
    });
    for (const Symbol& symbol : buffer_.symbols) {
      append_symbol(encoder_.vocabulary_, word, symbol, out);
    }
  }

  const ByteLevelBpe& encoder_;
  Pretokenizer::Session splitter_;
  WordCache cache_;
  MergeBuffer buffer_;
};

Result<std::unique_ptr<Encoder>> ByteLevelBpe::build(const Vocabulary& vocabulary, BpeMerges merges,
                                                     const PretokenizerRule& rule) {
  CAIRN_TRY(auto pretokenizer, Pretokenizer::build(rule));
  return std::unique_ptr<Encoder>(
      new ByteLevelBpe(vocabulary, std::move(merges), std::move(pretokenizer), rule.whole_words));
}

std::unique_ptr<EncoderSession> ByteLevelBpe::start(size_t text_bytes) const {
  return std::make_unique<Session>(*this, text_bytes);
}

class CharacterBpe::Session : public EncoderSession {
 public:
  Session(const CharacterBpe& encoder, size_t text_bytes)
      : encoder_(encoder), words_(encoder.vocabulary_, encoder.pairs_, text_bytes) {}

  void encode(std::string_view text, bool /*follows_special*/, std::vector<Token>& out) override {
    unescaped_.clear();
    append_unescaped(text, unescaped_);
    text = unescaped_;
    while (!text.empty()) {
      const size_t line_bytes = std::min(text.find('\n'), text.size());
      encode_words(text.substr(0, line_bytes), out);
      text.remove_prefix(line_bytes);
      const size_t feed_count = std::min(text.find_first_not_of('\n'), text.size());
      const std::string_view feeds = text.substr(0, feed_count);
      const int32_t token = feeds.empty() ? kNoToken : encoder_.vocabulary_.find_word(feeds);
      if (token != kNoToken) {
        out.push_back(Token(token));
      } else {
        encode_words(feeds, out);
      }
      text.remove_prefix(feed_count);
    }
  }

 private:
  void encode_words(std::string_view text, std::vector<Token>& out) {
    const auto find = [&](std::string_view, const Symbol& left, const Symbol& right) {
      return left.token == kNoToken || right.token == kNoToken
                 ? Joined{}
                 : encoder_.merges_.find(left.token, right.token);
    };
    words_.encode(text, find, out);
  }

  const CharacterBpe& encoder_;
  CharacterWords words_;
  std::string unescaped_;
};

CharacterBpe::CharacterBpe(const Vocabulary& vocabulary, BpeMerges merges)
    : vocabulary_(vocabulary), merges_(std::move(merges)) {
  add_all_pairs(vocabulary, pairs_);
}

std::unique_ptr<EncoderSession> CharacterBpe::start(size_t text_bytes) const {
  return std::make_unique<Session>(*this, text_bytes);
}

}  // namespace cairn::tokenize
