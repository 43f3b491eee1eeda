// The pre-tokenizers by name. The expressions are facts of the published tokenizers (tokenizer.json
// or tiktoken's); where GGUF's convention and the original differ in form, the original stands
// here. Rewritten is only what would not be linear: `\s+$` may not start inside a run of spaces,
// and loops within loops do not backtrack (they never need to). What several share is written
// @{name} (pretokenizer.cpp).
#include <algorithm>

#include "tokenize/pretokenizer.h"

namespace cairn::tokenize {
namespace {

using Kind = PretokenizerStage::Kind;
using Stage = PretokenizerStage;

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    "@{contraction}"
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|@{symbols}@{spaces})";
constexpr std::string_view kQwen2 =
    "@{contraction}"
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|@{symbols}@{spaces})";
constexpr std::string_view kO200k = R"([^\r\n\p{L}\p{N}]?@{upper}*@{lower}+@{contraction}?)"
                                    R"(|[^\r\n\p{L}\p{N}]?@{upper}+@{lower}*@{contraction}?)"
                                    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|@{spaces})";
constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|@{spaces})";
constexpr std::string_view kIdeographsAndKana =
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view kBloom =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)";
constexpr std::string_view kFinalSpaces = R"((?<!\s)\s+$)";
// U+0800 to U+4E00 is as DeepSeek published it.
constexpr std::string_view kDeepseekIdeographs =
    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

// Letters with case, of the Unicode version and with the gaps that DeepSeek published.
constexpr std::string_view kDeepseekLetters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF})"
    R"(\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F})"
    R"(\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481})"
    R"(\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD})"
    R"(\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45})"
    R"(\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
    R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B})"
    R"(\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2})"
    R"(\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr std::string_view kDeepseekPunctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";

constexpr Stage kGpt2Stages[] = {{Kind::expression, kGpt2}};
constexpr Stage kLlama3Stages[] = {{Kind::expression, kLlama3}};
constexpr Stage kQwen2Stages[] = {{Kind::expression, kQwen2}};
constexpr Stage kO200kStages[] = {{Kind::expression, kO200k}};
constexpr Stage kDigitsThenGpt2Stages[] = {{Kind::expression, R"(\p{N})"},
                                           {Kind::expression, kGpt2}};
constexpr Stage kDefaultStages[] = {{Kind::expression, R"([\p{P}$+<=>^~|]+)"},
                                    {Kind::expression, kGpt2},
                                    {Kind::expression, R"(\p{N}+)"},
                                    {Kind::expression, "[0-9][0-9][0-9]"}};
constexpr Stage kFalconStages[] = {{Kind::expression, R"([\p{P}$+<=>^~|`]+)"},
                                   {Kind::expression, kGpt2},
                                   {Kind::expression, "[0-9][0-9][0-9]"}};
constexpr Stage kQwen35Stages[] = {{Kind::expression,
                                    R"(@{contraction}|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
                                    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|@{spaces})"}};
constexpr Stage kDeepseekLlmStages[] = {
    {Kind::expression, R"([\r\n])"},          {Kind::expression, kDeepseekLetters},
    {Kind::expression, kDeepseekPunctuation}, {Kind::expression, kFinalSpaces},
    {Kind::expression, kDeepseekIdeographs},  {Kind::expression, R"(\p{N}+)"}};
constexpr Stage kDeepseekCoderStages[] = {{Kind::expression, R"([\r\n])"},
                                          {Kind::expression, R"(\s?\p{L}+)"},
                                          {Kind::expression, R"(\s?\p{P}+)"},
                                          {Kind::expression, kDeepseekIdeographs},
                                          {Kind::expression, R"(\p{N})"}};
constexpr Stage kDeepseek3Stages[] = {{Kind::expression, R"(\p{N}{1,3})"},
                                      {Kind::expression, kIdeographsAndKana},
                                      {Kind::expression, kDeepseek3}};
constexpr Stage kTekkenStages[] = {
    {Kind::expression,
     R"([^\r\n\p{L}\p{N}]?@{upper}*@{lower}+)"
     R"(|[^\r\n\p{L}\p{N}]?@{upper}+@{lower}*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|@{spaces})"}};
constexpr Stage kTinyAyaStages[] = {{Kind::digits_by_three_at_word_end, ""},
                                    {Kind::expression, kO200k}};
constexpr Stage kSuperbpeStages[] = {{Kind::expression, R"(\p{N}+)"}, {Kind::groups_of_three, ""}};
constexpr Stage kAfmoeStages[] = {
    {Kind::digits_by_three, ""},
    {Kind::expression,
     R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF})"
     R"(\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{0E40}-\x{0E7F}\x{0E80}-\x{0EFF}\x{1780}-\x{17FF})"
     R"(\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF})"
     R"(\x{1100}-\x{11FF}]+)"},
    {Kind::expression, kDeepseek3}};
