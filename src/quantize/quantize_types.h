// The type that each tensor of a model is quantized to: the usual mixes by their names
// (Q4_K_M …), with the choices that llama.cpp makes for them, so that a name means one thing.
// Thread-safe: pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"
#include "quant/quant.h"

namespace cairn::quantize {

struct QuantMix {
  std::string_view name;       // "Q4_K_M".
  std::string_view base_type;  // Of most matrices: "Q4_K".
  int32_t file_type;           // The number that general.file_type has for it.
};

std::span<const QuantMix> quant_mixes();
// Case does not matter; "Q4_K" is "Q4_K_M". Errors: invalid_argument, with all names.
Result<const QuantMix*> find_mix(std::string_view name);

// Tensors whose whole name fits `pattern` ("*" stands for anything) get `type`.
struct TypeOverride {
  std::string pattern;
  const quant::Type* type;
  std::string source;  // Where it was said, for errors about it.
};
// "blk.*.ffn_down*=Q6_K". Errors: invalid_argument, which name `source`.
Result<TypeOverride> parse_override(std::string_view source, std::string_view text);
bool fits(std::string_view name, std::string_view pattern);

struct TypeChoice {
  // One for each tensor of the file; null: its bytes stay as they are.
  std::vector<const quant::Type*> types;
  // Matrices of so few bits that importances matter much, where there are none.
  int64_t blind_count = 0;
  std::vector<std::string> notes;  // What got another type than was meant, and why.
};

// Errors: invalid_data (the model's metadata), invalid_argument (an override fits no matrix).
Result<TypeChoice> choose_types(const gguf::File& file, const QuantMix& mix,
                                std::span<const TypeOverride> overrides, bool has_importance);

}  // namespace cairn::quantize
