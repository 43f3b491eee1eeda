// Scores become integers in the opposite order, so that the row of joins is the same as BPE's.
#include "tokenize/spm.h"

#include <algorithm>
#include <bit>

#include "tokenize/tokenizer_words.h"

namespace cairn::tokenize {
namespace {

// Order-reversing for all floats; NaN, which says nothing, comes last. Below kNeverJoined.
uint32_t priority_of(float score) {
  if (score != score) return kNeverJoined - 1;
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 counts as 0.
  const uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return std::min(~ascending, kNeverJoined - 2);
}

}  // namespace

class Spm::Session : public EncoderSession {
 public:
  Session(const Spm& encoder, size_t text_bytes)
      : encoder_(encoder), words_(encoder.vocabulary_, encoder.pairs_, text_bytes) {}

  void encode(std::string_view text, bool follows_special, std::vector<Token>& out) override {
    unescaped_.clear();
    if (encoder_.space_prefix_ && follows_special) unescaped_ += ' ';
    append_unescaped(text, unescaped_);
    const auto find = [&](std::string_view word, const Symbol& left, const Symbol& right) {
      const int32_t token =
          encoder_.vocabulary_.find_word(word.substr(left.begin, right.end - left.begin));
      if (token == kNoToken) return Joined{};
      return Joined{encoder_.priorities_[size_t(token)], token};
    };
    words_.encode(unescaped_, find, out);
  }

 private:
  const Spm& encoder_;
  CharacterWords words_;
  std::string unescaped_;
};

Spm::Spm(const Vocabulary& vocabulary, bool space_prefix)
    : vocabulary_(vocabulary), space_prefix_(space_prefix) {
  add_all_pairs(vocabulary, pairs_);
  priorities_.reserve(vocabulary.size());
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    priorities_.push_back(priority_of(vocabulary.score(Token(id))));
  }
}

std::unique_ptr<EncoderSession> Spm::start(size_t text_bytes) const {
  return std::make_unique<Session>(*this, text_bytes);
}

}  // namespace cairn::tokenize