constexpr Stage kBloomStages[] = {{Kind::expression, kBloom}};
constexpr Stage kVikingStages[] = {{Kind::expression, kBloom}, {Kind::expression, R"(\p{N})"}};
constexpr Stage kBailingStages[] = {
    {Kind::expression,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
     R"(|\s*[\r\n]|\s+(?!\S)|\s+)"}};
constexpr Stage kSeedCoderStages[] = {
    {Kind::expression,
     R"(@{contraction}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|@{spaces})"}};
constexpr Stage kExaoneMoeStages[] = {
    {Kind::expression, R"(@{contraction}|[^\r\n\p{L}\p{N}]?\p{L}\p{M}*+(?: ?\p{L}\p{M}*+)*+|\p{N})"
                       R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}};
constexpr Stage kKimiStages[] = {
    {Kind::expression,
     R"(\p{sc:Han}+)"
     R"(|[^\r\n\p{L}\p{N}]?@{upper without Han}*@{lower without Han}+@{contraction}?)"
     R"(|[^\r\n\p{L}\p{N}]?@{upper without Han}+@{lower without Han}*@{contraction}?)"
     R"(|\p{N}{1,3}|@{symbols}@{spaces})"}};
constexpr Stage kYoutuStages[] = {
    {Kind::expression,
     R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+)"
     R"(|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C})"
     R"(\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+)"
     R"(|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)"},
    {Kind::expression, R"([^\r\n\p{L}\p{N}]?@{upper}*@{lower}+@{contraction}?)"
                       R"(|[^\r\n\p{L}\p{N}]?@{upper}+@{lower}*@{contraction}?)"
                       R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|@{spaces})"}};
constexpr Stage kJais2Stages[] = {
    {Kind::expression,
     R"(@{contraction}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|@{symbols})"
     R"(\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S))"
     R"(|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"}};
constexpr Stage kMinicpm5Stages[] = {
    {Kind::expression, R"(\p{N}{1,3})"},
    {Kind::expression, R"(@{contraction}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|@{symbols}@{spaces})"}};
constexpr Stage kLagunaStages[] = {{Kind::expression, R"([^\n]+|[\n]+)"},
                                   {Kind::expression, kQwen2}};
constexpr Stage kSparkStages[] = {
    {Kind::expression, R"(\p{N}{1,3})"},
    {Kind::expression, kIdeographsAndKana},
    {Kind::expression,
     R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
     R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)"},
    {Kind::expression, R"(\p{N})"}};
constexpr Stage kChameleonStages[] = {
    {Kind::expression, "<sentinel:[0-9]+>"},       {Kind::expression, "IMGIMG[A-I]{1,4}Z"},
    {Kind::expression, R"([\t\n]|    |  )"},       {Kind::expression, R"(\p{N})"},
    {Kind::expression, R"([\p{P}!-/:-@\[-`{-~])"}, {Kind::expression, kGpt2}};
