// The kinds of vocabularies, and what GGUF's convention says where a file is silent: SPM has ids 1,
// 2 and 0 for BOS, EOS and unknown and begins texts with BOS and a space; BERT has 101, 102, 100.
#include "tokenize/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "base/digest.h"
#include "tokenize/bpe.h"
#include "tokenize/greedy.h"
#include "tokenize/plamo.h"
#include "tokenize/pretokenizer.h"
#include "tokenize/spm.h"
#include "tokenize/tokenizer_encoder.h"
#include "tokenize/unigram.h"
#include "tokenize/wpm.h"
#include "unicode/unicode.h"

namespace cairn::tokenize {
namespace {

enum class Kind { byte_level_bpe, spm, wpm, gemma4, greedy, plamo, unigram };

struct Plan {
  Kind kind;
  Vocabulary::Spelling spelling;
  const PretokenizerRule* rule = nullptr;  // Of byte-level BPE.
  bool adds_bos = false;                   // Where the file does not say; and the same of the end.
  bool adds_eos = false;
};

Result<Plan> plan_of(const VocabularySource& source) {
  using Spelling = Vocabulary::Spelling;
  if (source.model == "llama") return Plan{Kind::spm, Spelling::spaced, nullptr, true};
  if (source.model == "bert") return Plan{Kind::wpm, Spelling::spaced, nullptr, true};
  if (source.model == "rwkv") return Plan{Kind::greedy, Spelling::escaped, nullptr, false};
  if (source.model == "plamo2") return Plan{Kind::plamo, Spelling::plain, nullptr, false};
  if (source.model == "t5") {
    return Plan{.kind = Kind::unigram, .spelling = Spelling::spaced, .adds_eos = true};
  }
  const bool is_gemma4 = source.model == "gpt2" && source.pre == "gemma4";
  if (source.model == "gemma4" || is_gemma4) {
    return Plan{Kind::gemma4, Spelling::spaced, nullptr, true};
  }
  if (source.model != "gpt2") {
    return fail(
        ErrorCode::unsupported,
        "tokenizer.ggml.model: expected gpt2, llama, bert, t5, gemma4, rwkv or plamo2, found {}",
        source.model.empty() ? "nothing" : source.model.substr(0, 64));
  }
  const std::string_view name = source.pre.value_or("default");
  const PretokenizerRule* rule = find_pretokenizer(name);
  if (rule == nullptr) {
    return fail(ErrorCode::unsupported,
                "tokenizer.ggml.pre: expected one of the {} known pre-tokenizers, found {}",
                all_pretokenizers().size(), name.substr(0, 64));
  }
  return Plan{Kind::byte_level_bpe, Spelling::byte_level, rule, rule->add_bos};
}

// A default id counts only where the vocabulary is as long.
void set_default(std::optional<int64_t>& id, int64_t value, size_t token_count) {
  if (!id && uint64_t(value) < token_count) id = value;
}

VocabularySource with_defaults(VocabularySource source, Kind kind) {
  const size_t count = source.tokens.size();
  if (kind == Kind::spm) {
    set_default(source.bos, 1, count);
    set_default(source.eos, 2, count);
    set_default(source.unk, 0, count);
  } else if (kind == Kind::wpm) {
    if (!source.cls) source.cls = source.bos;
    set_default(source.cls, 101, count);
    set_default(source.sep, 102, count);
    set_default(source.unk, 100, count);
    set_default(source.pad, 0, count);
    set_default(source.mask, 103, count);
  } else if (kind == Kind::unigram) {
    set_default(source.eos, 1, count);
    set_default(source.unk, 2, count);
    set_default(source.pad, 0, count);
  } else if (kind == Kind::gemma4 && source.bos) {
    source.add_bos = true;  // Early files say no by mistake; without it the models babble.
  }
  return source;
}

// Phi-3's special tokens swallow the spaces behind them; files tell it only by the model's name.
bool is_phi3(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return lower.find("phi-3") != lower.npos || lower.find("phi3") != lower.npos;
}

}  // namespace

Tokenizer::Tokenizer(Vocabulary vocabulary, bool strips_right)
    : vocabulary_(std::move(vocabulary)), specials_(vocabulary_, strips_right) {}

Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::build(const VocabularySource& given) {
  CAIRN_TRY(const Plan plan, plan_of(given));
  const VocabularySource source = with_defaults(given, plan.kind);
  CAIRN_TRY(Vocabulary checked, Vocabulary::build(source, plan.spelling));
  if (plan.kind == Kind::byte_level_bpe && !source.pre) {
    checked.warn("tokenizer.ggml.pre: not there, so the convention 'default' stands in");
  }
  if (plan.kind == Kind::spm && source.scores.empty()) {
    checked.warn("tokenizer.ggml.scores: not there, so all tokens count alike");
  }
  if (plan.kind == Kind::gemma4 && given.add_bos == false && source.bos) {
    checked.warn("tokenizer.ggml.add_bos_token: expected true for Gemma 4, found false: overruled");
  }
  const bool has_merges = plan.kind == Kind::byte_level_bpe || plan.kind == Kind::gemma4;
  BpeMerges merges;
  if (has_merges) merges = BpeMerges::build(source.merges, plan.spelling, checked);
  std::unique_ptr<Tokenizer> built(
      new Tokenizer(std::move(checked), plan.kind == Kind::spm && is_phi3(source.name)));
  CAIRN_TRY(built->set_flags(source, plan.adds_bos, plan.adds_eos));
  const Vocabulary& vocabulary = built->vocabulary_;
  switch (plan.kind) {
    case Kind::byte_level_bpe: {
      CAIRN_TRY(built->encoder_, ByteLevelBpe::build(vocabulary, std::move(merges), *plan.rule));
      break;
    }
    case Kind::gemma4:
      built->encoder_ = std::make_unique<CharacterBpe>(vocabulary, std::move(merges));
      break;
    case Kind::spm:
      built->adds_space_prefix_ = source.add_space_prefix.value_or(true);
      built->encoder_ = std::make_unique<Spm>(vocabulary, built->adds_space_prefix_);
      break;
    case Kind::greedy:
      built->encoder_ = std::make_unique<Greedy>(vocabulary);
      break;
    case Kind::plamo:
      built->encoder_ = std::make_unique<Plamo>(vocabulary);
      break;
    case Kind::unigram: {
      built->adds_space_prefix_ = source.add_space_prefix.value_or(false);
      built->keeps_all_bytes_ = false;
      CAIRN_TRY(Charsmap charsmap, Charsmap::build(source.precompiled_charsmap));
      CAIRN_TRY(built->encoder_, Unigram::build(vocabulary, std::move(charsmap),
                                                {built->adds_space_prefix_,
                                                 source.remove_extra_whitespaces.value_or(false)}));
      break;
    }
    case Kind::wpm: {
      built->keeps_all_bytes_ = false;
      const bool lowercase = source.lowercase.value_or(true);
      const unicode::Folding folding{source.strip_accents.value_or(lowercase), lowercase};
      built->encoder_ = std::make_unique<Wpm>(vocabulary, folding);
      built->adds_space_prefix_ = true;
      built->first_ = vocabulary.special_ids().cls;
      built->last_ = vocabulary.special_ids().sep;
      break;
    }
  }
  return built;
}

Status Tokenizer::set_flags(const VocabularySource& source, bool adds_bos_by_default,
                            bool adds_eos_by_default) {
  const SpecialTokens& ids = vocabulary_.special_ids();
  if (source.add_bos.value_or(false) && !ids.bos && !ids.cls) {
    return fail(ErrorCode::invalid_data,
                "tokenizer.ggml.add_bos_token: expected false without a bos_token_id, found true");
  }
  if (source.add_eos.value_or(false) && !ids.eos && !ids.sep) {
    return fail(ErrorCode::invalid_data,
                "tokenizer.ggml.add_eos_token: expected false without an eos_token_id, found true");
  }
  adds_bos_ = source.add_bos.value_or(adds_bos_by_default) && ids.bos;
  // Of WordPiece: what separates.
  adds_eos_ = source.add_eos.value_or(adds_eos_by_default) && ids.eos;
  if (adds_bos_) first_ = ids.bos;
  if (adds_eos_) last_ = ids.eos;
  return Ok{};
}

Status Tokenizer::check_text(std::string_view text) const {
  const size_t valid_bytes = keeps_all_bytes_ ? text.size() : unicode::valid_utf8_bytes(text);
  if (valid_bytes == text.size()) return Ok{};
  return fail(ErrorCode::invalid_argument, "text: expected UTF-8, found byte 0x{:02x} at {}",
              unsigned(uint8_t(text[valid_bytes])), valid_bytes);
}

// Lengths and types stand before the bytes, so that no two vocabularies are spelled alike.
uint64_t Tokenizer::digest() const {
  std::string spelled;
  for (size_t index = 0; index < token_count(); ++index) {
    const Token token = Token(int32_t(index));
    spelled += fmt::format("{} {} ", piece(token).size(), int(type(token)));
    spelled += piece(token);
  }
  return cairn::digest(std::as_bytes(std::span(spelled)));
}

std::vector<Token> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<Token> out;
  encode_to(text, options, out);
  return out;
}

