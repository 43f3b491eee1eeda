// The options of `cairn run`; run.h says what they mean together.
#include <memory>

#include "base/log.h"
#include "cli/commands/commands.h"
#include "cli/commands/run.h"
#include "cli/options/engine_arguments.h"
#include "cli/options/sampling_arguments.h"

namespace cairn::cli {

namespace {

constexpr char kBuiltinModelDoc[] =
    "Without MODEL the built-in one runs: cairn nano, 4 million parameters, trained on made-up\n"
    "conversations. It recalls what it is told, copies, spells, counts and knows a few capitals "
    "and\n"
    "opposites. It is there to show that everything works; it is not a chat model.\n"
    "It answers greedily (--temp 0) unless told otherwise. Without -p and -f, piped\n"
    "input is the prompt; on a terminal a conversation starts.\n";

struct Arguments {
  RunOptions run;
  std::string repository;  // Of a model that other programs would download.
  EngineArguments engine;
  SamplingArguments sampling;
};

// What is said to the model.
void add_prompt(Options& command, RunOptions& run) {
  command.add("MODEL,-m,--model", run.model_path, "a GGUF file (of a split model: the first)");
  const Option prompt = command.add("-p,--prompt", run.prompt, "answer this and end");
  const Option file =
      command.add("-f,--file", run.prompt_path, "answer the text in this file; -: from input")
          .excludes(prompt);
  command.watch(prompt, run.is_variable_prompt);
  command.watch(file, run.is_variable_prompt);
  command.add("--system,--system-prompt,-sys", run.system, "the system message");
}

// What the answer is like, beside how it is sampled.
void add_answer(Options& command, RunOptions& run) {
  const Option schema =
      command.add("--json-schema", run.constraint.json_schema,
                  "the answer is JSON that this schema (or this file's) describes");
  const Option grammar =
      command
          .add("--grammar", run.constraint.grammar, "the answer fits the GBNF grammar in this file")
          .excludes(schema);
  const Option regex =
      command.add("--regex", run.constraint.regex, "the whole answer fits this regular expression")
          .excludes(schema)
          .excludes(grammar);
  command.add("--choice", run.constraint.choices, "the answer is one of these, between commas")
      .separated_by(',')
      .excludes(schema)
      .excludes(grammar)
      .excludes(regex);
  command.add("--stop", run.stop, "a text that ends the answer; may be said again").repeatable();
  command.add("--reasoning", run.reasoning,
              "on, off, or at most so many tokens of it; else as the template has it");
  command.add("--tools", run.tools_path,
              "tools that the model may call: a JSON list in OpenAI's form");
  command.add("--tool-choice", run.tool_choice,
              "auto, none, required or a tool's name: calls fit the tools' schemas");
}

// How the program talks.
void add_manner(Options& command, RunOptions& run) {
  command.add_flag("--raw", run.raw, "no chat template: continue the text as it is");
  command.add_flag("--json", run.json, "one JSON object instead of text");
  command.add_flag("--no-history", run.forgets_lines,
                   "what is typed is not kept for the next chat (docs/terminal-chat.md)");
  command.add_flag("--chat", run.chat, "converse line by line even when input is no terminal");
  command.add_flag("-v,--verbose", run.verbose, "statistics even when stderr is no terminal");
}

// cairn opens no connection.
Error refuse_download(const std::string& repository) {
  const std::string_view name = std::string_view(repository).substr(0, repository.find(':'));
  return fail(ErrorCode::invalid_argument,
              "--hf-repo: cairn downloads nothing; take a file from "
              "https://huggingface.co/{}/tree/main and type: cairn run FILE.gguf",
              name);
}

Action add_run(Options& command) {
  const auto a = std::make_shared<Arguments>();
  add_prompt(command, a->run);
  command
      .add("-n,--max-tokens,--n-predict,--predict", a->run.token_count_max,
           "at most so many tokens an answer; -1: as many as it takes")
      .in_range(-1, 1 << 30);
  a->sampling.add_to(command);
  add_answer(command, a->run);
  add_manner(command, a->run);
  command.add("--hf-repo,-hf,-hfr", a->repository, "a model of a hub").hidden();
  a->engine.add_to(command);
  a->engine.add_memory_to(command);
  command.set_footer(kBuiltinModelDoc);
  return [a]() -> Result<int> {
    if (!a->repository.empty()) return refuse_download(a->repository);
    CAIRN_TRY(a->run.engine, a->engine.read("f16"));
    CAIRN_TRY(a->run.sampling, a->sampling.read());
    if (a->run.verbose) log::set_level(log::Level::info);
    return run(a->run);
  };
}

}  // namespace

const Command kRunCommand = {"run", "answer a prompt or hold a conversation", add_run};

}  // namespace cairn::cli
