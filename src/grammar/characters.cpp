// Ranges of characters are cut where the length or a leading byte of their UTF-8 changes.
#include "grammar/characters.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::grammar {

namespace {

constexpr CharacterRange kSurrogates{0xD800, 0xDFFF};

size_t encode(char32_t character, std::array<uint8_t, 4>& bytes) {
  if (character < 0x80) {
    bytes[0] = uint8_t(character);
    return 1;
  }
  const size_t count = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  for (size_t i = count; --i > 0; character >>= 6) bytes[i] = uint8_t(0x80 | (character & 0x3F));
  bytes[0] = uint8_t((0xF00 >> count) | character);
  return count;
}

// Where a range has to be cut so that all of it has one length and, behind its first different
// byte, all continuation bytes: the last character of its first part.
std::optional<char32_t> cut_of(CharacterRange range) {
  for (const char32_t last : {char32_t(0x7F), char32_t(0x7FF), char32_t(0xFFFF)}) {
    if (range.first <= last && last < range.last) return last;
  }
  if (range.last < 0x80) return std::nullopt;
  for (int bits = 6; bits <= 18; bits += 6) {
    const char32_t low = (char32_t(1) << bits) - 1;
    if ((range.first & ~low) == (range.last & ~low)) continue;
    if ((range.first & low) != 0) return range.first | low;
    if ((range.last & low) != low) return (range.last & ~low) - 1;
  }
  return std::nullopt;
}

}  // namespace

CharacterSet::CharacterSet(std::initializer_list<CharacterRange> ranges) : ranges_(ranges) {}

CharacterSet CharacterSet::all() {
  return {{0, kCharacterMax}};
}

void CharacterSet::add(char32_t first, char32_t last) {
  ranges_.push_back({first, last});
}

void CharacterSet::add(const CharacterSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

void CharacterSet::remove(const CharacterSet& other) {
  CharacterSet rest = inverse();
  rest.add(other);
  *this = rest.inverse();
}

std::vector<CharacterRange> CharacterSet::ranges() const {
  std::vector<CharacterRange> sorted = ranges_;
  std::sort(sorted.begin(), sorted.end(),
            [](const CharacterRange& a, const CharacterRange& b) { return a.first < b.first; });
  std::vector<CharacterRange> merged;
  for (const CharacterRange& range : sorted) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

CharacterSet CharacterSet::inverse() const {
  CharacterSet result;
  char32_t next = 0;
  for (const CharacterRange& range : ranges()) {
    if (range.first > next) result.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= kCharacterMax) result.add(next, kCharacterMax);
  return result;
}

bool CharacterSet::contains(char32_t character) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const CharacterRange& range) {
    return range.first <= character && character <= range.last;
  });
}

void for_utf8_sequences(CharacterRange range, FunctionRef<void(std::span<const ByteRange>)> sink) {
  std::vector<CharacterRange> waiting;
  if (range.last > kSurrogates.last) {
    waiting.push_back({std::max<char32_t>(range.first, kSurrogates.last + 1), range.last});
  }
  if (range.first < kSurrogates.first) {
    waiting.push_back({range.first, std::min<char32_t>(range.last, kSurrogates.first - 1)});
  }
  while (!waiting.empty()) {
    const CharacterRange part = waiting.back();
    waiting.pop_back();
    if (const auto cut = cut_of(part)) {
      waiting.push_back({*cut + 1, part.last});
      waiting.push_back({part.first, *cut});
      continue;
    }
    std::array<uint8_t, 4> first{}, last{};
    const size_t count = encode(part.first, first);
    encode(part.last, last);
    std::array<ByteRange, 4> bytes{};
    for (size_t i = 0; i < count; ++i) bytes[i] = {first[i], last[i]};
    sink(std::span(bytes).first(count));
  }
}

std::optional<DecodedCharacter> decode_character(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto byte = [&](size_t i) { return uint8_t(text[i]); };
  if (byte(0) < 0x80) return DecodedCharacter{byte(0), 1};
  const size_t count = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < count) return std::nullopt;
  char32_t value = byte(0) & (0x7Fu >> count);
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  constexpr char32_t kSmallest[] = {0x80, 0x800, 0x10000};
  if (value < kSmallest[count - 2] || value > kCharacterMax) return std::nullopt;
  if (kSurrogates.first <= value && value <= kSurrogates.last) return std::nullopt;
  return DecodedCharacter{value, count};
}

void append_character(char32_t character, std::string& out) {
  DCHECK(character <= kCharacterMax);
  std::array<uint8_t, 4> bytes{};
  const size_t count = encode(character, bytes);
  out.append(reinterpret_cast<const char*>(bytes.data()), count);
}

}  // namespace cairn::grammar
