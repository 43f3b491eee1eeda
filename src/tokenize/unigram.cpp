// Where no token reaches across a space, words are cut one by one: less memory, and sums do not
// grow with the text. Scores add up in f64.
#include "tokenize/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "unicode/unicode.h"

namespace cairn::tokenize {
namespace {

constexpr double kUnknownPenalty = 10;  // Below the least score of all.
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNone = -kInfinity;

// The best way to a place of a word.
struct Best {
  double score;     // kNone: no way.
  uint32_t length;  // Of the last token.
  int32_t token;
};

}  // namespace

class Unigram::Session : public EncoderSession {
 public:
  explicit Session(const Unigram& encoder) : encoder_(encoder) {}

  void encode(std::string_view text, bool follows_special, std::vector<Token>& out) override {
    normalize(text, follows_special);
    bool follows_unknown = false;
    for (std::string_view rest = normalized_; !rest.empty();) {
      const size_t space = encoder_.cuts_at_spaces_ ? rest.find(' ', 1) : rest.npos;
      const std::string_view word = rest.substr(0, space);
      find_best(word);
      take_best(word, follows_unknown, out);
      rest.remove_prefix(word.size());
    }
  }

 private:
  // What a text begins with, and how much of it that replaces.
  Charsmap::Match first_part(std::string_view text) const {
    const Charsmap::Match match = encoder_.charsmap_.longest(text);
    if (match.length > 0) return match;
    const size_t length = unicode::first_character(text).length;
    if (length == 0) return {1, kReplacementCharacter};
    return {length, text.substr(0, length)};
  }

  void normalize(std::string_view text, bool follows_special) {
    const bool removes_extra = encoder_.spaces_.removes_extra;
    normalized_.clear();
    while (removes_extra && !text.empty()) {
      const Charsmap::Match part = first_part(text);
      if (part.replacement != " ") break;
      text.remove_prefix(part.length);
    }
    if (text.empty()) return;
    if (encoder_.spaces_.prefix && follows_special) normalized_ += ' ';
    bool follows_space = removes_extra;
    while (!text.empty()) {
      const Charsmap::Match part = first_part(text);
      text.remove_prefix(part.length);
      std::string_view added = part.replacement;
      while (follows_space && added.starts_with(' ')) added.remove_prefix(1);
      if (added.empty()) continue;
      append_unescaped(added, normalized_);
      follows_space = removes_extra && added.ends_with(' ');
    }
    while (removes_extra && normalized_.ends_with(' ')) normalized_.pop_back();
  }

  void find_best(std::string_view word) {
    best_.assign(word.size() + 1, {kNone, 0, kNoToken});
    best_[0].score = 0;
    for (size_t begin = 0; begin < word.size();) {
      // Normalized text is of whole characters.
      const size_t character =
          std::max<size_t>(unicode::first_character(word.substr(begin)).length, 1);
      bool is_known = false;
      uint32_t node = VocabularyTrie::kRoot;
      for (size_t end = begin; end < word.size();) {
        node = encoder_.tokens_.step(node, static_cast<unsigned char>(word[end++]));
        if (node == VocabularyTrie::kNowhere) break;
        const int32_t token = encoder_.tokens_.token(node);
        if (token == kNoToken) continue;
        is_known |= end - begin == character;
        offer(begin, end, encoder_.vocabulary_.score(Token(token)), token);
      }
      if (!is_known) {
        offer(begin, begin + character, encoder_.unknown_score_, index_of(encoder_.unknown_));
      }
      begin += character;
    }
  }

  void offer(size_t begin, size_t end, double score, int32_t token) {
    const double sum = best_[begin].score + score;
    if (sum > best_[end].score) best_[end] = {sum, uint32_t(end - begin), token};
  }

  // Walks back from the end, then appends what it met in reverse.
  void take_best(std::string_view word, bool& follows_unknown, std::vector<Token>& out) {
    ends_.clear();
    for (size_t end = word.size(); end > 0; end -= best_[end].length) ends_.push_back(end);
    for (size_t i = ends_.size(); i-- > 0;) {
      const Best& best = best_[ends_[i]];
      const bool is_unknown = Token(best.token) == encoder_.unknown_;
      if (is_unknown && encoder_.has_bytes_) {
        for (const char byte : word.substr(ends_[i] - best.length, best.length)) {
          out.push_back(Token(encoder_.vocabulary_.byte_token(uint8_t(byte))));
        }
      } else if (!is_unknown || !follows_unknown) {
        out.push_back(Token(best.token));
      }
      follows_unknown = is_unknown;
    }
  }

  const Unigram& encoder_;
  std::string normalized_;
  std::vector<Best> best_;  // By end within a word.
  std::vector<size_t> ends_;
};

Result<std::unique_ptr<Unigram>> Unigram::build(const Vocabulary& vocabulary, Charsmap charsmap,
                                                Spaces spaces) {
  const std::optional<Token> unknown = vocabulary.special_ids().unk;
  if (!unknown) {
    return fail(ErrorCode::invalid_data,
                "tokenizer.ggml.unknown_token_id: expected an id for a unigram model, found none");
  }
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const float score = vocabulary.score(Token(id));
    if (std::abs(score) <= std::numeric_limits<float>::max()) continue;  // NaN is not.
    return fail(ErrorCode::invalid_data, "tokenizer.ggml.scores: expected numbers, found {} at {}",
                score, id);
  }
  return std::unique_ptr<Unigram>(new Unigram(vocabulary, std::move(charsmap), spaces, *unknown));
}

Unigram::Unigram(const Vocabulary& vocabulary, Charsmap charsmap, Spaces spaces, Token unknown)
    : vocabulary_(vocabulary), charsmap_(std::move(charsmap)), spaces_(spaces), unknown_(unknown) {
  double least = kInfinity;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    // Ordinary tokens only; what a user defined is found before text comes here.
    if (vocabulary.type(Token(id)) != TokenType::normal) continue;
    const std::string_view piece = vocabulary.piece(Token(id));
    least = std::min(least, double(vocabulary.score(Token(id))));
    if (piece.empty() || Token(id) == unknown) continue;
    tokens_.insert(piece, int32_t(id));
    if (piece.find(' ', 1) != piece.npos) cuts_at_spaces_ = false;
  }
  if (least < kInfinity) unknown_score_ = least - kUnknownPenalty;
  for (int byte = 0; byte < 256; ++byte) {
    has_bytes_ = has_bytes_ && vocabulary.byte_token(uint8_t(byte)) != kNoToken;
  }
}

std::unique_ptr<EncoderSession> Unigram::start(size_t /*text_bytes*/) const {
  return std::make_unique<Session>(*this);
}

}  // namespace cairn::tokenize
