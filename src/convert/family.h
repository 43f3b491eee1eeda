// The description of a model family for conversion: its class names, the names of its tensors, what
// differs from the common form, and functions for what no table can express. Each file of families/
// has one family or several related ones. Knows no file and no format. Thread-safe: constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace cairn::convert {

class Config;
class KeyValues;
class ParameterWriter;
class TensorPlan;
struct SourceTensor;
struct TensorName;
struct TokenizerFiles;

// What becomes of a tensor's numbers on the way.
enum class Edit : uint8_t {
  none,
  transpose,     // The last two dimensions change places.
  squeeze,       // [channels, 1, taps] becomes [channels, taps].
  add_one,       // Kept less one.
  negative_exp,  // Kept as a logarithm: -exp(x).
};

// A tensor's name without its layer ("model.layers.7.") and its ending (".weight", ".bias"). A `*`
// stands for an expert's number: all of them become one tensor. With a second name the source's
// rows are two matrices, one after the other.
struct NameRow {
  std::string_view source, target;
  std::string_view second_target = {};
  Edit edit = Edit::none;
  bool is_bare = false;  // Without ".weight" in GGUF too.
};

// Where the vocabulary comes from, if there is a choice.
enum class VocabularyFile : uint8_t {
  tokenizer_json,
  sentencepiece_first,  // tokenizer.model where it is there.
  gemma4,               // tokenizer.json's tokens as they are, with its merges.
  xlm_roberta,          // sentencepiece.bpe.model where it is there, with ids of its own.
};

// The rules for special tokens, which the vocabulary does not express.
enum class SpecialTokenRules : uint8_t { common, llama, gemma, gemma2, phi3, internlm };

// A special token that has its role in all models of the family, where no file says otherwise.
struct TokenRole {
  std::string_view role, text;  // "eot", "<|user|>".
};

struct PretokenizerAlias {
  std::string_view usual, own;  // "gpt-4o", "llama4".
};

struct Family {
  std::span<const std::string_view> classes;
  std::string_view architecture;   // In GGUF.
  std::span<const NameRow> names;  // On top of the common ones.
  // The hyperparameters; null stands for ParameterWriter::add_common.
  Status (*parameters)(ParameterWriter& writer) = nullptr;
  // Tensors that are made here; they come first.
  Status (*extra_tensors)(TensorPlan& plan) = nullptr;
  // True where it has dealt with the tensor: planned what comes of it, or left it out by rule. It
  // is asked before the rows, and sees every tensor of the text model.
  Result<bool> (*tensor)(TensorPlan& plan, const TensorName& name,
                         const SourceTensor& source) = nullptr;
  // What the file says of the tokens at last.
  void (*tokens)(const Config& config, const TokenizerFiles& files, KeyValues& out) = nullptr;
  std::span<const TokenRole> roles = {};
  VocabularyFile vocabulary = VocabularyFile::tokenizer_json;
  SpecialTokenRules token_rules = SpecialTokenRules::common;
  bool interleaves_heads = false;   // Rows of q and k lie pair by pair in GGUF.
  bool norms_less_one = false;      // Norms are kept less one.
  bool drops_output = false;        // The output matrix is always the embedding.
  bool trims_embedding = false;     // Rows beyond the vocabulary stand for nothing.
  bool adds_ends = false;           // Around a text, where its tokenizer says nothing of it.
  bool has_dense_modules = false;   // Matrices behind the pooling, in folders of their own.
  bool never_adds_space = false;    // Before a text, where the vocabulary is of tokenizer.json.
  int64_t vocabulary_multiple = 1;  // The number of tokens is rounded up to one of it.
  // What depends on the configuration; changes a copy.
  void (*adapt)(const Config& config, Family& family) = nullptr;
  // Names for pre-tokenizers that cut alike and have several names in GGUF: GPT-2's alone, and
  // GPT-2's after single digits.
  std::string_view gpt2_name = "gpt-2", digits_name = "smollm";
  // Of other pre-tokenizers too: the family's own name for one that cuts alike.
  std::span<const PretokenizerAlias> pretokenizers = {};
};

// What a library's configuration class takes where config.json says nothing.
struct ConfigDefault {
  std::string_view model_type, key;
  double value;
  bool is_flag = false;
};

// One file's.
struct FamilyGroup {
  std::span<const Family> families;
  std::span<const ConfigDefault> defaults = {};
};

// The generated table of families/*.cpp.
std::span<const FamilyGroup* const> all_family_groups();

// Null if no family has the class.
const Family* find_family(std::string_view class_name);

// The row for a name without layer and ending: the family's own first; null if there is none.
const NameRow* find_name(const Family& family, std::string_view source);

}  // namespace cairn::convert