std::vector<Token> Tokenizer::encode(std::span<const TextPiece> pieces,
                                     EncodeOptions options) const {
  std::vector<Token> out;
  encode_to(pieces, options, out);
  return out;
}

void Tokenizer::encode_to(std::string_view text, EncodeOptions options,
                          std::vector<Token>& out) const {
  const Region whole{text.size(), options.parse_special ? Trust::full : Trust::plain};
  encode_regions(text, std::span(&whole, 1), options, out);
}

void Tokenizer::encode_to(std::span<const TextPiece> pieces, EncodeOptions options,
                          std::vector<Token>& out) const {
  std::string text;
  std::vector<Region> regions;
  for (const TextPiece& piece : pieces) {
    if (piece.text.empty()) continue;
    text += piece.text;
    const Trust trusted = options.parse_special ? Trust::full : Trust::plain;
    regions.push_back({text.size(), piece.trusted ? trusted : Trust::user});
  }
  encode_regions(text, regions, options, out);
}

void Tokenizer::encode_regions(std::string_view text, std::span<const Region> regions,
                               EncodeOptions options, std::vector<Token>& out) const {
  if (options.add_special && first_) out.push_back(*first_);
  if (!text.empty()) {
    std::vector<Fragment> fragments;
    specials_.split(text, regions, fragments);
    const std::unique_ptr<EncoderSession> session = encoder_->start(text.size());
    bool follows_special = !options.goes_on;
    for (const Fragment& fragment : fragments) {
      follows_special |= fragment.token != kNoToken;
      if (fragment.token != kNoToken) {
        out.push_back(Token(fragment.token));
        continue;
      }
      const std::string_view part = text.substr(fragment.begin, fragment.end - fragment.begin);
      session->encode(part, follows_special, out);
      follows_special = false;
    }
  }
  if (options.add_special && last_) out.push_back(*last_);
}

}  // namespace cairn::tokenize
