// Stages at work. PCRE2's \s counts U+180E as a space and its options for \d are all or nothing, so
// the classes are written out before an expression is compiled.
#include "tokenize/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/check.h"
#include "unicode/unicode.h"

namespace cairn::tokenize {
namespace {

constexpr std::string_view kSpaces =
    "\\t-\\r "
    "\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";

// What several expressions share.
struct Part {
  std::string_view name;
  std::string_view expression;
};
constexpr Part kParts[] = {
    {"contraction", "(?i:'s|'t|'re|'ve|'m|'ll|'d)"},
    {"symbols", R"( ?[^\s\p{L}\p{N}]+[\r\n]*|)"},
    {"spaces", R"(\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"upper", R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"},
    {"lower", R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"},
    // A class cannot subtract Han: so these two list all that they are not.
    {"upper without Han", R"([^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}])"},
    {"lower without Han", R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}])"},
};

// The expression with its @{name} parts put in.
std::string assembled(std::string_view expression) {
  std::string out;
  for (size_t at = expression.find("@{"); at != expression.npos; at = expression.find("@{")) {
    const size_t end = expression.find('}', at);
    const std::string_view name = expression.substr(at + 2, end - at - 2);
    const auto* part = std::find_if(std::begin(kParts), std::end(kParts),
                                    [&](const Part& candidate) { return candidate.name == name; });
    CHECK(part != std::end(kParts));
    out.append(expression.substr(0, at)).append(part->expression);
    expression.remove_prefix(end + 1);
  }
  return out.append(expression);
}

// \s, \S and \d spelled out. In a class only \s may occur.
std::string spelled_out(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '[' && !in_class) in_class = true;
    if (c == ']' && in_class) in_class = false;
    if (c != '\\') {
      out += c;
      continue;
    }
    const char escaped = expression[++i];
    if (escaped == 's') {
      out.append(in_class ? "" : "[").append(kSpaces).append(in_class ? "" : "]");
    } else if (escaped == 'S') {
      CHECK(!in_class);
      out.append("[^").append(kSpaces).append("]");
    } else if (escaped == 'd') {
      out.append("\\p{Nd}");
    } else {
      out.append({c, escaped});
    }
  }
  return out;
}

// What a stage looks for: a run of digits to be grouped, or its own expression.
std::string_view expression_of(const PretokenizerStage& stage) {
  switch (stage.kind) {
    case PretokenizerStage::Kind::groups_of_three:
    case PretokenizerStage::Kind::digits_by_three:
      return R"(\d++)";
    // Not inside a run, so that a run before a letter is refused once and not at each digit. What
    // counts as part of a word is Oniguruma's \w, the Latin-1 numbers included.
    case PretokenizerStage::Kind::digits_by_three_at_word_end:
      return R"((?<!\d)\d++(?![\p{L}\p{M}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}]))";
    case PretokenizerStage::Kind::expression:
      break;
  }
  return stage.expression;
}

// Calls `cut` with the beginning of each group of three digits, counted from the right.
void find_groups(std::string_view digits, FunctionRef<void(size_t)> cut) {
  size_t left_count = 0;
  for (size_t at = 0; at < digits.size();
       at += unicode::first_character(digits.substr(at)).length) {
    ++left_count;
  }
  for (size_t at = 0; at < digits.size();
       at += unicode::first_character(digits.substr(at)).length) {
    if (left_count-- % 3 == 0) cut(at);
  }
}

pcre2_code* compile(std::string_view expression, std::string& error) {
  const std::string spelled = spelled_out(assembled(expression));
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(),
                                       PCRE2_UTF | PCRE2_UCP, &code, &at, nullptr);
  if (compiled == nullptr) {
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(code, message, sizeof message);
    error = fmt::format("{} at {} in {}", reinterpret_cast<const char*>(message), at, spelled);
    return nullptr;
  }
  // Where the system forbids writable code the interpreter gives the same words, only slower.
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
  return compiled;
}

// By `operator new`: what a program keeps for when the system gives no more serves here as well.
void* allocate(PCRE2_SIZE bytes, void*) {
  return ::operator new(bytes, std::nothrow);
}
void release(void* memory, void*) {
  ::operator delete(memory);
}

}  // namespace

struct Pretokenizer::Stage {
  using Kind = PretokenizerStage::Kind;

