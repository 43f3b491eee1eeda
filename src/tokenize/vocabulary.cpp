// Reading and checking a vocabulary: counts agree, byte tokens are exactly <0x00> to <0xFF>, each
// once, and special ids lie inside the vocabulary.
#include "tokenize/vocabulary.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "unicode/unicode.h"

namespace cairn::tokenize {
namespace {

// No honest special token comes near; it bounds the work at a place of a text.
constexpr size_t kSpecialBytesMax = 4096;
// Nor an ordinary one: those of known vocabularies have at most some 256. Some encoders walk as
// deep as the longest token from each place of a text.
constexpr size_t kOrdinaryBytesMax = 1024;
constexpr std::string_view kLowerBlock = "\xE2\x96\x81";  // U+2581, which stands for a space.

// Tokens that end an answer, whatever the file calls them: what the templates of the model families
// put after an assistant's turn, a call of a tool or a document.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "</s>",
    "<eos>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<end_of_utterance>",
    "<turn|>",
    "<|tool_response>",
    "[e~[",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
};

constexpr std::string_view kEndOfTurnTexts[] = {
    "<|eot_id|>",    "<|im_end|>",      "<|end|>", "<end_of_turn>", "<turn|>",
    "<|endoftext|>", "<|end_of_text|>", "<EOT>",   "[EOT]",         "<end_of_utterance>",
};

// The value of a digit in a byte token: capitals only, no sign, no space.
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int any_hex_digit(char c) {
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : hex_digit(c);
}

// The byte that `<0xHH>` names, or -1.
int named_byte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const int high = hex_digit(text[3]);
  const int low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool is_end_text(std::string_view text) {
  if (text.size() < 4 || (text[0] != '<' && text[0] != '[' && text[0] != '_')) return false;
  return std::find(std::begin(kEndTexts), std::end(kEndTexts), text) != std::end(kEndTexts);
}

bool is_special(TokenType type) {
  return type == TokenType::control || type == TokenType::unknown ||
         type == TokenType::user_defined;
}

// Files are strangers': what an error quotes of them is cut to a line's length.
std::string_view quoted(std::string_view text) {
  return text.substr(0, 64);
}

}  // namespace

uint64_t hash_seed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return uint64_t(device()) << 32 | device();
  }();
  return seed;
}

bool append_spelled_bytes(std::string_view spelled, std::string& out) {
  const size_t before = out.size();
  while (!spelled.empty()) {
    const unicode::Character character = unicode::first_character(spelled);
    const int byte = character.length == 0 ? -1 : unicode::byte_of_symbol(character.code);
    if (byte < 0) {
      out.resize(before);
      return false;
    }
    out += char(byte);
    spelled.remove_prefix(character.length);
  }
  return true;
}

bool append_escaped_bytes(std::string_view escaped, std::string& out) {
  constexpr std::string_view kEscapes = "\\'\"tnr", kMeanings = "\\'\"\t\n\r";
  const size_t before = out.size();
  for (size_t at = 0; at < escaped.size(); ++at) {
    if (escaped[at] != '\\') {
      out += escaped[at];
      continue;
    }
    const char kind = ++at < escaped.size() ? escaped[at] : '\0';
    const size_t known = kEscapes.find(kind);
    const int high = kind == 'x' && at + 2 < escaped.size() ? any_hex_digit(escaped[at + 1]) : -1;
    const int low = high < 0 ? -1 : any_hex_digit(escaped[at + 2]);
    if (known == kEscapes.npos && low < 0) {
      out.resize(before);
      return false;
    }
    if (known == kEscapes.npos) at += 2;
    out += known == kEscapes.npos ? char(high * 16 + low) : kMeanings[known];
  }
  return true;
}

