// The vocabulary of a model directory as GGUF's tokenizer metadata: from tokenizer.model
// (SentencePiece) or tokenizer.json (byte-level BPE, BPE over U+2581 with bytes as a fallback,
// WordPiece, Unigram).
// Thread-safe: constant once loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "convert/config.h"
#include "convert/family.h"
#include "convert/key_values.h"
#include "convert/sentencepiece.h"
#include "convert/special_tokens.h"

namespace cairn::convert {

class Tokenizer {
 public:
  // Errors: not_found (no tokenizer in the folder), unsupported (of another kind), invalid_data.
  static Result<Tokenizer> load(const std::string& folder, const Config& config,
                                const Family& family);

  int64_t token_count() const { return int64_t(tokens_.size()); }
  std::string description() const { return pre_.empty() ? model_ : model_ + ", " + pre_; }
  Status add_to(KeyValues& out) const;

 private:
  Tokenizer(const Config& config, const Family& family) : config_(config), family_(family) {}

  Status read_files(const std::string& folder);
  Status read_sentencepiece(const std::string& bytes);
  Status read_json_model(const Json& model);
  Status read_byte_level();
  Status read_spaced();

  // tokenizer_kinds.cpp: vocabularies that are no BPE, and Gemma 4's.
  Status read_word_pieces();
  Status read_unigram(const Json& model);
  Result<bool> read_unigram_file();
  Status read_gemma4();
  Status add_type_count(KeyValues& out) const;
  Status add_normalizer(KeyValues& out) const;
  bool is_named_special(std::string_view text) const;

  Status start(int64_t count);
  Status read_vocabulary();
  Status check_merges() const;
  Status read_merges();
  Status set_added(int64_t id, std::string text, bool is_special, bool looks_count);
  Status add_from_tokenizer_config();
  Status add_from_tokenizer_json(bool looks_count);
  void score_by_merges();
  // A family that says in two files which tokens were added, and marks none by their look.
  bool lists_twice() const {
    return family_.token_rules == SpecialTokenRules::phi3 ||
           family_.token_rules == SpecialTokenRules::internlm;
  }
  bool prepends_space() const;

  const Config& config_;
  const Family& family_;
  TokenizerFiles files_;
  Json added_tokens_;  // added_tokens.json: ids by text.
  std::string model_, pre_;
  bool is_spaced_json_ = false;
  UnigramNormalizer normalizer_;  // Of unigram vocabularies.
  std::optional<bool> prefix_;    // What tokenizer.model says of a space in front, where it counts.
  std::vector<std::string> tokens_, merges_;
  std::vector<float> scores_;
  std::vector<int32_t> types_;
};

}  // namespace cairn::convert
