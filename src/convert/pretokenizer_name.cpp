// A pre-tokenizer becomes a list of steps in a short notation, and the table knows the lists:
//   byte_level  GPT-2's own expression; or, where it is switched off, nothing but bytes
//   digits      each digit alone; runs: digits together
//   split R     pieces that match the regular expression R, and what lies between
#include "convert/pretokenizer_name.h"

#include <string>
#include <vector>

namespace cairn::convert {
namespace {

// The expressions are those of published tokenizer.json files.
#define CAIRN_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CAIRN_SYMBOLS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define CAIRN_SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CAIRN_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define CAIRN_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
constexpr std::string_view kThreeDigits =
    CAIRN_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}" CAIRN_SYMBOLS CAIRN_SPACES;
constexpr std::string_view kOneDigit =
    CAIRN_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" CAIRN_SYMBOLS CAIRN_SPACES;
constexpr std::string_view kWithMarks = CAIRN_CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
    "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" CAIRN_SPACES;
constexpr std::string_view kByCase =
    "[^\\r\\n\\p{L}\\p{N}]?" CAIRN_UPPER "*" CAIRN_LOWER "+" CAIRN_CONTRACTIONS
    "?|[^\\r\\n\\p{L}\\p{N}]?" CAIRN_UPPER "+" CAIRN_LOWER "*" CAIRN_CONTRACTIONS
    "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" CAIRN_SPACES;
constexpr std::string_view kTekken = "[^\\r\\n\\p{L}\\p{N}]?" CAIRN_UPPER "*" CAIRN_LOWER
                                     "+"
                                     "|[^\\r\\n\\p{L}\\p{N}]?" CAIRN_UPPER "+" CAIRN_LOWER
                                     "*"
                                     "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" CAIRN_SPACES;
#undef CAIRN_CONTRACTIONS
#undef CAIRN_SYMBOLS
#undef CAIRN_SPACES
#undef CAIRN_UPPER
#undef CAIRN_LOWER

constexpr std::string_view kGpt2 = "byte_level", kDigitsGpt2 = "digits, byte_level";
constexpr std::string_view kFalcon = "punctuation, byte_level, runs, split [0-9][0-9][0-9]";

// Steps as a text; what the form does not allow gives the step's own type, which no row has.
std::string step_of(const Json& step) {
  const std::string_view type = step.text_at("type").value_or("none");
  if (type == "ByteLevel") {
    if (step.is_true_at("add_prefix_space")) return "byte_level after a space";
    const Json* expression = step.find("use_regex");
    return expression == nullptr || expression->as_boolean().value_or(true) ? "byte_level" : "";
  }
  if (type == "Digits") return step.is_true_at("individual_digits") ? "digits" : "runs";
  if (type == "Punctuation" && step.text_at("behavior") == "Contiguous") return "punctuation";
  if (type == "Split" && step.text_at("behavior") == "Isolated" && !step.is_true_at("invert")) {
    const Json* pattern = step.find("pattern");
    const auto expression = pattern == nullptr ? std::nullopt : pattern->text_at("Regex");
    if (expression) return "split " + std::string(*expression);
  }
  return std::string(type);
}

std::string steps_of(const Json& pretokenizer) {
  const Json* list = pretokenizer.find("pretokenizers");
  if (list == nullptr) return step_of(pretokenizer);
  std::string steps;
  for (const Json& item : list->items()) {
    const std::string step = step_of(item);
    if (step.empty()) continue;
    steps += (steps.empty() ? "" : ", ") + step;
  }
  return steps;
}

}  // namespace

Result<std::string_view> pretokenizer_name(const Json& tokenizer, const Family& family) {
  const Json* pretokenizer = tokenizer.find_set("pre_tokenizer");
  if (pretokenizer == nullptr) {
    return fail(ErrorCode::unsupported, "tokenizer.json: expected a pre_tokenizer, found none");
  }
  const Json* model = tokenizer.find("model");
  const bool takes_whole_words = model != nullptr && model->is_true_at("ignore_merges");
  const std::string steps = steps_of(*pretokenizer);
  if (steps == kGpt2) return family.gpt2_name;
  if (steps == kDigitsGpt2) return family.digits_name;
  if (steps == kFalcon) return std::string_view("falcon");
  const std::string_view one = steps;
  if (one.starts_with("split ")) {
    const std::string_view expression = one.substr(6);
    if (expression == kThreeDigits) {
      if (!family.three_digits_name.empty()) return family.three_digits_name;
      return std::string_view(takes_whole_words ? "llama-bpe" : "dbrx");
    }
    if (expression == kOneDigit) return std::string_view("qwen2");
    if (expression == kWithMarks) return std::string_view("qwen35");
    if (expression == kByCase) {
      return family.by_case_name.empty() ? "gpt-4o" : family.by_case_name;
    }
    if (expression == kTekken) return std::string_view("tekken");
  }
  return fail(ErrorCode::unsupported,
              "tokenizer.json: expected a pre-tokenizer that GGUF has a name for, found {}",
              steps.substr(0, 400));
}

}  // namespace cairn::convert