void append_unescaped(std::string_view spaced, std::string& out) {
  for (size_t at = spaced.find(kLowerBlock); at != spaced.npos; at = spaced.find(kLowerBlock)) {
    out.append(spaced.substr(0, at)).push_back(' ');
    spaced.remove_prefix(at + kLowerBlock.size());
  }
  out.append(spaced);
}

Result<Vocabulary> Vocabulary::build(const VocabularySource& source, Spelling spelling) {
  Vocabulary vocabulary;
  CAIRN_TRY(vocabulary.check_counts(source));
  CAIRN_TRY(vocabulary.read_types(source));
  vocabulary.scores_ = source.scores;
  CAIRN_TRY(vocabulary.read_pieces(source, spelling));
  CAIRN_TRY(vocabulary.check_lengths());
  CAIRN_TRY(vocabulary.read_byte_tokens(source, spelling));
  CAIRN_TRY(vocabulary.read_special_ids(source));
  vocabulary.find_ends();
  vocabulary.index_specials();
  vocabulary.index_words();
  return vocabulary;
}

Status Vocabulary::check_counts(const VocabularySource& source) const {
  const size_t count = source.tokens.size();
  if (count == 0 || count > size_t(std::numeric_limits<int32_t>::max())) {
    return fail(ErrorCode::invalid_data, "tokenizer.ggml.tokens: expected 1 to {} tokens, found {}",
                std::numeric_limits<int32_t>::max(), count);
  }
  if (!source.types.empty() && source.types.size() != count) {
    return fail(ErrorCode::invalid_data,
                "tokenizer.ggml.token_type: expected {} entries, one a token, found {}", count,
                source.types.size());
  }
  if (!source.scores.empty() && source.scores.size() != count) {
    return fail(ErrorCode::invalid_data,
                "tokenizer.ggml.scores: expected {} entries, one a token, found {}", count,
                source.scores.size());
  }
  return Ok{};
}

Status Vocabulary::read_types(const VocabularySource& source) {
  types_.assign(source.tokens.size(), TokenType::normal);
  size_t odd_count = 0;
  for (size_t id = 0; id < source.types.size(); ++id) {
    const int32_t type = source.types[id];
    const bool is_known = type >= 0 && type <= int32_t(TokenType::byte);
    types_[id] = is_known ? TokenType(type) : TokenType::undefined;
    odd_count += !is_known;
  }
  if (odd_count > 0) {
    warn(fmt::format("tokenizer.ggml.token_type: expected types 0 to 6, found {} others",
                     odd_count));
  }
  return Ok{};
}

Status Vocabulary::read_pieces(const VocabularySource& source, Spelling spelling) {
  uint64_t total = 0;
  for (const std::string_view token : source.tokens) total += token.size();
  if (total > std::numeric_limits<uint32_t>::max()) {
    return fail(ErrorCode::invalid_data,
                "tokenizer.ggml.tokens: expected below 4 GiB of text, found {} bytes", total);
  }
  bytes_.reserve(size_t(total));
  begins_.reserve(source.tokens.size() + 1);
  outside_.assign(source.tokens.size(), false);
  size_t empty_count = 0;
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    begins_.push_back(uint32_t(bytes_.size()));
    const std::string_view text = source.tokens[id];
    empty_count += text.empty();
    // Types may be absent; byte tokens are then known by their form.
    if (source.types.empty() && spelling == Spelling::spaced && named_byte(text) >= 0) {
      types_[id] = TokenType::byte;
    }
    if (types_[id] == TokenType::byte) {
      const int byte = named_byte(text);
      if (byte < 0) {
        return fail(
            ErrorCode::invalid_data,
            "tokenizer.ggml.tokens: token {} is a byte: expected <0x00> to <0xFF>, found {}", id,
            quoted(text));
      }
      bytes_ += char(byte);
    } else if (is_special(types_[id]) || spelling == Spelling::plain) {
      bytes_ += text;
    } else if (spelling == Spelling::spaced) {
      append_unescaped(text, bytes_);
    } else if (spelling == Spelling::escaped) {
      if (append_escaped_bytes(text, bytes_)) continue;
      return fail(ErrorCode::invalid_data,
                  "tokenizer.ggml.tokens: token {}: expected bytes as Python writes them, found {}",
                  id, quoted(text));
    } else if (!append_spelled_bytes(text, bytes_)) {
      bytes_ += text;
      outside_[id] = true;
    }
  }
  begins_.push_back(uint32_t(bytes_.size()));
  if (empty_count > 0) {
    warn(fmt::format("tokenizer.ggml.tokens: {} tokens are empty and never used", empty_count));
  }
  return Ok{};
}

