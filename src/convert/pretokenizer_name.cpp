// A pre-tokenizer becomes a list of steps in a short notation, and the table knows the lists:
//   byte_level  GPT-2's own expression; or, where it is switched off, nothing but bytes
//   digits      each digit alone; runs: digits together
//   split R     pieces that match the regular expression R, and what lies between
//   keep R      pieces that match R, and nothing else
#include "convert/pretokenizer_name.h"

#include <string>
#include <utility>
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
constexpr std::string_view kNoLineEnds = CAIRN_CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" CAIRN_SPACES;
constexpr std::string_view kBloom = " ?[^(\\s|[.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C])]+";
constexpr std::string_view kDeepseek3 =
    "split \\p{N}{1,3}, split [\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+, split "
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?"
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*" CAIRN_SPACES;
#undef CAIRN_CONTRACTIONS
#undef CAIRN_SYMBOLS
#undef CAIRN_SPACES
#undef CAIRN_UPPER
#undef CAIRN_LOWER

constexpr std::string_view kGpt2 = "byte_level", kDigitsGpt2 = "digits, byte_level";
constexpr std::string_view kFalcon = "punctuation, byte_level, runs, split [0-9][0-9][0-9]";

constexpr std::pair<std::string_view, std::string_view> kExpressions[] = {
    {kOneDigit, "qwen2"}, {kWithMarks, "qwen35"},      {kByCase, "gpt-4o"},
    {kTekken, "tekken"},  {kNoLineEnds, "seed-coder"}, {kBloom, "bloom"},
};

// Some files have line ends in their expressions, others the signs for them.
std::string with_signs(std::string_view expression) {
  std::string text;
  for (const char c : expression) {
    if (c == '\r' || c == '\n') {
      text += c == '\r' ? "\\r" : "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

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
  if (type == "Split") {
    const Json* pattern = step.find("pattern");
    const auto expression = pattern == nullptr ? std::nullopt : pattern->text_at("Regex");
    const bool is_inverse = step.is_true_at("invert");
    const bool is_split = step.text_at("behavior") == "Isolated" && !is_inverse;
    const bool keeps = step.text_at("behavior") == "Removed" && is_inverse;
    if (expression && is_split) return "split " + with_signs(*expression);
    if (expression && keeps) return "keep " + with_signs(*expression);
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

// Empty if there is none.
std::string_view usual_name(std::string_view steps, bool takes_whole_words) {
  if (steps == kGpt2) return "gpt-2";
  if (steps == kDigitsGpt2) return "smollm";
  if (steps == kFalcon) return "falcon";
  if (steps == kDeepseek3) return "deepseek-v3";
  // A single expression that covers every text cuts alike, whether its matches are set apart or all
  // else is thrown away.
  for (const std::string_view start : {"split ", "keep "}) {
    if (!steps.starts_with(start)) continue;
    const std::string_view expression = steps.substr(start.size());
    if (expression == kThreeDigits) return takes_whole_words ? "llama-bpe" : "dbrx";
    for (const auto& [known, name] : kExpressions) {
      if (expression == known) return name;
    }
  }
  return {};
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
  const std::string_view usual = usual_name(steps, takes_whole_words);
  if (usual.empty()) {
    return fail(ErrorCode::unsupported,
                "tokenizer.json: expected a pre-tokenizer that GGUF has a name for, found {}",
                steps.substr(0, 400));
  }
  if (steps == kGpt2) return family.gpt2_name;
  if (steps == kDigitsGpt2) return family.digits_name;
  for (const PretokenizerAlias& alias : family.pretokenizers) {
    if (alias.usual == usual) return alias.own;
  }
  return usual;
}

}  // namespace cairn::convert
