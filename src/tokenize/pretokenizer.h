// Pre-tokenizers: how a byte-level BPE vocabulary wants text cut into words before anything is
// joined. Known by the names that GGUF files give (tokenizer.ggml.pre). Each is a row of stages;
// every stage cuts each piece that the one before it left into its matches and what lies between.
// The regular expressions run on PCRE2's JIT. Invariants: the words are the text, in order, nothing
// left out; time is linear in the text. Thread-safe: constant; a Session serves one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"

namespace cairn::tokenize {

// A stage is a regular expression, or one of the ways to group digits by three from the right,
// which no expression does in linear time.
struct PretokenizerStage {
  enum class Kind {
    expression,
    groups_of_three,              // A cut before each whole group, and nowhere else.
    digits_by_three,              // Groups, set apart from what is around them.
    digits_by_three_at_word_end,  // The same, but not where a letter, mark or number follows.
  };
  Kind kind = Kind::expression;
  // PCRE2's syntax; \s, \S, \d are Unicode's White_Space and Nd.
  std::string_view expression = {};
};

// What a name says.
struct PretokenizerRule {
  std::string_view name;
  std::span<const PretokenizerStage> stages;
  bool whole_words = false;  // A word that is a token is not taken apart first ("ignore_merges").
  bool add_bos = false;      // Where the file does not say.
};

// Null where the name is unknown.
const PretokenizerRule* find_pretokenizer(std::string_view name);
std::span<const PretokenizerRule> all_pretokenizers();

class Pretokenizer {
 public:
  // What one thread needs to cut texts.
  class Session {
   public:
    explicit Session(const Pretokenizer& pretokenizer);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Calls `take` with each word. REQUIRES: well-formed UTF-8.
    void split(std::string_view text, FunctionRef<void(std::string_view)> take);

   private:
    struct Matcher;
    void split_stage(size_t stage, std::string_view text, FunctionRef<void(std::string_view)> take);

    const Pretokenizer& pretokenizer_;
    std::vector<Matcher> matchers_;
  };

  static Result<std::unique_ptr<Pretokenizer>> build(const PretokenizerRule& rule);
  ~Pretokenizer();
  Pretokenizer(const Pretokenizer&) = delete;
  Pretokenizer& operator=(const Pretokenizer&) = delete;

 private:
  struct Stage;
  Pretokenizer();

  std::vector<Stage> stages_;
};

}  // namespace cairn::tokenize