Status Vocabulary::check_lengths() const {
  for (size_t id = 0; id < size(); ++id) {
    const size_t most = is_special(types_[id]) ? kSpecialBytesMax : kOrdinaryBytesMax;
    if (piece(Token(id)).size() <= most) continue;
    return fail(ErrorCode::invalid_data,
                "tokenizer.ggml.tokens: {}token {}: expected at most {} bytes, found {}",
                is_special(types_[id]) ? "special " : "", id, most, piece(Token(id)).size());
  }
  return Ok{};
}

Status Vocabulary::read_byte_tokens(const VocabularySource& source, Spelling spelling) {
  byte_tokens_.fill(kNoToken);
  for (size_t id = 0; id < size(); ++id) {
    const bool is_byte = types_[id] == TokenType::byte;
    const bool is_spelled = !is_special(types_[id]) && !outside_[id] &&
                            ((spelling == Spelling::byte_level && source.tokens[id].size() <= 2) ||
                             spelling == Spelling::escaped);
    if (!is_byte && (!is_spelled || piece(Token(id)).size() != 1)) continue;
    int32_t& known = byte_tokens_[static_cast<unsigned char>(piece(Token(id))[0])];
    if (known == kNoToken) {
      known = int32_t(id);
    } else if (is_byte) {
      return fail(ErrorCode::invalid_data,
                  "tokenizer.ggml.tokens: byte token {}: expected once, found as tokens {} and {}",
                  source.tokens[id], known, id);
    }
  }
  return Ok{};
}

Status Vocabulary::read_special_ids(const VocabularySource& source) {
  struct Entry {
    std::string_view key;
    const std::optional<int64_t>& id;
    std::optional<Token>& token;
  };
  SpecialTokens& ids = special_ids_;
  const Entry entries[] = {
      {"bos_token_id", source.bos, ids.bos},
      {"eos_token_id", source.eos, ids.eos},
      {"eot_token_id", source.eot, ids.eot},
      {"eom_token_id", source.eom, ids.eom},
      {"unknown_token_id", source.unk, ids.unk},
      {"seperator_token_id", source.sep, ids.sep},
      {"padding_token_id", source.pad, ids.pad},
      {"cls_token_id", source.cls, ids.cls},
      {"mask_token_id", source.mask, ids.mask},
      {"fim_pre_token_id", source.fim_prefix, ids.fim_prefix},
      {"fim_suf_token_id", source.fim_suffix, ids.fim_suffix},
      {"fim_mid_token_id", source.fim_middle, ids.fim_middle},
      {"fim_pad_token_id", source.fim_pad, ids.fim_pad},
      {"fim_rep_token_id", source.fim_repository, ids.fim_repository},
      {"fim_sep_token_id", source.fim_separator, ids.fim_separator},
  };
  for (const Entry& entry : entries) {
    if (!entry.id) continue;
    if (*entry.id < 0 || *entry.id >= int64_t(size())) {
      // Honest files have been seen with such padding; nothing here ever emits those.
      const bool is_unused = entry.key == "padding_token_id" || entry.key == "mask_token_id";
      if (is_unused) {
        warn(fmt::format("tokenizer.ggml.{}: expected an id below {}, found {}: not used",
                         entry.key, size(), *entry.id));
        continue;
      }
      return fail(ErrorCode::invalid_data, "tokenizer.ggml.{}: expected an id below {}, found {}",
                  entry.key, size(), *entry.id);
    }
    entry.token = Token(*entry.id);
  }
  return Ok{};
}

