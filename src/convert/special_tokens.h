// The special tokens of a model directory, from tokenizer.json, tokenizer_config.json and
// config.json: their ids, which of them are added around a text, and the chat template. Pure but
// for reading templates that lie in files of their own; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "convert/family.h"
#include "convert/json.h"
#include "convert/key_values.h"

namespace cairn::convert {

// The files of a directory that speak of its tokenizer; null values where one is missing.
struct TokenizerFiles {
  std::string folder;
  Json tokenizer, tokenizer_config, config;
};

// Adds the ids (those below token_count), the flags, the template and BERT's normalizer.
// Errors: invalid_data (a negative id), io.
// `roles` hold where no file says otherwise.
Status add_special_tokens(const TokenizerFiles& files, int64_t token_count,
                          std::span<const TokenRole> roles, KeyValues& out);

}  // namespace cairn::convert