  Stage(Kind kind_of, pcre2_code* compiled) : kind(kind_of), code(compiled) {}
  Stage(Stage&& other) noexcept : kind(other.kind), code(std::exchange(other.code, nullptr)) {}
  ~Stage() { pcre2_code_free(code); }

  Kind kind;
  pcre2_code* code;  // Null for digits.
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::~Pretokenizer() = default;

Result<std::unique_ptr<Pretokenizer>> Pretokenizer::build(const PretokenizerRule& rule) {
  std::unique_ptr<Pretokenizer> built(new Pretokenizer);
  for (const PretokenizerStage& stage : rule.stages) {
    std::string error;
    pcre2_code* code = compile(expression_of(stage), error);
    if (code == nullptr) {
      return fail(ErrorCode::invalid_argument, "pre-tokenizer {}: {}", rule.name, error);
    }
    built->stages_.emplace_back(stage.kind, code);
  }
  return built;
}

struct Pretokenizer::Session::Matcher {
  explicit Matcher(const pcre2_code* compiled)
      : code(compiled),
        memory(pcre2_general_context_create(allocate, release, nullptr)),
        data(pcre2_match_data_create(1, memory)),
        context(pcre2_match_context_create(memory)) {
    CHECK(memory != nullptr && data != nullptr && context != nullptr);
    // The expressions are linear by design; a limit would only make long texts fail.
    pcre2_set_match_limit(context, UINT32_MAX);
  }
  Matcher(Matcher&& other) noexcept
      : code(other.code),
        memory(std::exchange(other.memory, nullptr)),
        data(std::exchange(other.data, nullptr)),
        context(std::exchange(other.context, nullptr)),
        stack(std::exchange(other.stack, nullptr)) {}
  ~Matcher() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
    pcre2_general_context_free(memory);
  }

  struct Range {
    size_t begin;
    size_t end;
  };

  // The next match at or after `from`; an empty range at the end of the text where there is none.
  // Matches are never empty.
  Range next(std::string_view text, size_t from) {
    for (;;) {
      const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                    from, PCRE2_NO_UTF_CHECK, data, context);
      if (found == PCRE2_ERROR_NOMATCH) return {text.size(), text.size()};
      if (found == PCRE2_ERROR_JIT_STACKLIMIT && stack == nullptr) {
        stack = pcre2_jit_stack_create(64 << 10, size_t{64} << 20, memory);
        pcre2_jit_stack_assign(context, nullptr, stack);
        continue;
      }
      CHECK(found > 0);  // Own expressions on well-formed text: nothing else can be wrong.
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
      CHECK(range[1] > range[0]);
      return {range[0], range[1]};
    }
  }

  const pcre2_code* code;
  pcre2_general_context* memory;
  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack = nullptr;
};

Pretokenizer::Session::Session(const Pretokenizer& pretokenizer) : pretokenizer_(pretokenizer) {
  matchers_.reserve(pretokenizer.stages_.size());
  for (const Stage& stage : pretokenizer.stages_) matchers_.emplace_back(stage.code);
}

Pretokenizer::Session::~Session() = default;

void Pretokenizer::Session::split(std::string_view text, FunctionRef<void(std::string_view)> take) {
  if (!text.empty()) split_stage(0, text, take);
}

void Pretokenizer::Session::split_stage(size_t stage, std::string_view text,
                                        FunctionRef<void(std::string_view)> take) {
  if (stage == matchers_.size()) return take(text);
  using Kind = PretokenizerStage::Kind;
  const Kind kind = pretokenizer_.stages_[stage].kind;
  size_t begin = 0;
  const auto cut = [&](size_t at) {
    if (at > begin) split_stage(stage + 1, text.substr(begin, at - begin), take);
    begin = std::max(begin, at);
  };
  for (size_t at = 0; at < text.size();) {
    const Matcher::Range match = matchers_[stage].next(text, at);
    at = match.end;
    if (kind != Kind::groups_of_three) cut(match.begin);
    if (kind != Kind::expression) {
      find_groups(text.substr(match.begin, match.end - match.begin),
                  [&](size_t group) { cut(match.begin + group); });
    }
    if (kind != Kind::groups_of_three) cut(match.end);
  }
  cut(text.size());
}

}  // namespace cairn::tokenize