bool Vocabulary::is_control(Token token) const {
  return type(token) == TokenType::control || type(token) == TokenType::unknown;
}

void Vocabulary::mark_end(Token token) {
  const auto id = size_t(index_of(token));
  ends_[id] = true;
  types_[id] = TokenType::control;
}

void Vocabulary::find_ends() {
  ends_.assign(size(), false);
  bool has_return = false, has_call = false, has_flush = false, has_tool_response = false;
  std::optional<Token> end, sentence_end;
  for (size_t id = 0; id < size(); ++id) {
    const std::string_view text = piece(Token(id));
    if (!is_end_text(text)) continue;
    has_return |= text == "<|return|>";
    has_call |= text == "<|call|>" || text == "<|calls|>";
    has_flush |= text == "<|flush|>";
    has_tool_response |= text == "<|tool_response>";
    if (text == "<|end|>") end = Token(id);
    if (text == "</s>") sentence_end = Token(id);
    const bool is_turn = std::find(std::begin(kEndOfTurnTexts), std::end(kEndOfTurnTexts), text) !=
                         std::end(kEndOfTurnTexts);
    if (is_turn && !special_ids_.eot) special_ids_.eot = Token(id);
    if (text == "<|eom_id|>" && !special_ids_.eom) special_ids_.eom = Token(id);
  }
  for (size_t id = 0; id < size(); ++id) {
    // Where <|end|> ends a message of several and others the answer (harmony, Solar), it is no end;
    // where </s> is the HTML tag of Gemma 4's vocabulary, neither.
    const bool is_inner = (end == Token(id) && has_call && (has_return || has_flush)) ||
                          (sentence_end == Token(id) && has_tool_response);
    if (!is_inner && is_end_text(piece(Token(id)))) mark_end(Token(id));
  }
  for (const auto& id : {special_ids_.eos, special_ids_.eom, special_ids_.eot}) {
    const bool is_inner = id && id == end && has_call && (has_return || has_flush);
    if (id && !is_inner) ends_[size_t(index_of(*id))] = true;
  }
}

void Vocabulary::index_specials() {
  for (size_t id = 0; id < size(); ++id) {
    if (is_special(types_[id]) && !piece(Token(id)).empty()) specials_.push_back(Token(id));
  }
}

void Vocabulary::index_words() {
  words_.reserve(size());
  size_t twin_count = 0;
  // Two rounds: a user-defined token is ordinary text too, but a normal one with the same bytes
  // goes first.
  for (const bool is_second : {false, true}) {
    for (size_t id = 0; id < size(); ++id) {
      const TokenType type = types_[id];
      const std::string_view bytes = piece(Token(id));
      if (bytes.empty() || is_control(Token(id)) || type == TokenType::byte) continue;
      if (outside_[id]) continue;
      if ((type == TokenType::user_defined) != is_second) continue;
      const bool is_first = words_.insert(bytes, int32_t(id), *this);
      twin_count += !is_first && !is_second;
    }
  }
  if (twin_count > 0) {
    warn(fmt::format("tokenizer.ggml.tokens: {} tokens repeat another's text and are never used",
                     twin_count));
  }
}

std::optional<Token> Vocabulary::find(std::string_view bytes) const {
  for (const Token token : specials_) {
    if (piece(token) == bytes) return token;
  }
  const int32_t word = find_word(bytes);
  if (word != kNoToken) return Token(word);
  const int32_t byte =
      bytes.size() == 1 ? byte_token(static_cast<unsigned char>(bytes[0])) : kNoToken;
  return byte == kNoToken ? std::nullopt : std::optional(Token(byte));
}

}  // namespace cairn::tokenize
