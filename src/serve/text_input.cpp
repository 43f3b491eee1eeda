// What a list holds says what it is a list of.
#include "serve/text_input.h"

#include <utility>

#include "tokenize/detokenizer.h"

namespace cairn::serve {

Checked<std::vector<Token>> read_tokens(const json::Value& list, std::string_view field) {
  std::vector<Token> tokens;
  tokens.reserve(list.items().size());
  for (const json::Value& item : list.items()) {
    const std::optional<int64_t> id = item.is_number() ? item.as_integer() : std::nullopt;
    if (!id || *id < 0 || *id > INT32_MAX) {
      return refuse_field(field, "expected token ids, found {}", item.describe());
    }
    tokens.push_back(Token(int32_t(*id)));
  }
  return tokens;
}

Checked<std::vector<TextInput>> read_text_inputs(const Body& body, std::string_view field,
                                                 size_t count_max) {
  const json::Value& value = *body.find(field);
  std::vector<TextInput> inputs;
  if (const auto text = value.as_text()) {
    inputs.push_back({.text = std::string(*text), .tokens = {}});
    return inputs;
  }
  const std::vector<json::Value>& items = value.items();
  if (items.empty()) {
    return refuse_field(field, "expected a string or a list that is not empty, found {}",
                        value.describe());
  }
  if (items.front().is_number()) {
    CAIRN_TRY(std::vector<Token> tokens, read_tokens(value, field));
    inputs.push_back({.text = std::nullopt, .tokens = std::move(tokens)});
    return inputs;
  }
  if (items.size() > count_max) {
    return refuse_field(field, "expected at most {} texts, found {}", count_max, items.size());
  }
  for (const json::Value& item : items) {
    TextInput input;
    if (const auto text = item.as_text()) {
      input.text = std::string(*text);
    } else if (item.is_array()) {
      CAIRN_TRY(input.tokens, read_tokens(item, field));
    } else {
      return refuse_field(field, "expected strings or lists of token ids, found {}",
                          item.describe());
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::string text_of(const TextInput& input, const tokenize::Tokenizer& tokenizer) {
  if (input.text) return *input.text;
  return tokenize::decode(tokenizer, input.tokens, {.is_whole_text = true, .show_control = true});
}

}  // namespace cairn::serve
