// Two tables: the words of a row mean the same to whoever types them.
#include "command_line/other_programs.h"

#include <span>

namespace cairn::command_line {

namespace {

struct Row {
  std::string_view words;  // With a blank around each.
  std::string_view advice;
};

constexpr Row kOptions[] = {
    {" -fa --flash-attn ", "leave it out: there is one kind of attention"},
    {" -b --batch-size -ub --ubatch-size ",
     "leave it out: the size of a step changes no bit, and cairn chooses it"},
    {" -tb --threads-batch ", "--threads counts for prompts too"},
    {" --mlock --mmap --no-mmap ",
     "leave it out: weights are copied into memory at the start, unless --no-pack is given"},
    {" -co --color --simple-io --display-prompt --no-display-prompt --verbose-prompt --log-disable "
     "--nowordwrap ",
     "leave it out: stdout has the answer and nothing else"},
    {" --warmup --no-warmup --keepalive ", "leave it out: nothing runs before the prompt"},
    {" --jinja --no-jinja ", "leave it out: chat templates always run; --raw uses none"},
    {" --chat-template --chat-template-file ",
     "the template in the model file is used; --raw uses none"},
    {" -st --single-turn ", "leave it out: -p answers once"},
    {" -dev --device --list-devices -sm --split-mode -mg --main-gpu -ts --tensor-split ",
     "leave it out: there is no GPU backend"},
    {" -sysf --system-prompt-file ", "-sys \"$(cat FILE)\" does that"},
    {" --prompt-cache --prompt-cache-all --prompt-cache-ro ",
     "--session FILE keeps a conversation; within one nothing is read twice anyway"},
    {" -mli --multiline-input ",
     "lines between \"\"\" and \"\"\" are one message, and so are lines that end in \\"},
    {" --rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx ",
     "leave it out: the model file says it"},
    {" -lv --verbosity --log-verbosity ", "--log-level LEVEL does that"},
    {" --format ", "--json-schema '{}' makes the answer JSON; a schema says which"},
    {" --think ", "--reasoning on|off does that"},
    {" --version ", "`cairn --version` does that"},
    {" --modelfile ", "options of cairn run and --session FILE do that"},
};

constexpr Row kCommands[] = {
    {" push search ", "`cairn pull OWNER/REPO` fetches a model; cairn publishes and searches none"},
    {" download get ", "`cairn pull OWNER/REPO` does that"},
    {" ls ", "`cairn list` does that"},
    {" ps stop ", "models are loaded by `cairn run` and `cairn serve`, and go with them"},
    {" remove delete ", "`cairn rm NAME` does that"},
    {" alias ", "`cairn cp MODEL NAME` does that"},
    {" info ", "`cairn show NAME` does that"},
    {" chat generate complete completion ", "`cairn run FILE` does that"},
    {" server ", "`cairn serve FILE` does that"},
    {" create ", "`cairn convert DIR -o FILE` makes a model file"},
};

std::string_view advice_in(std::span<const Row> rows, std::string_view word) {
  for (const Row& row : rows) {
    // A row begins and ends with a blank, so that there is a character on both sides of a word.
    for (size_t at = row.words.find(word, 1); at != row.words.npos;
         at = row.words.find(word, at + 1)) {
      const bool is_whole = row.words[at - 1] == ' ' && row.words[at + word.size()] == ' ';
      if (is_whole) return row.advice;
    }
  }
  return {};
}

}  // namespace

std::string_view advice_for_option(std::string_view typed) {
  const bool is_word = typed.starts_with('-') && typed.find(' ') == typed.npos;
  return is_word ? advice_in(kOptions, typed) : std::string_view();
}

std::string_view advice_for_command(std::string_view word) {
  const bool is_word = !word.empty() && word.find(' ') == word.npos;
  return is_word ? advice_in(kCommands, word) : std::string_view();
}

}  // namespace cairn::command_line
