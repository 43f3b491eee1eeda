// The options of `cairn run`; run.h says what they mean together.
#include <memory>

#include "base/log.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/run.h"
#include "cli/options/engine_arguments.h"
#include "cli/options/model_argument.h"
#include "cli/options/preset_values.h"
#include "cli/options/sampling_arguments.h"

namespace cairn::cli {

namespace {

constexpr char kBuiltinModelDoc[] =
    "Without MODEL the built-in model runs: cairn nano, 4 million parameters, trained on made-up "
    "conversations. It repeats what it was told, copies, spells, counts and knows a few capitals "
    "and opposites. It shows that everything works; it is not a chat model. Its default is --temp "
    "0.\n"
    "Without -p and -f, piped input is the prompt; on a terminal a conversation starts.\n";

struct RunArguments {
  ExpectedDigests expected;
  RunOptions run;
  std::string repository;  // Of a model that other programs would download.
  bool has_escapes = false;
  EngineArguments engine;
  SamplingArguments sampling;
};

// What is said to the model.
void add_prompt(command_line::Options& command, RunOptions& run) {
  command.begin_group("Prompt");
  add_model(command, run.model_path);
  const command_line::Option prompt =
      command.add("PROMPT,-p,--prompt", run.prompt, "answer this text and exit")
          .notes_variable(run.is_variable_prompt);
  command.add("-f,--file", run.prompt_path, "answer the text in this file and exit; - is stdin")
      .takes("FILE")
      .excludes(prompt)
      .notes_variable(run.is_variable_prompt);
  command.add("--system,--system-prompt,-sys", run.system, "the system message").may_be_preset();
}

// Where it is computed.
void add_server(command_line::Options& command, RunOptions& run) {
  command.begin_group("Server");
  command
      .add("--server", run.server,
           "talk to the model of this server, which `cairn serve` started: http://HOST:PORT, "
           "https://HOST:PORT or unix:FILE; commands are the same")
      .takes("URL");
  command
      .add("--cacert,--server-ca", run.authority_path,
           "https: believe the certificates of this file, in PEM, and no others; default: those "
           "that this system knows")
      .takes("FILE");
  command
      .add("--api-key-file", run.api_key_path,
           "a file whose first line is the key that the server wants")
      .takes("FILE");
  command.add("--api-key", run.api_key, "the key; better as the variable CAIRN_API_KEY")
      .takes("KEY");
}

// What the answer is like, beside how it is sampled.
void add_answer(command_line::Options& command, RunOptions& run) {
  command.begin_group("Form of the answer", true);
  const command_line::Option schema =
      command
          .add("-j,--json-schema", run.constraint.json_schema,
               "the answer is JSON that matches this JSON Schema: the schema "
               "itself, or a file with it")
          .takes("FILE|SCHEMA");
  const command_line::Option grammar =
      command
          .add("--grammar,--grammar-file", run.constraint.grammar,
               "the answer matches this GBNF grammar: the grammar itself, or a "
               "file with it")
          .takes("FILE|GBNF")
          .excludes(schema);
  const command_line::Option regex =
      command
          .add("--regex", run.constraint.regex, "the whole answer matches this regular expression")
          .takes("REGEX")
          .excludes(schema)
          .excludes(grammar);
  command.add("--choice", run.constraint.choices, "the answer is one of these texts")
      .takes("TEXT,TEXT...")
      .separated_by(',')
      .excludes(schema)
      .excludes(grammar)
      .excludes(regex);
  command
      .add("--stop,--reverse-prompt,-r", run.stop,
           "end the answer before this text; may be given several times")
      .repeatable();
  command
      .add("--reasoning", run.reasoning,
           "on, off, or the largest number of tokens for reasoning; default: what the chat "
           "template does")
      .takes("on|off|N")
      .suggests({"on", "off"});
  command
      .add("--tools", run.tools_path,
           "tools that the model may call: a JSON list in the form of OpenAI's API")
      .takes("FILE");
  command
      .add("--tool-choice", run.tool_choice,
           "auto, none, required, or the name of the tool that must be called; calls then match "
           "the tool's JSON Schema")
      .takes("CHOICE")
      .suggests({"auto", "none", "required"});
}

// How the program talks.
void add_manner(command_line::Options& command, RunOptions& run) {
  command.begin_group("Input and output");
  command.add_flag("--raw,--no-conversation,-no-cnv", run.raw,
                   "use no chat template: continue the text as it is");
  command.add_flag("--json", run.json, "print one JSON object instead of text");
  command.add_flag("--chat,--interactive,-i,--conversation,-cnv", run.chat,
                   "hold a conversation, one line per message, even if stdin is not a terminal");
  command.add_flag("--no-history", run.forgets_lines,
                   "do not keep the lines that are typed for the next conversation");
  command.add("--in-prefix", run.message_prefix,
              "put this text before each message of a conversation");
  command
      .add("--session", run.session_path,
           "keep the conversation in this file: it is continued if the file exists, and written "
           "after each turn")
      .takes("FILE");
  command
      .add(
          "--receipt", run.receipt_path,
          "write how the last answer was computed to this file, so that `cairn replay` can compute "
          "it again and compare")
      .takes("FILE");
  command
      .add("--trace", run.trace_path,
           "write when the engine computed, read and loaded what to this file, which Perfetto "
           "(ui.perfetto.dev) shows; no prompts; at most 256 MiB")
      .takes("FILE");
  const command_line::Option quiet =
      command.add_flag("-q,--quiet", run.quiet, "show no statistics after answers");
  command
      .add_flag("-v,--verbose", run.verbose,
                "show all statistics after each answer, and messages of level info")
      .excludes(quiet);
}

std::string without_escapes(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const char meant = next == 'n' ? '\n' : next == 't' ? '\t' : next == '\\' ? '\\' : '\0';
    out += meant != '\0' ? meant : text[i];
    i += meant != '\0' ? 1 : 0;
  }
  return out;
}

// -hf OWNER/REPO:QUANT is another spelling of hf:OWNER/REPO:QUANT.
Status take_repository(const std::string& repository, std::string& path) {
  if (repository.empty()) return Ok{};
  if (!path.empty()) {
    return fail(ErrorCode::invalid_argument, "--hf-repo: expected it or MODEL, found both");
  }
  path = "hf:" + repository;
  return Ok{};
}

command_line::Action add_run(command_line::Options& command) {
  const auto a = std::make_shared<RunArguments>();
  add_prompt(command, a->run);
  command
      .add("-n,--max-tokens,--n-predict,--predict", a->run.token_count_max,
           "the largest number of tokens in an answer; -1: no limit")
      .in_range(-1, 1 << 30)
      .may_be_preset();
  command.add_flag("-e,--escape", a->has_escapes,
                   "in PROMPT, \\n is a line feed, \\t a tab and \\\\ a backslash");
  add_manner(command, a->run);
  add_answer(command, a->run);
  add_server(command, a->run);
  a->sampling.add_to(command);
  command.add("--hf-repo,-hf,-hfr", a->repository, "a model of a hub").hidden();
  a->engine.add_to(command);
  a->engine.add_program_to(command);
  a->engine.add_memory_to(command);
  a->engine.add_store_to(command);
  a->engine.add_drafts_to(command);
  command.set_preset([a] { return read_preset(a->run.model_path); });
  a->expected.add_to(command);
  add_sandbox(command, a->run.sandbox);
  command.set_notes(kBuiltinModelDoc);
  command.add_example("cairn run", "a conversation with the built-in model");
  command.add_example("cairn run MODEL.gguf", "a conversation with your model");
  command.add_example("cairn run --server http://127.0.0.1:8080",
                      "a conversation with a server's model");
  command.add_example("cairn run MODEL.gguf -p \"Why is the sky blue?\"", "one answer");
  command.add_example("cairn run MODEL.gguf -sys \"Summarize.\" < report.txt",
                      "piped input is the prompt");
  command.add_example("cairn run MODEL.gguf --json-schema schema.json -f letter.txt",
                      "an answer in a given form");
  return [a]() -> Result<int> {
    CAIRN_TRY(take_repository(a->repository, a->run.model_path));
    CAIRN_TRY(a->run.engine, a->engine.read("f16"));
    CAIRN_TRY(a->run.sampling, a->sampling.read());
    if (a->run.verbose && !log::is_shown(log::Level::info)) log::set_level(log::Level::info);
    if (a->has_escapes && a->run.prompt) a->run.prompt = without_escapes(*a->run.prompt);
    if (a->run.server.empty()) {
      CAIRN_TRY(a->run.model_path, a->expected.find(a->run.model_path));
    }
    return run(a->run);
  };
}

}  // namespace

const command_line::Command kRunCommand = {"run", "answer a prompt or hold a conversation",
                                           add_run};

}  // namespace cairn::cli
