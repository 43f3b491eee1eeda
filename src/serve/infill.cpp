// Prefix, suffix, middle; files before them in the form that repositories have in training.
#include "serve/infill.h"

#include <utility>

namespace cairn::serve {

namespace {

// One file, behind the token that begins files, or behind its name as a comment would have it.
std::vector<Token> encode_file(const tokenize::Tokenizer& tokenizer, const InfillFile& file) {
  std::vector<Token> tokens;
  const std::optional<Token> separator = tokenizer.special_ids().fim_separator;
  if (separator) tokens.push_back(*separator);
  const std::string name = separator ? file.name + "\n" : "\n\n# " + file.name + "\n\n";
  tokenizer.encode_to(name + file.text, {.goes_on = true}, tokens);
  return tokens;
}

}  // namespace

Checked<InfillPrompt> encode_infill(const tokenize::Tokenizer& tokenizer, const Infill& infill,
                                    int64_t token_count_max) {
  const tokenize::SpecialTokens& special = tokenizer.special_ids();
  if (!special.fim_prefix || !special.fim_suffix || !special.fim_middle) {
    Refusal refusal = refuse_field("suffix", "expected none: the model has no tokens for infill");
    refusal.status = 501;
    refusal.type = "not_supported_error";
    return refusal;
  }
  std::vector<Token> gap = {*special.fim_prefix};
  gap.insert(gap.end(), infill.before.begin(), infill.before.end());
  gap.push_back(*special.fim_suffix);
  tokenizer.encode_to(infill.after, {.goes_on = true}, gap);
  gap.push_back(*special.fim_middle);
  tokenizer.encode_to(infill.begun, {.goes_on = true}, gap);

  InfillPrompt prompt;
  if (tokenizer.adds_bos() && special.bos) prompt.tokens.push_back(*special.bos);
  std::vector<std::vector<Token>> files;  // The last one first.
  int64_t room = token_count_max - int64_t(prompt.tokens.size() + gap.size());
  for (size_t index = infill.files.size(); index > 0; --index) {
    std::vector<Token> file = encode_file(tokenizer, infill.files[index - 1]);
    room -= int64_t(file.size());
    if (room < 0) break;
    files.push_back(std::move(file));
  }
  prompt.left_out_files = infill.files.size() - files.size();
  for (size_t index = files.size(); index > 0; --index) {
    prompt.tokens.insert(prompt.tokens.end(), files[index - 1].begin(), files[index - 1].end());
  }
  prompt.tokens.insert(prompt.tokens.end(), gap.begin(), gap.end());
  return prompt;
}

}  // namespace cairn::serve
