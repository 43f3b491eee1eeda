// The pieces: bytes, pairs of letters, pairs of such pairs. Each merge joins two earlier pieces.
#include "synth/synth_vocabulary.h"

#include <span>
#include <string>
#include <vector>

namespace cairn::synth {

namespace {

constexpr int32_t kNormalToken = 1;
constexpr int32_t kControlToken = 3;

std::string utf8(uint32_t code_point) {
  if (code_point < 0x80) return {char(code_point)};
  return {char(0xc0 | (code_point >> 6)), char(0x80 | (code_point & 0x3f))};
}

// Byte-level vocabularies write a byte as a visible character: itself where it is one in Latin-1,
// else the next free code point from 256 on.
std::vector<std::string> byte_pieces() {
  std::vector<std::string> pieces;
  uint32_t next_free = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool visible =
        (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    pieces.push_back(utf8(visible ? byte : next_free++));
  }
  return pieces;
}

struct Pieces {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  size_t wanted;

  bool full() const { return tokens.size() >= wanted; }
  void join(const std::string& left, const std::string& right) {
    if (full()) return;
    merges.push_back(left + " " + right);
    tokens.push_back(left + right);
  }
};

void add_pairs(Pieces& pieces, const std::vector<std::string>& letters) {
  const size_t first_pair = pieces.tokens.size();
  for (const std::string& left : letters) {
    for (const std::string& right : letters) {
      // A blank only begins a piece, as in real vocabularies.
      if (&right != &letters.front()) pieces.join(left, right);
    }
  }
  const std::vector<std::string> pairs(pieces.tokens.begin() + ptrdiff_t(first_pair),
                                       pieces.tokens.end());
  for (const std::string& left : pairs) {
    for (const std::string& right : pairs) {
      if (pieces.full()) return;
      const bool starts_with_blank = right.starts_with(letters.front());
      if (!starts_with_blank) pieces.join(left, right);
    }
  }
}

}  // namespace

void add_vocabulary(gguf::Writer& writer, int32_t token_count) {
  const std::vector<std::string> bytes = byte_pieces();
  Pieces pieces{.tokens = {"<|begin|>", "<|end|>"}, .merges = {}, .wanted = size_t(token_count)};
  pieces.tokens.insert(pieces.tokens.end(), bytes.begin(), bytes.end());
  std::vector<std::string> letters{bytes[' ']};
  for (char letter = 'a'; letter <= 'z'; ++letter) letters.push_back(bytes[size_t(letter)]);
  add_pairs(pieces, letters);
  CHECK(pieces.full());
  std::vector<int32_t> types(pieces.tokens.size(), kNormalToken);
  types[0] = types[1] = kControlToken;
  writer.add("tokenizer.ggml.model", "gpt2");
  writer.add("tokenizer.ggml.pre", "gpt-2");
  writer.add_array("tokenizer.ggml.tokens", std::span<const std::string>(pieces.tokens));
  writer.add_array("tokenizer.ggml.token_type", std::span<const int32_t>(types));
  writer.add_array("tokenizer.ggml.merges", std::span<const std::string>(pieces.merges));
  writer.add("tokenizer.ggml.bos_token_id", uint32_t(0));
  writer.add("tokenizer.ggml.eos_token_id", uint32_t(1));
  writer.add("tokenizer.ggml.add_bos_token", false);
}

}  // namespace cairn::synth
