// WordPiece and unigram vocabularies, and Gemma 4's, whose tokens are all that tokenizer.json has.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/file.h"
#include "convert/tokenizer.h"

namespace cairn::convert {
namespace {

constexpr float kSameScore = -1000;
constexpr std::string_view kSpace = "\u2581";

constexpr auto kNormal = int32_t(PieceKind::normal), kUnknown = int32_t(PieceKind::unknown);
constexpr auto kControl = int32_t(PieceKind::control), kByte = int32_t(PieceKind::byte);
constexpr auto kUserDefined = int32_t(PieceKind::user_defined);

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Bytes from their base 64; nothing where a character is not of it.
std::optional<std::string> decode_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int bit_count = 0;
  for (const char c : text) {
    const int digit = digit_of(c);
    if (digit < 0) return std::nullopt;
    bits = (bits << 6 | uint32_t(digit)) & 0xffff;
    bit_count += 6;
    if (bit_count < 8) continue;
    bit_count -= 8;
    bytes += char(uint8_t(bits >> bit_count));
  }
  return bytes;
}

// The table of the first normalizer that has one.
const Json* find_charsmap(const Json& normalizer) {
  if (const Json* map = normalizer.find_set("precompiled_charsmap")) return map;
  const Json* list = normalizer.find("normalizers");
  if (list == nullptr) return nullptr;
  for (const Json& item : list->items()) {
    if (const Json* map = find_charsmap(item)) return map;
  }
  return nullptr;
}

std::string_view text_of(const Json& token) {
  return token.is_object() ? token.text_at("content").value_or("") : token.as_text().value_or("");
}

}  // namespace

// In GGUF what begins a word is marked, not what continues one.
Status Tokenizer::read_word_pieces() {
  CAIRN_TRY(read_vocabulary());
  CAIRN_TRY(add_from_tokenizer_json(true));
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (types_[id] == kControl) continue;
    std::string& text = tokens_[id];
    if (text.starts_with("##")) {
      text.erase(0, 2);
    } else {
      text.insert(0, kSpace);
    }
  }
  scores_.clear();
  model_ = "bert";
  pre_ = "bert-bge";  // All cut alike; readers do not look at it.
  return Ok{};
}

// Is it the unknown token, an end, a mask … by the name that tokenizer_config.json gives it?
bool Tokenizer::is_named_special(std::string_view text) const {
  for (const auto& [key, value] : files_.tokenizer_config.members()) {
    if (key.ends_with("_token") && !text_of(value).empty() && text_of(value) == text) return true;
    if (key != "additional_special_tokens" && key != "extra_special_tokens") continue;
    for (const Json& item : value.items()) {
      if (text_of(item) == text) return true;
    }
    for (const auto& [name, item] : value.members()) {
      if (text_of(item) == text) return true;
    }
  }
  return false;
}

Status Tokenizer::read_unigram(const Json& model) {
  const Json* vocabulary = model.find("vocab");
  if (vocabulary == nullptr || vocabulary->items().empty()) {
    return fail(ErrorCode::invalid_data, "tokenizer.json: expected a vocabulary, found none");
  }
  CAIRN_TRY(start(int64_t(vocabulary->items().size())));
  const Json* stated = model.find_set("unk_id");
  const int64_t unknown = stated == nullptr ? 3 : stated->as_integer().value_or(3);
  std::map<std::string_view, bool> added;
  if (const Json* list = files_.tokenizer.find_set("added_tokens")) {
    for (const Json& token : list->items()) added[text_of(token)] = true;
  }
  if (vocabulary->items().size() > tokens_.size()) {
    return fail(ErrorCode::invalid_data, "tokenizer.json: expected at most {} tokens, found {}",
                tokens_.size(), vocabulary->items().size());
  }
  for (size_t id = 0; id < vocabulary->items().size(); ++id) {
    const auto& row = vocabulary->items()[id].items();
    if (row.size() != 2 || !row[0].as_text() || !row[1].as_real()) {
      return fail(ErrorCode::invalid_data,
                  "tokenizer.json: token {}: expected a text and a score, found {}", id,
                  vocabulary->items()[id].describe());
    }
    tokens_[id] = *row[0].as_text();
    scores_[id] = float(*row[1].as_real());
    types_[id] = int64_t(id) == unknown          ? kUnknown
                 : is_named_special(tokens_[id]) ? kControl
                 : added.contains(tokens_[id])   ? kUserDefined
                                                 : kNormal;
  }
  const Json* normalizer = files_.tokenizer.find_set("normalizer");
  if (const Json* map = normalizer == nullptr ? nullptr : find_charsmap(*normalizer)) {
    const auto bytes = decode_base64(map->as_text().value_or("?"));
    if (!bytes) {
      return fail(ErrorCode::invalid_data,
                  "tokenizer.json: precompiled_charsmap: expected base 64, found {}",
                  map->describe());
    }
    normalizer_.charsmap = *bytes;
  }
  const auto flag = [&](std::string_view key) {
    const Json* value = files_.tokenizer_config.find_set(key);
    return value == nullptr || value->as_boolean().value_or(true);
  };
  normalizer_.adds_space = flag("add_prefix_space");
  normalizer_.removes_extra_spaces = flag("clean_up_tokenization_spaces");
  model_ = "t5";
  pre_ = "default";
  return Ok{};
}

