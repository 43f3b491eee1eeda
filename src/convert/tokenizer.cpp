// Three ways to a vocabulary. What is common to them: ids without a token are [PAD…], unused; a
// later file may replace what an earlier one said of an id.
#include "convert/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/file.h"
#include "convert/pretokenizer_name.h"
#include "convert/sentencepiece.h"

namespace cairn::convert {
namespace {

constexpr float kPadScore = -10000, kAddedScore = -1000;
constexpr std::string_view kSpace = "\u2581";

constexpr auto kNormal = int32_t(PieceKind::normal), kControl = int32_t(PieceKind::control);
constexpr auto kUserDefined = int32_t(PieceKind::user_defined);
constexpr auto kUnused = int32_t(PieceKind::unused), kByte = int32_t(PieceKind::byte);

// Some models do not mark tokens as special that are.
bool looks_special(std::string_view text) {
  static constexpr std::string_view kOthers[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
  if (std::find(std::begin(kOthers), std::end(kOthers), text) != std::end(kOthers)) return true;
  return (text.starts_with("<|") && text.ends_with("|>")) ||
         (text.starts_with("<｜") && text.ends_with("｜>")) ||
         (text.starts_with("<unused") && text.ends_with(">"));
}

std::string with_spaces(std::string_view text) {
  std::string spaced;
  for (size_t at = text.find(kSpace); at != text.npos; at = text.find(kSpace)) {
    spaced += text.substr(0, at);
    spaced += ' ';
    text.remove_prefix(at + kSpace.size());
  }
  return spaced += text;
}

// A file that may be missing.
Result<Json> read_if_there(const std::filesystem::path& path) {
  Result<Json> json = read_json_file(path.string());
  if (!json && json.error().code == ErrorCode::not_found) return Json();
  return json;
}

// Within a merge a space would end its first half; the alphabet of bytes has a letter for it.
std::string merge_part(std::string_view part) {
  std::string text;
  for (const char c : part) {
    if (c == ' ') {
      text += "\u0120";
    } else {
      text += c;
    }
  }
  return text;
}

// Does any step of a normalizer or pre-tokenizer put a space before the text?
bool prepends(const Json& step) {
  const std::string_view type = step.text_at("type").value_or("");
  if (type == "Prepend") return true;
  if (type == "Metaspace") {
    const auto scheme = step.text_at("prepend_scheme");
    if (scheme) return *scheme != "never";
    const Json* flag = step.find("add_prefix_space");
    return flag == nullptr || flag->as_boolean().value_or(true);
  }
  for (const std::string_view list : {"normalizers", "pretokenizers"}) {
    const Json* steps = step.find(list);
    if (steps == nullptr) continue;
    for (const Json& inner : steps->items()) {
      if (prepends(inner)) return true;
    }
  }
  return false;
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const std::string& folder, const Config& config,
                                  const Family& family) {
  Tokenizer tokenizer(config, family);
  CAIRN_TRY(tokenizer.read_files(folder));
  const TokenizerFiles& files = tokenizer.files_;
  const bool is_phi4 = family.token_rules == SpecialTokenRules::phi3 &&
                       files.tokenizer_config.text_at("tokenizer_class") == "GPT2Tokenizer";
  if (family.vocabulary == VocabularyFile::sentencepiece_first && !is_phi4) {
    const std::string path = (std::filesystem::path(folder) / "tokenizer.model").string();
    Result<std::string> bytes = read_file(path, kModelBytesMax);
    if (bytes) {
      Status status = tokenizer.read_sentencepiece(*bytes);
      if (status) return tokenizer;
      return fail(status.error().code, "{}: {}", path, status.error().message);
    }
    if (bytes.error().code != ErrorCode::not_found) return std::move(bytes).error();
  }
  if (family.vocabulary == VocabularyFile::xlm_roberta) {
    CAIRN_TRY(const bool is_there, tokenizer.read_unigram_file());
    if (is_there) return tokenizer;
  }
  const Json* model = files.tokenizer.find("model");
  if (model == nullptr) {
    return fail(ErrorCode::not_found, "{}: expected tokenizer.json with a model, found none",
                folder);
  }
  CAIRN_TRY(tokenizer.read_json_model(*model));
  return tokenizer;
}

Status Tokenizer::read_json_model(const Json& model) {
  const std::string_view type = model.text_at("type").value_or("none");
  if (type == "WordPiece") return read_word_pieces();
  if (type == "Unigram") return read_unigram(model);
  if (type != "BPE") {
    return fail(ErrorCode::unsupported,
                "tokenizer.json: expected a BPE, WordPiece or Unigram model, found {}", type);
  }
  CAIRN_TRY(check_merges());
  if (family_.vocabulary == VocabularyFile::gemma4) return read_gemma4();
  return model.is_true_at("byte_fallback") ? read_spaced() : read_byte_level();
}

Status Tokenizer::read_files(const std::string& folder) {
  const std::filesystem::path path = folder;
  files_.folder = folder;
  CAIRN_TRY(files_.tokenizer, read_if_there(path / "tokenizer.json"));
  CAIRN_TRY(files_.tokenizer_config, read_if_there(path / "tokenizer_config.json"));
  CAIRN_TRY(files_.config, read_if_there(path / "config.json"));
  CAIRN_TRY(added_tokens_, read_if_there(path / "added_tokens.json"));
  return Ok{};
}

// All ids as unused; `count` where config.json does not say how many there are.
Status Tokenizer::start(int64_t count) {
  CAIRN_TRY(const std::optional<int64_t> stated, config_.count_if_set({"vocab_size"}));
  const int64_t multiple = family_.vocabulary_multiple;
  int64_t size = stated.value_or(count);
  if (family_.vocabulary == VocabularyFile::xlm_roberta) size = std::max(size, count);
  size = (size + multiple - 1) / multiple * multiple;
  if (size < 1 || size > kTokenCountMax) {
    return fail(ErrorCode::invalid_data, "vocab_size: expected 1 to {} tokens, found {}",
                kTokenCountMax, size);
  }
  for (int64_t id = 0; id < size; ++id) tokens_.push_back(fmt::format("[PAD{}]", id));
  scores_.assign(size_t(size), kPadScore);
  types_.assign(size_t(size), kUnused);
  return Ok{};
}

// A token that was added to the vocabulary; looks_count: also what looks special is.
Status Tokenizer::set_added(int64_t id, std::string text, bool is_special, bool looks_count) {
  if (id < 0) {
    return fail(ErrorCode::invalid_data, "added token {}: expected an id, found {}", text, id);
  }
  if (id >= token_count()) return Ok{};  // Models have rows for the ids below only.
  const bool is_control = is_special || (looks_count && looks_special(text));
  types_[size_t(id)] = is_control ? kControl : kUserDefined;
  tokens_[size_t(id)] = is_control || !looks_count ? std::move(text) : with_spaces(text);
  scores_[size_t(id)] = kAddedScore;
  return Ok{};
}

Status Tokenizer::add_from_tokenizer_config() {
  const Json* added = files_.tokenizer_config.find_set("added_tokens_decoder");
  if (added == nullptr) return Ok{};
  for (const auto& [key, value] : added->members()) {
    const bool is_number =
        !key.empty() && key.size() < 10 &&
        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    const auto text = value.text_at("content");
    if (!is_number || !text) {
      return fail(ErrorCode::invalid_data,
                  "added_tokens_decoder: expected an id and a token, "
                  "found {}",
                  key.substr(0, 40));
    }
    CAIRN_TRY(set_added(std::stoll(key), std::string(*text), value.is_true_at("special"),
                        !lists_twice()));
  }
  return Ok{};
}

Status Tokenizer::add_from_tokenizer_json(bool looks_count) {
  const Json* added = files_.tokenizer.find_set("added_tokens");
  if (added == nullptr) return Ok{};
  for (const Json& token : added->items()) {
    const Json* id = token.find("id");
    const auto text = token.text_at("content");
    if (id == nullptr || !id->as_integer() || !text) {
      return fail(ErrorCode::invalid_data, "added_tokens: expected an id and a token, found {}",
                  token.describe());
    }
    CAIRN_TRY(
        set_added(*id->as_integer(), std::string(*text), token.is_true_at("special"), looks_count));
  }
  return Ok{};
}

Status Tokenizer::read_sentencepiece(const std::string& bytes) {
  CAIRN_TRY(const std::vector<Piece> pieces, parse_sentencepiece(bytes));
  CAIRN_TRY(start(int64_t(pieces.size())));
  const size_t count = std::min(pieces.size(), tokens_.size());
  for (size_t id = 0; id < count; ++id) {
    tokens_[id] = pieces[id].text;
    scores_[id] = pieces[id].score;
    // Those that a user defined are ordinary here; which are taken whole, other files say.
    const bool is_defined = pieces[id].kind == PieceKind::user_defined;
    types_[id] = is_defined ? kNormal : int32_t(pieces[id].kind);
  }
  if (family_.token_rules == SpecialTokenRules::internlm) {
    CAIRN_TRY(prefix_, sentencepiece_prepends_space(bytes));
    for (size_t id = 0; id < count; ++id) {
      if (tokens_[id].starts_with("[UNUSED")) types_[id] = kUnused;
    }
  }
  for (const auto& [text, id] : added_tokens_.members()) {
    const int64_t number = id.as_integer().value_or(-1);
    if (number < 0 || number >= token_count()) continue;
    tokens_[size_t(number)] = text;
    scores_[size_t(number)] = kAddedScore;
    types_[size_t(number)] = kUserDefined;
  }
  CAIRN_TRY(add_from_tokenizer_config());
  if (lists_twice()) CAIRN_TRY(add_from_tokenizer_json(false));
  model_ = "llama";
  pre_ = "default";
  return Ok{};
}

// tokenizer.json's own vocabulary: ids by token.
Status Tokenizer::read_vocabulary() {
  const Json* vocabulary = files_.tokenizer.find("model")->find("vocab");
  if (vocabulary == nullptr || !vocabulary->is_object()) {
    return fail(ErrorCode::invalid_data, "tokenizer.json: expected a vocabulary, found none");
  }
  int64_t count = int64_t(vocabulary->members().size());
  if (const Json* added = files_.tokenizer.find_set("added_tokens")) {
    for (const Json& token : added->items()) {
      const Json* id = token.find("id");
      // start() refuses what is cut here.
      const int64_t number = id == nullptr ? -1 : id->as_integer().value_or(-1);
      count = std::max(count, std::min(number, kTokenCountMax) + 1);
    }
  }
  CAIRN_TRY(start(count));
  for (const auto& [text, value] : vocabulary->members()) {
    const int64_t id = value.as_integer().value_or(-1);
    if (id < 0 || id >= token_count()) {
      return fail(ErrorCode::invalid_data,
                  "tokenizer.json: token {}: expected an id below {}, "
                  "found {}",
                  text.substr(0, 40), token_count(), value.describe());
    }
    if (types_[size_t(id)] == kNormal) {
      return fail(ErrorCode::invalid_data,
                  "tokenizer.json: id {}: expected one token, found {} and {}", id,
                  tokens_[size_t(id)].substr(0, 40), text.substr(0, 40));
    }
    tokens_[size_t(id)] = text;
    types_[size_t(id)] = kNormal;
  }
  return Ok{};
}

// Two parts with a space between, or a list of two.
Status Tokenizer::check_merges() const {
  const Json* merges = files_.tokenizer.find("model")->find("merges");
  if (merges == nullptr) return Ok{};
  for (size_t i = 0; i < merges->items().size(); ++i) {
    const Json& merge = merges->items()[i];
    const auto text = merge.as_text();
    const size_t space = text ? text->find(' ') : std::string_view::npos;
    const auto& pair = merge.items();
    const bool is_line = text && space != text->npos && space > 0 && space + 1 < text->size() &&
                         text->find(' ', space + 1) == text->npos;
    const bool is_pair = pair.size() == 2 && !pair[0].as_text().value_or("").empty() &&
                         !pair[1].as_text().value_or("").empty();
    if (is_line || is_pair) continue;
    return fail(ErrorCode::invalid_data, "tokenizer.json: merge {}: expected two parts, found {}",
                i, merge.describe());
  }
  return Ok{};
}

Status Tokenizer::read_merges() {
  const Json* merges = files_.tokenizer.find("model")->find("merges");
  if (merges == nullptr) return Ok{};
  for (const Json& merge : merges->items()) {
    if (const auto text = merge.as_text()) {
      merges_.emplace_back(*text);
      continue;
    }
    const auto& pair = merge.items();
    merges_.push_back(merge_part(*pair[0].as_text()) + " " + merge_part(*pair[1].as_text()));
  }
  return Ok{};
}

Status Tokenizer::read_byte_level() {
  CAIRN_TRY(const std::string_view pre, pretokenizer_name(files_.tokenizer, family_));
  CAIRN_TRY(read_vocabulary());
  CAIRN_TRY(read_merges());
  CAIRN_TRY(add_from_tokenizer_json(true));
  scores_.clear();
  model_ = "gpt2";
  pre_ = pre;
  return Ok{};
}

// SentencePiece joins what has the best score. With the place of its first merge as a token's
// score, that is the order of the merges.
void Tokenizer::score_by_merges() {
  std::map<std::string_view, float> scores;
  const Json* merges = files_.tokenizer.find("model")->find("merges");
  std::vector<std::string> joined;
  if (merges != nullptr) {
    for (const Json& merge : merges->items()) {
      std::string text;
      if (const auto whole = merge.as_text()) {
        const size_t space = whole->find(' ');
        text = *whole;
        if (space != whole->npos) text.erase(space, 1);
      } else if (merge.items().size() == 2) {
        for (const Json& part : merge.items()) text += part.as_text().value_or("");
      }
      joined.push_back(std::move(text));
    }
  }
  for (size_t rank = 0; rank < joined.size(); ++rank) scores.emplace(joined[rank], -float(rank));
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (is_byte_token(tokens_[id])) types_[id] = kByte;
    const auto found = scores.find(tokens_[id]);
    if (types_[id] == kNormal) {
      scores_[id] = found == scores.end() ? -float(joined.size()) : found->second;
    } else if (types_[id] == kByte) {
      scores_[id] = kAddedScore;
    }
  }
}

Status Tokenizer::read_spaced() {
  CAIRN_TRY(read_vocabulary());
  score_by_merges();
  is_spaced_json_ = true;
  CAIRN_TRY(add_from_tokenizer_json(true));
  model_ = "llama";
  pre_ = "default";
  return Ok{};
}

bool Tokenizer::prepends_space() const {
  for (const std::string_view key : {"normalizer", "pre_tokenizer"}) {
    const Json* step = files_.tokenizer.find_set(key);
    if (step != nullptr && prepends(*step)) return true;
  }
  return false;
}

Status Tokenizer::add_to(KeyValues& out) const {
  const bool is_llama = family_.token_rules == SpecialTokenRules::llama;
  const bool is_gemma = family_.token_rules == SpecialTokenRules::gemma ||
                        family_.token_rules == SpecialTokenRules::gemma2;
  const Json* prefix = files_.tokenizer_config.find_set("add_prefix_space");
  if (is_llama && prefix != nullptr && prefix->as_boolean()) {
    out.set("tokenizer.ggml.add_space_prefix", *prefix->as_boolean());
  }
  for (const std::string_view end : {"bos", "eos", "sep"}) {
    if (family_.adds_ends) out.set(fmt::format("tokenizer.ggml.add_{}_token", end), true);
  }
  if (model_ == "bert") CAIRN_TRY(add_type_count(out));
  out.set("tokenizer.ggml.model", model_);
  if (!pre_.empty()) out.set("tokenizer.ggml.pre", pre_);
  out.set("tokenizer.ggml.tokens", tokens_);
  if (!scores_.empty()) out.set("tokenizer.ggml.scores", scores_);
  out.set("tokenizer.ggml.token_type", types_);
  if (model_ == "t5") CAIRN_TRY(add_normalizer(out));
  if (!merges_.empty()) out.set("tokenizer.ggml.merges", merges_);
  if (prefix_) out.set("tokenizer.ggml.add_space_prefix", *prefix_);
  CAIRN_TRY(add_special_tokens(files_, token_count(), family_.roles, out));
  // Models for code of these two families end a turn with a token that no file names.
  if (family_.token_rules == SpecialTokenRules::gemma && token_count() > 107) {
    out.set("tokenizer.ggml.eot_token_id", uint32_t(107));
  }
  if (is_llama && token_count() == 32016) {
    out.set("tokenizer.ggml.eot_token_id", uint32_t(32010));
  }
  if (is_llama && token_count() == 49152) out.set("tokenizer.ggml.add_bos_token", false);
  if (family_.never_adds_space && is_spaced_json_) {
    out.set("tokenizer.ggml.add_space_prefix", false);
  }
  const bool is_unsaid = is_spaced_json_ && out.find("tokenizer.ggml.add_space_prefix") == nullptr;
  if ((is_gemma && model_ == "llama") || (is_unsaid && !prepends_space())) {
    out.set("tokenizer.ggml.add_space_prefix", false);
  }
  if (family_.tokens != nullptr) family_.tokens(config_, files_, out);
  return Ok{};
}

}  // namespace cairn::convert
