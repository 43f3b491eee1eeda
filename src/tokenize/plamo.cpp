// From the end of a text to its beginning: the best way on from each place, made of the best ways
// that are known. Of equals the longest token wins.
#include "tokenize/plamo.h"

#include <algorithm>
#include <cmath>

#include "tokenize/tokenizer_words.h"

namespace cairn::tokenize {
namespace {

constexpr double kCostUnits = 1e4;
constexpr int32_t kUnknownCost = 10'000'000;
// Tokens that cost as much as this are never used, nor are those without a score.
constexpr int32_t kTooMuch = 20'000'000;

int32_t cost_of(float score) {
  if (!std::isfinite(score)) return kTooMuch;
  const double cost = -std::round(double(score) * kCostUnits);
  return int32_t(std::clamp(cost, -double(kTooMuch), double(kTooMuch)));
}

}  // namespace

class Plamo::Session : public EncoderSession {
 public:
  explicit Session(const Plamo& encoder) : encoder_(encoder) {}

  void encode(std::string_view text, bool /*follows_special*/, std::vector<Token>& out) override {
    ways_.assign(text.size() + 1, {});
    for (size_t at = text.size(); at-- > 0;) ways_[at] = best_way(text, at);
    for (size_t at = 0; at < text.size(); at += ways_[at].length) {
      const Way& way = ways_[at];
      append_symbol(encoder_.vocabulary_, text.substr(at, way.length), {0, way.length, way.token},
                    out);
    }
  }

 private:
  struct Way {
    int64_t cost = 0;  // Of all the text from here on.
    int32_t token = kNoToken;
    uint32_t length = 0;
  };

  Way best_way(std::string_view text, size_t at) const {
    const uint32_t length = character_or_byte(text.substr(at)).length;
    Way best{ways_[at + length].cost + kUnknownCost, kNoToken, length};
    uint32_t node = VocabularyTrie::kRoot;
    for (size_t end = at; end < text.size();) {
      node = encoder_.tokens_.step(node, static_cast<unsigned char>(text[end++]));
      if (node == VocabularyTrie::kNowhere) break;
      const int32_t token = encoder_.tokens_.token(node);
      if (token == kNoToken) continue;
      const int64_t cost = ways_[end].cost + encoder_.costs_[size_t(token)];
      if (cost <= best.cost) best = {cost, token, uint32_t(end - at)};
    }
    return best;
  }

  const Plamo& encoder_;
  std::vector<Way> ways_;  // By place.
};

Plamo::Plamo(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const Token token = Token(id);
    costs_.push_back(cost_of(vocabulary.score(token)));
    const TokenType type = vocabulary.type(token);
    const bool is_word = !vocabulary.is_control(token) && type != TokenType::byte &&
                         type != TokenType::unused && costs_.back() < kTooMuch;
    if (is_word && !vocabulary.piece(token).empty()) {
      tokens_.insert(vocabulary.piece(token), int32_t(id));
    }
  }
}

std::unique_ptr<EncoderSession> Plamo::start(size_t /*text_bytes*/) const {
  return std::make_unique<Session>(*this);
}

}  // namespace cairn::tokenize
