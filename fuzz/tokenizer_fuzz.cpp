// A vocabulary and a text from the same bytes: build, encode in every way, and decode. The first
// line chooses the kind; further lines are tokens and merges; what follows an empty line is text.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tokenize/detokenizer.h"
#include "tokenize/pretokenizer.h"
#include "tokenize/tokenizer.h"

namespace cairn::tokenize {
namespace {

// The next line, without its line feed; takes it off the input.
std::string_view next_line(std::string_view& input) {
  const size_t end = std::min(input.find('\n'), input.size());
  const std::string_view line = input.substr(0, end);
  input.remove_prefix(std::min(end + 1, input.size()));
  return line;
}

// A line's first byte says what it is: a merge, a table of replacements, or a token with its type
// and score.
void read_line(std::string_view line, VocabularySource& source) {
  const auto head = static_cast<unsigned char>(line[0]);
  line.remove_prefix(1);
  if (head == 'm') {
    source.merges.push_back(line);
    return;
  }
  if (head == 'n') {
    source.precompiled_charsmap = line;
    return;
  }
  source.tokens.push_back(line);
  source.types.push_back(head % 9);
  source.scores.push_back(float(int(head) - 100));
}

VocabularySource read_source(std::string_view& input) {
  static constexpr std::string_view kModels[] = {"gpt2", "llama", "bert", "gemma4", "t5"};
  VocabularySource source;
  std::string_view head = next_line(input);
  const auto choose = [&]() -> unsigned {
    if (head.empty()) return 0;
    const auto byte = static_cast<unsigned char>(head[0]);
    head.remove_prefix(1);
    return byte;
  };
  source.model = kModels[choose() % std::size(kModels)];
  const auto rules = all_pretokenizers();
  source.pre = rules[choose() % rules.size()].name;
  if (const unsigned bos = choose()) source.bos = int64_t(bos) - 2;
  if (const unsigned eos = choose()) source.eos = int64_t(eos) - 2;
  if (const unsigned unk = choose()) source.unk = int64_t(unk) - 2;
  const unsigned flags = choose();
  if (flags & 1) source.add_bos = (flags & 2) != 0;
  if (flags & 4) source.add_eos = (flags & 8) != 0;
  if (flags & 16) source.add_space_prefix = (flags & 32) != 0;
  source.remove_extra_whitespaces = (flags & 3) == 2;
  if (flags & 64) source.name = "phi-3";
  for (std::string_view line = next_line(input); !line.empty(); line = next_line(input)) {
    read_line(line, source);
  }
  if (flags & 128) source.types.clear();
  return source;
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool add_special : {false, true}) {
    for (const bool parse_special : {false, true}) {
      const EncodeOptions options{.add_special = add_special, .parse_special = parse_special};
      for (const Token token : tokenizer.encode(text, options)) CHECK(tokenizer.holds(token));
      const size_t half = text.size() / 2;
      const TextPiece pieces[] = {{text.substr(0, half), true}, {text.substr(half), false}};
      const std::vector<Token> tokens = tokenizer.encode(pieces, options);
      std::string expected;
      for (const Token token : tokens) expected += tokenizer.piece(token);
      CHECK(decode(tokenizer, tokens, {.show_control = true}) == expected);
      decode(tokenizer, tokens, {.is_whole_text = true});
    }
  }
  // Nothing of a stranger's text becomes a control token, but what stands for the unknown.
  const TextPiece piece{text, false};
  for (const Token token : tokenizer.encode(std::span(&piece, 1), {.parse_special = true})) {
    CHECK(!tokenizer.is_control(token) || token == tokenizer.special_ids().unk);
  }
}

}  // namespace
}  // namespace cairn::tokenize

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto source = cairn::tokenize::read_source(input);
  auto tokenizer = cairn::tokenize::Tokenizer::build(source);
  if (tokenizer) cairn::tokenize::use(**tokenizer, input);
  return 0;
}
