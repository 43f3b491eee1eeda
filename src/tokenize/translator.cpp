// Bytes between two vocabularies. The end of a text is translated again from the beginning of a
// word on whenever it grows: what is cut before that place is cut there in the whole text too.
#include "tokenize/translator.h"

#include <algorithm>
#include <string_view>

#include "unicode/unicode.h"

namespace cairn::tokenize {

namespace {

// Tokens of the translation among which that word may begin, and how many are translated again in
// a text that has no words.
constexpr size_t kWordTokens = 16;
constexpr size_t kChangedTokens = 4;

bool is_space(char character) {
  return character == ' ' || character == '\n' || character == '\t' || character == '\r';
}

}  // namespace

bool Translator::follow(std::span<const Token> text, size_t count_most) {
  const auto differs = std::mismatch(seen_.begin(), seen_.end(), text.begin(), text.end()).first;
  const size_t shared = size_t(differs - seen_.begin());
  if (shared < seen_.size()) go_back(shared);
  const std::span<const Token> rest = text.subspan(seen_.size());
  for (const Token token : rest.first(std::min(rest.size(), count_most))) add(token);
  extend();
  return seen_.size() == text.size();
}

void Translator::go_back(size_t count) {
  // What stood before the place where it began anew is not known any more.
  if (count < begin_) {
    seen_.clear();
    ends_.clear();
    begin_anew();
    return;
  }
  seen_.resize(count);
  ends_.resize(count);
  bytes_.resize(count > begin_ ? ends_.back() : 0);
  while (!specials_.empty() && specials_.back().end > bytes_.size()) specials_.pop_back();
  while (!made_.empty() && made_ends_.back() > whole_bytes()) {
    made_.pop_back();
    made_ends_.pop_back();
  }
  made_bytes_ = made_ends_.empty() ? 0 : made_ends_.back();
  const bool begins = bytes_.empty() || is_behind_name();
  drops_space_ = begins && from_->adds_space_prefix();
}

void Translator::begin_anew() {
  begin_ = seen_.size();
  bytes_.clear();
  specials_.clear();
  made_.clear();
  made_ends_.clear();
  made_bytes_ = 0;
  drops_space_ = from_->adds_space_prefix();
}

void Translator::add(Token token) {
  if (seen_.empty()) begin_anew();
  seen_.push_back(token);
  const bool is_known = from_->holds(token);
  const std::string_view piece = is_known ? from_->piece(token) : std::string_view();
  if (!is_known || from_->is_control(token)) {
    const std::optional<Token> same = to_->find(piece);
    if (!same || !to_->is_control(*same)) {
      begin_anew();
    } else {
      specials_.push_back({bytes_.size(), bytes_.size() + piece.size()});
      bytes_ += piece;
      drops_space_ = from_->adds_space_prefix();
    }
  } else {
    bytes_ += drops_space_ && piece.starts_with(' ') ? piece.substr(1) : piece;
    drops_space_ = drops_space_ && piece.empty();
  }
  ends_.push_back(bytes_.size());
}

size_t Translator::whole_bytes() const {
  return bytes_.size() - unicode::unfinished_utf8_bytes(bytes_);
}

// Where words begin spaces do, and no further ones before these.
bool Translator::begins_word(size_t place) const {
  if (place == 0 || place >= bytes_.size()) return false;
  return is_space(bytes_[place]) && !is_space(bytes_[place - 1]);
}

size_t Translator::first_to_change() const {
  size_t first = made_.size();
  for (size_t back = 1; back <= std::min(kWordTokens, made_.size()); ++back) {
    const size_t candidate = made_.size() - back;
    const size_t place = candidate == 0 ? 0 : made_ends_[candidate - 1];
    if (place == kNowhere) continue;
    const bool is_whole =
        candidate == 0 || to_->is_control(made_[candidate - 1]) || begins_word(place);
    if (is_whole) return candidate;
    if (back <= kChangedTokens) first = candidate;
  }
  return first;
}

bool Translator::is_behind_name() const {
  return !specials_.empty() && specials_.back().end == bytes_.size();
}

bool Translator::is_behind_special() const {
  return made_.empty() || to_->is_control(made_.back());
}

void Translator::collect_pieces(size_t begin, size_t end) {
  pieces_.clear();
  const std::string_view all = bytes_;
  size_t place = begin;
  for (const Special& special : specials_) {
    if (special.begin < begin || special.end > end) continue;
    pieces_.push_back({all.substr(place, special.begin - place), false});
    pieces_.push_back({all.substr(special.begin, special.end - special.begin), true});
    place = special.end;
  }
  pieces_.push_back({all.substr(place, end - place), false});
}

// Translates what is new, and the word before it again.
void Translator::extend() {
  const size_t end = whole_bytes();
  if (end > made_bytes_) {
    const size_t first = first_to_change();
    made_.resize(first);
    made_ends_.resize(first);
    const size_t begin = first == 0 ? 0 : std::min(made_ends_.back(), end);
    collect_pieces(begin, end);
    const bool goes_on = !is_behind_special();
    to_->encode_to(pieces_, {.parse_special = true, .goes_on = goes_on}, made_);
    find_ends(first, begin, end);
    made_bytes_ = end;
  }
  const std::optional<Token> opening = to_->special_ids().bos;
  if (!to_->adds_bos() || !opening || seen_.empty()) return;
  if (!made_.empty() && made_.front() == *opening) return;
  made_.insert(made_.begin(), *opening);
  made_ends_.insert(made_ends_.begin(), 0);
}

// Of the tokens from `first` on, which stand for these bytes. Where they are not their bytes
// (a vocabulary that changes letters), only the last one's end is known.
void Translator::find_ends(size_t first, size_t begin, size_t end) {
  size_t place = begin;
  bool is_same = true;
  made_ends_.resize(made_.size(), kNowhere);
  for (size_t i = first; i < made_.size() && is_same; ++i) {
    const std::string_view rest = std::string_view(bytes_).substr(place, end - place);
    std::string_view piece = to_->piece(made_[i]);
    const bool has_prefix = piece.starts_with(' ') && !rest.starts_with(' ');
    if (has_prefix) piece.remove_prefix(1);
    is_same = rest.starts_with(piece);
    place += piece.size();
    if (is_same) made_ends_[i] = place;
  }
  if (made_.size() > first && (!is_same || place != end)) {
    std::fill(made_ends_.begin() + std::ptrdiff_t(first), made_ends_.end(), kNowhere);
    made_ends_.back() = end;
  }
}

std::span<const Translator::Piece> Translator::translate_back(std::span<const Token> more) {
  more_bytes_.clear();
  more_begins_.clear();
  back_.clear();
  back_pieces_.clear();
  const bool goes_on = !is_behind_special();
  for (const Token token : more) {
    if (!to_->holds(token) || to_->is_control(token)) break;
    std::string_view piece = to_->piece(token);
    const bool has_prefix = more_begins_.empty() && !goes_on && to_->adds_space_prefix();
    if (has_prefix && piece.starts_with(' ')) piece.remove_prefix(1);
    more_begins_.push_back(more_bytes_.size());
    more_bytes_ += piece;
  }
  const std::string_view pending = std::string_view(bytes_).substr(made_bytes_);
  if (!more_bytes_.starts_with(pending)) return {};
  more_bytes_.resize(more_bytes_.size() - unicode::unfinished_utf8_bytes(more_bytes_));
  if (more_bytes_.size() <= pending.size()) return {};
  const std::string_view bytes = std::string_view(more_bytes_).substr(pending.size());
  from_->encode_to(bytes, {.goes_on = goes_on}, back_);
  size_t place = pending.size(), first = 0;
  for (const Token token : back_) {
    if (from_->is_control(token)) break;
    std::string_view piece = from_->piece(token);
    const bool has_prefix = back_pieces_.empty() && !goes_on && from_->adds_space_prefix();
    if (has_prefix && piece.starts_with(' ')) piece.remove_prefix(1);
    place += piece.size();
    size_t end = first;
    while (end < more_begins_.size() && more_begins_[end] < place) ++end;
    back_pieces_.push_back({token, first, end});
    first = end;
  }
  return back_pieces_;
}

}  // namespace cairn::tokenize
