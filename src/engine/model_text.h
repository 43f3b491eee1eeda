// What a model's file says about text: its tokenizer, its chat template, and what is made of these
// once for all who use the model: the form of its answers, and the tokens as a trie, which grammars
// walk. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "chat/chat_template.h"
#include "chat/format.h"
#include "gguf/gguf.h"
#include "grammar/token_trie.h"
#include "tokenize/tokenizer.h"

namespace cairn {

class ModelText {
 public:
  // Errors: what the file has wrong, named; unsupported tokenizers.
  static Result<std::unique_ptr<ModelText>> load(const gguf::File& file);

  // Null where the file has no vocabulary.
  const tokenize::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  // Null where the file has no chat template.
  const chat::ChatTemplate* chat_template() const {
    return chat_template_ ? &*chat_template_ : nullptr;
  }
  // How the model writes calls and reasoning, found at the first use; without a chat template, the
  // form in which all is text.
  const chat::ChatFormat& chat_format() const;
  // Made at the first use. REQUIRES: a tokenizer.
  std::shared_ptr<const grammar::TokenTrie> token_trie() const;

 private:
  ModelText() = default;

  std::unique_ptr<tokenize::Tokenizer> tokenizer_;
  std::optional<chat::ChatTemplate> chat_template_;
  mutable std::once_flag format_once_, trie_once_;
  mutable chat::ChatFormat chat_format_;
  mutable std::shared_ptr<const grammar::TokenTrie> token_trie_;
};

}  // namespace cairn