// fairseq put its own four tokens in front and left the first three of the file out.
Result<bool> Tokenizer::read_unigram_file() {
  const std::string path =
      (std::filesystem::path(files_.folder) / "sentencepiece.bpe.model").string();
  Result<std::string> bytes = read_file(path, kModelBytesMax);
  if (!bytes && bytes.error().code == ErrorCode::not_found) return false;
  if (!bytes) return std::move(bytes).error();
  CAIRN_TRY(const std::vector<Piece> pieces, parse_sentencepiece(*bytes));
  CAIRN_TRY(normalizer_, parse_unigram_normalizer(*bytes));
  CAIRN_TRY(start(int64_t(pieces.size())));
  constexpr std::string_view kFirst[] = {"<s>", "<pad>", "</s>", "<unk>"};
  constexpr size_t kLeftOut = 3;
  for (size_t id = tokens_.size(); id-- > std::size(kFirst);) {
    const size_t piece = id - 1;
    const bool is_known = piece < pieces.size() && piece >= kLeftOut;
    tokens_[id] = is_known ? pieces[piece].text : tokens_[piece];
    if (!is_known) continue;
    scores_[id] = pieces[piece].score;
    const bool is_defined = pieces[piece].kind == PieceKind::user_defined;
    types_[id] = is_defined ? kNormal : int32_t(pieces[piece].kind);
  }
  for (size_t id = 0; id < std::min(tokens_.size(), std::size(kFirst)); ++id) {
    tokens_[id] = kFirst[id];
    scores_[id] = 0;
    types_[id] = kFirst[id] == "<unk>" ? kUnknown : kControl;
  }
  model_ = "t5";
  pre_ = "default";
  return true;
}

// No row is made up: the vocabulary, then added tokens that are not in it. What a chat is made of
// is shown, for it has to be read again.
Status Tokenizer::read_gemma4() {
  static constexpr std::string_view kShown[] = {
      "<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
      "<|tool_response>", "<tool_response|>", "<|\"|>"};
  const Json* vocabulary = files_.tokenizer.find("model")->find("vocab");
  const Json* added = files_.tokenizer.find_set("added_tokens");
  if (vocabulary == nullptr || vocabulary->members().empty()) {
    return fail(ErrorCode::invalid_data, "tokenizer.json: expected a vocabulary, found none");
  }
  std::map<int64_t, std::string> texts;
  for (const auto& [text, id] : vocabulary->members()) {
    const int64_t number = id.as_integer().value_or(-1);
    const auto [known, is_new] = texts.emplace(number, text);
    if (is_new) continue;
    return fail(ErrorCode::invalid_data,
                "tokenizer.json: id {}: expected one token, found {} and {}", number,
                known->second.substr(0, 40), text.substr(0, 40));
  }
  const auto base_count = int64_t(texts.size());
  for (size_t i = 0; added != nullptr && i < added->items().size(); ++i) {
    const Json* id = added->items()[i].find("id");
    texts.emplace(id == nullptr ? -1 : id->as_integer().value_or(-1), text_of(added->items()[i]));
  }
  const int64_t last = texts.rbegin()->first;
  if (texts.begin()->first != 0 || last + 1 != int64_t(texts.size()) || last >= kTokenCountMax) {
    return fail(ErrorCode::invalid_data,
                "tokenizer.json: expected ids from 0 to {}, found {} to {}", texts.size() - 1,
                texts.begin()->first, last);
  }
  for (const auto& [id, text] : texts) {
    const bool is_shown = std::find(std::begin(kShown), std::end(kShown), text) != std::end(kShown);
    const bool is_base = id < base_count;
    types_.push_back(is_shown                         ? kUserDefined
                     : is_base && is_byte_token(text) ? kByte
                     : is_named_special(text)         ? kControl
                     : is_base                        ? kNormal
                                                      : kUserDefined);
    tokens_.push_back(text);
    scores_.push_back(kSameScore);
  }
  CAIRN_TRY(read_merges());
  model_ = "gemma4";
  pre_.clear();
  return Ok{};
}

Status Tokenizer::add_type_count(KeyValues& out) const {
  CAIRN_TRY(const std::optional<int64_t> count, config_.count_if_set({"type_vocab_size"}));
  out.set("tokenizer.ggml.token_type_count", uint32_t(count.value_or(1)));
  return Ok{};
}

Status Tokenizer::add_normalizer(KeyValues& out) const {
  out.set("tokenizer.ggml.add_space_prefix", normalizer_.adds_space);
  CAIRN_TRY(add_type_count(out));
  out.set("tokenizer.ggml.remove_extra_whitespaces", normalizer_.removes_extra_spaces);
  if (normalizer_.charsmap.empty()) return Ok{};
  out.set("tokenizer.ggml.precompiled_charsmap",
          std::vector<uint8_t>(normalizer_.charsmap.begin(), normalizer_.charsmap.end()));
  return Ok{};
}

}  // namespace cairn::convert
