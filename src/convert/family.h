// What conversion knows of the model families, as data: which class names belong to one, how its
// tensors are called, and where its files differ from the common form.
// Thread-safe: constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cairn::convert {

// A tensor's name without its layer ("model.layers.7.") and its ending (".weight", ".bias"). A `*`
// stands for an expert's number: all of them become one tensor. With a second name the source's
// rows are two matrices, one after the other.
struct NameRow {
  std::string_view source, target;
  std::string_view second_target = {};
};

enum class Parameters : uint8_t {
  common,
  llama,
  granite,
  qwen_moe,
  gemma,
  gemma2,
  gemma3,
  phi2,
  phi3,
  olmo,
  olmo2,
  olmoe,
  stablelm,
};

// Where the vocabulary comes from, if there is a choice.
enum class VocabularyFile : uint8_t {
  tokenizer_json,
  sentencepiece_first,  // tokenizer.model where it is there.
};

struct Family {
  std::span<const std::string_view> classes;
  std::string_view architecture;   // In GGUF.
  std::span<const NameRow> names;  // On top of the common ones.
  Parameters parameters = Parameters::common;
  VocabularyFile vocabulary = VocabularyFile::tokenizer_json;
  bool interleaves_heads = false;  // Rows of q and k lie pair by pair in GGUF.
  bool norms_less_one = false;     // Norms are kept less one.
  bool drops_output = false;       // The output matrix is always the embedding.
  // Names for pre-tokenizers that cut alike and have several names in GGUF: GPT-2's alone, and
  // GPT-2's after single digits.
  std::string_view gpt2_name = "gpt-2", digits_name = "smollm";
};

// Null if no family has the class.
const Family* find_family(std::string_view class_name);
std::span<const Family> all_families();

// The row for a name without layer and ending: the family's own first; null if there is none.
const NameRow* find_name(const Family& family, std::string_view source);

}  // namespace cairn::convert