constexpr Stage kUfakzekaStages[] = {
    {Kind::expression, R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|@{symbols}@{spaces})"}};

constexpr PretokenizerRule kRules[] = {
    {"default", kDefaultStages},
    {"llama3", kLlama3Stages, true, true},
    {"llama-v3", kLlama3Stages, true, true},
    {"llama-bpe", kLlama3Stages, true, true},
    {"falcon3", kLlama3Stages, true, true},
    {"falcon-h1", kLlama3Stages, true, true},
    {"pixtral", kLlama3Stages, true, true},
    {"midm-2.0", kLlama3Stages, true, true},
    {"lfm2", kLlama3Stages, true, true},
    {"jina-v5-nano", kLlama3Stages, true, true},
    {"dbrx", kLlama3Stages},
    {"smaug-bpe", kLlama3Stages},
    {"glm4", kLlama3Stages},
    {"chatglm-bpe", kLlama3Stages},
    {"minicpm5", kMinicpm5Stages, true},
    {"deepseek-llm", kDeepseekLlmStages},
    {"deepseek-coder", kDeepseekCoderStages},
    {"deepseek-v3", kDeepseek3Stages},
    {"hunyuan-dense", kDeepseek3Stages},
    {"joyai-llm", kDeepseek3Stages},
    {"hy_v4", kDeepseek3Stages},
    {"spark2_5", kSparkStages},
    {"youtu", kYoutuStages, true},
    {"falcon", kFalconStages},
    {"starcoder", kDigitsThenGpt2Stages},
    {"refact", kDigitsThenGpt2Stages},
    {"command-r", kDigitsThenGpt2Stages},
    {"smollm", kDigitsThenGpt2Stages},
    {"codeshell", kDigitsThenGpt2Stages},
    {"exaone", kDigitsThenGpt2Stages},
    {"minerva-7b", kDigitsThenGpt2Stages},
    {"mellum2", kDigitsThenGpt2Stages},
    {"gpt-2", kGpt2Stages},
    {"phi-2", kGpt2Stages},
    {"mpt", kGpt2Stages},
    {"olmo", kGpt2Stages},
    {"jais", kGpt2Stages},
    {"trillion", kGpt2Stages},
    {"granite-docling", kGpt2Stages},
    {"exaone4", kGpt2Stages},
    {"gigachat", kGpt2Stages},
    {"jina-es", kGpt2Stages},
    {"jina-de", kGpt2Stages},
    {"jina-v1-en", kGpt2Stages},
    {"jina-v2-es", kGpt2Stages},
    {"jina-v2-de", kGpt2Stages},
    {"jina-v2-code", kGpt2Stages},
    {"roberta-bpe", kGpt2Stages},
    {"modern-bert", kGpt2Stages},
    {"a.x-4.0", kGpt2Stages},
    {"mellum", kGpt2Stages},
    {"jais-2", kJais2Stages},
    {"qwen2", kQwen2Stages},
    {"deepseek-r1-qwen", kQwen2Stages},
    {"kormo", kQwen2Stages},
    {"f2llmv2", kQwen2Stages},
    {"stablelm2", kQwen2Stages},
    {"hunyuan", kQwen2Stages},
    {"solar-open", kQwen2Stages},
    {"megrez", kQwen2Stages},
    {"grok-2", kQwen2Stages},
    {"qwen35", kQwen35Stages},
    {"ufakzeka", kUfakzekaStages},
    {"laguna", kLagunaStages},
    {"bloom", kBloomStages},
    {"poro-chat", kBloomStages},
    {"gpt3-finnish", kBloomStages},
    {"viking", kVikingStages},
    {"tekken", kTekkenStages, true, true},
    {"chameleon", kChameleonStages, false, true},
    {"gpt-4o", kO200kStages},
    {"gpt-oss", kO200kStages},
    {"llama4", kO200kStages},
    {"kanana2", kO200kStages},
    {"talkie", kO200kStages},
    {"minimax-m2", kO200kStages},
    {"granite-embed-multi-97m", kO200kStages, true},
    {"tiny_aya", kTinyAyaStages},
    {"cohere2moe", kTinyAyaStages},
    {"superbpe", kSuperbpeStages},
    {"bailingmoe", kBailingStages},
    {"bailingmoe2", kBailingStages},
    {"llada-moe", kBailingStages},
    {"seed-coder", kSeedCoderStages},
    {"kimi-k2", kKimiStages},
    {"afmoe", kAfmoeStages},
    {"exaone-moe", kExaoneMoeStages},
};

}  // namespace

const PretokenizerRule* find_pretokenizer(std::string_view name) {
  const auto found = std::find_if(std::begin(kRules), std::end(kRules),
                                  [&](const PretokenizerRule& rule) { return rule.name == name; });
  return found == std::end(kRules) ? nullptr : found;
}

std::span<const PretokenizerRule> all_pretokenizers() {
  return kRules;
}

}  // namespace cairn::tokenize
