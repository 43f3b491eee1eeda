// What people ask first of a model file: its size, its types, its vocabulary, its templates.
// Missing or odd fields leave their places empty. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/gguf.h"

namespace cairn::gguf {

struct TypeShare {
  uint32_t type_id = 0;
  uint64_t tensor_count = 0;
  uint64_t weight_count = 0;
  uint64_t bytes = 0;
};

struct SpecialToken {
  std::string name;  // "bos", "eos", …
  int64_t id = 0;
  std::optional<std::string_view> piece;
};

struct TokenizerSummary {
  std::string model;
  std::string pre;
  uint64_t token_count = 0;
  uint64_t merge_count = 0;
  std::vector<std::pair<std::string, uint64_t>> kinds;  // Token types with their counts.
  std::vector<SpecialToken> specials;
  std::vector<std::pair<std::string, bool>> flags;  // "add_bos_token", …
};

struct Summary {
  std::string architecture;
  std::string name;
  uint64_t weight_count = 0;
  uint64_t tensor_bytes = 0;
  double bits_per_weight = 0;    // Of the tensors whose bytes are there.
  std::vector<TypeShare> types;  // The largest first.
  std::optional<TokenizerSummary> tokenizer;
  std::vector<std::pair<std::string, std::string_view>> templates;  // By their keys.
};

// Texts that are views lie in the file.
Summary summarise(const File& file);

}  // namespace cairn::gguf
