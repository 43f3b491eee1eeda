// Building the table: each merge is spelled out once and looked up as left, right and whole.
#include "tokenize/bpe_merges.h"

#include <bit>
#include <string>

#include "base/check.h"

namespace cairn::tokenize {
namespace {

// False where no token that text becomes has these characters.
bool append_bytes(std::string_view text, Vocabulary::Spelling spelling, std::string& out) {
  if (spelling != Vocabulary::Spelling::spaced) return append_spelled_bytes(text, out);
  append_unescaped(text, out);
  return true;
}

}  // namespace

BpeMerges BpeMerges::build(std::span<const std::string_view> merges, Vocabulary::Spelling spelling,
                           Vocabulary& vocabulary) {
  BpeMerges table;
  table.slots_.resize(std::bit_ceil(merges.size() * 3 / 2 + 2));
  std::string bytes;
  size_t unresolved_count = 0;
  size_t first_unresolved = 0;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    // The left part is never empty, and may itself be a space in vocabularies of raw text.
    const size_t space = merge.find(' ', 1);
    if (space != merge.npos) {
      bytes.clear();
      const bool is_left_spelled = append_bytes(merge.substr(0, space), spelling, bytes);
      const size_t left_bytes = bytes.size();
      // Merges of characters outside the alphabet of bytes are never reached.
      if (!is_left_spelled || !append_bytes(merge.substr(space + 1), spelling, bytes)) continue;
      const std::string_view whole = bytes;
      const auto token_of = [&](std::string_view part) {
        const int32_t word = vocabulary.find_word(part);
        if (word != kNoToken || part.size() != 1) return word;
        return vocabulary.byte_token(static_cast<unsigned char>(part[0]));
      };
      const int32_t left = token_of(whole.substr(0, left_bytes));
      const int32_t right = token_of(whole.substr(left_bytes));
      const int32_t joined = vocabulary.find_word(whole);
      if (left != kNoToken && right != kNoToken && joined != kNoToken) {
        table.insert(left, right, {uint32_t(rank), joined});
        continue;
      }
    }
    if (unresolved_count++ == 0) first_unresolved = rank;
  }
  if (unresolved_count > 0) {
    vocabulary.warn(fmt::format(
        "tokenizer.ggml.merges: {} of {} join what is not in the vocabulary, the first is {}: {}",
        unresolved_count, merges.size(), first_unresolved, merges[first_unresolved].substr(0, 64)));
  }
  return table;
}

void BpeMerges::insert(int32_t left, int32_t right, Joined joined) {
  const uint64_t wanted = key(left, right);
  const size_t mask = slots_.size() - 1;
  size_t at = mix(wanted ^ seed_) & mask;
  while (slots_[at].key != kFree) {
    if (slots_[at].key == wanted) return;  // Of equal merges the best rank counts.
    at = (at + 1) & mask;
  }
  slots_[at] = {wanted, joined};
}

}  // namespace cairn::tokenize
