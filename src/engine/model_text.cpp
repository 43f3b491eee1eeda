// Reading the tokenizer and the chat template of a file.
#include "engine/model_text.h"

#include "base/log.h"
#include "chat/detect.h"
#include "engine/vocabulary_source.h"

namespace cairn {

Result<std::unique_ptr<ModelText>> ModelText::load(const gguf::File& file) {
  std::unique_ptr<ModelText> text(new ModelText());
  CAIRN_TRY(const std::string_view vocabulary,
            file.fields().get_or<std::string_view>("tokenizer.ggml.model", "none"));
  if (vocabulary != "none" && vocabulary != "no_vocab") {
    CAIRN_TRY(const tokenize::VocabularySource source, vocabulary_source(file));
    CAIRN_TRY(text->tokenizer_, tokenize::Tokenizer::build(source));
    for (const std::string& warning : text->tokenizer_->warnings()) log::warning("{}", warning);
  }
  CAIRN_TRY(const std::string_view chat_template,
            file.fields().get_or<std::string_view>("tokenizer.chat_template", ""));
  if (!chat_template.empty()) {
    CAIRN_TRY(chat::ChatTemplate parsed, chat::ChatTemplate::parse(chat_template));
    text->chat_template_ = std::move(parsed);
  }
  return text;
}

const chat::ChatFormat& ModelText::chat_format() const {
  std::call_once(format_once_, [this] {
    if (chat_template_) chat_format_ = chat::detect(*chat_template_);
    if (chat_format_.is_undetected) {
      log::warning(
          "tokenizer.chat_template: expected to render short messages with little work, found more "
          "than its budget allows: calls and reasoning are not recognised");
    }
  });
  return chat_format_;
}

std::shared_ptr<const grammar::TokenTrie> ModelText::token_trie() const {
  CHECK(tokenizer_ != nullptr);
  std::call_once(trie_once_, [this] { token_trie_ = grammar::TokenTrie::build(*tokenizer_); });
  return token_trie_;
}

}  // namespace cairn
