// One table for each sort of key, in the order of the GGUF convention.
#include "engine/vocabulary_source.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

namespace cairn {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

struct IdKey {
  std::string_view name;
  std::optional<int64_t> tokenize::VocabularySource::*field;
};

// Where a field has two names, the first that is there counts.
using Source = tokenize::VocabularySource;
constexpr IdKey kIdKeys[] = {
    {"bos_token_id", &Source::bos},
    {"eos_token_id", &Source::eos},
    {"eot_token_id", &Source::eot},
    {"eom_token_id", &Source::eom},
    {"unknown_token_id", &Source::unk},
    {"seperator_token_id", &Source::sep},  // So spelled in the convention.
    {"separator_token_id", &Source::sep},
    {"padding_token_id", &Source::pad},
    {"cls_token_id", &Source::cls},
    {"mask_token_id", &Source::mask},
    {"fim_pre_token_id", &Source::fim_prefix},
    {"prefix_token_id", &Source::fim_prefix},  // The names before 2024-10.
    {"fim_suf_token_id", &Source::fim_suffix},
    {"suffix_token_id", &Source::fim_suffix},
    {"fim_mid_token_id", &Source::fim_middle},
    {"middle_token_id", &Source::fim_middle},
    {"fim_pad_token_id", &Source::fim_pad},
    {"fim_rep_token_id", &Source::fim_repository},
    {"fim_sep_token_id", &Source::fim_separator},
};

struct FlagKey {
  std::string_view name;
  std::optional<bool> tokenize::VocabularySource::*field;
};

constexpr FlagKey kFlagKeys[] = {
    {"add_bos_token", &Source::add_bos},
    {"add_eos_token", &Source::add_eos},
    {"add_sep_token", &Source::add_sep},
    {"add_space_prefix", &Source::add_space_prefix},
    {"remove_extra_whitespaces", &Source::remove_extra_whitespaces},
    {"normalizer.lowercase", &Source::lowercase},
    {"normalizer.strip_accents", &Source::strip_accents},
};

std::string key_of(std::string_view name) {
  return std::string(kPrefix).append(name);
}

// The value of a key that may be absent.
template <class T>
Result<std::optional<T>> optional_value(const gguf::Fields& fields, std::string_view name) {
  const std::string key = key_of(name);
  if (fields.find(key) == nullptr) return std::optional<T>();
  CAIRN_TRY(T value, fields.get<T>(key));
  return std::optional<T>(value);
}

Status read_arrays(const gguf::Fields& fields, Source& source) {
  CAIRN_TRY(const auto tokens, fields.get<gguf::Strings>(key_of("tokens")));
  source.tokens.assign(tokens.begin(), tokens.end());
  CAIRN_TRY(const auto merges, optional_value<gguf::Strings>(fields, "merges"));
  if (merges) source.merges.assign(merges->begin(), merges->end());
  CAIRN_TRY(const auto types, optional_value<gguf::Integers>(fields, "token_type"));
  source.types.reserve(types ? types->size() : 0);
  for (size_t id = 0; types && id < types->size(); ++id) {
    // Numbers that fit no type stay such, whatever their width.
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    source.types.push_back(int32_t(std::clamp<int64_t>((*types)[id], -1, kMax)));
  }
  const gguf::Value* scores = fields.find(key_of("scores"));
  if (scores != nullptr && scores->is_array() && gguf::is_integer(scores->element)) {
    const gguf::Integers integers(*scores);
    for (size_t id = 0; id < integers.size(); ++id) source.scores.push_back(float(integers[id]));
    return Ok{};
  }
  CAIRN_TRY(const auto reals, optional_value<gguf::Reals>(fields, "scores"));
  source.scores.reserve(reals ? reals->size() : 0);
  for (size_t id = 0; reals && id < reals->size(); ++id) source.scores.push_back((*reals)[id]);
  return Ok{};
}

}  // namespace

Result<tokenize::VocabularySource> vocabulary_source(const gguf::File& file) {
  const gguf::Fields& fields = file.fields();
  Source source;
  CAIRN_TRY(source.model, fields.get<std::string_view>(key_of("model")));
  CAIRN_TRY(source.pre, optional_value<std::string_view>(fields, "pre"));
  CAIRN_TRY(source.name, fields.get_or<std::string_view>("general.name", ""));
  CAIRN_TRY(read_arrays(fields, source));
  for (const IdKey& key : kIdKeys) {
    if (source.*key.field) continue;
    CAIRN_TRY(source.*key.field, optional_value<int64_t>(fields, key.name));
  }
  for (const FlagKey& key : kFlagKeys) {
    CAIRN_TRY(source.*key.field, optional_value<bool>(fields, key.name));
  }
  const gguf::Value* charsmap = fields.find(key_of("precompiled_charsmap"));
  if (charsmap != nullptr && charsmap->is_array()) {
    source.precompiled_charsmap = {reinterpret_cast<const char*>(charsmap->bytes.data()),
                                   charsmap->bytes.size()};
  }
  return source;
}

}  // namespace cairn
