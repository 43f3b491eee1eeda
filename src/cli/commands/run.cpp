// Choosing between a prompt and a conversation, and showing one answer.
#include "cli/commands/run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/env.h"
#include "base/file.h"
#include "base/function_ref.h"
#include "base/log.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "base/trace/trace.h"
#include "cli/commands/load.h"
#include "command_line/command_line.h"
#include "command_line/exit_codes.h"
#include "session/chat_session.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"
#include "terminal_chat/answer_printer.h"
#include "terminal_chat/chat_loop.h"
#include "terminal_chat/chat_settings.h"
#include "terminal_chat/local_chat.h"
#include "terminal_chat/remote_chat.h"
#include "terminal_chat/report.h"

namespace cairn::cli {

namespace {

using terminal_chat::Ask;
using terminal_chat::Chat;
using terminal_chat::Figures;

constexpr size_t kPromptBytesMax = size_t(64) << 20;
constexpr size_t kToolsBytesMax = size_t(16) << 20;
constexpr char kFileHint[] =
    "files lie in the folder that cairn was started in, or in one that --sandbox-path names";

// What was piped to a run whose prompt is only the environment's; nothing where there is none.
Result<std::string> piped_before_variable(const RunOptions& options) {
  struct stat input = {};
  const bool is_piped = !options.chat && ::fstat(STDIN_FILENO, &input) == 0 &&
                        (S_ISREG(input.st_mode) || S_ISFIFO(input.st_mode));
  if (!options.is_variable_prompt || !is_piped) return std::string();
  CAIRN_TRY(std::string text, read_standard_input(kPromptBytesMax));
  if (!text.empty()) {
    log::warning("{}: expected no piped input beside it, found some, which is the prompt now",
                 options.prompt ? "CAIRN_PROMPT" : "CAIRN_FILE");
  }
  return text;
}

// The one prompt of this run, or nothing for a conversation.
Result<std::optional<std::string>> find_prompt(const RunOptions& options) {
  CAIRN_TRY(std::string text, piped_before_variable(options));
  const bool is_piped = !text.empty();
  if (is_piped) {
    // It stands for what the environment says.
  } else if (options.prompt) {
    text = *options.prompt;
  } else if (options.prompt_path || (!options.chat && !terminal::is_terminal(stdin))) {
    CAIRN_TRY(text, read_input(options.prompt_path.value_or("-"), kPromptBytesMax));
  } else {
    return std::optional<std::string>();
  }
  // The newline that ends a text file is not part of what is said. A raw prompt is exact.
  const bool is_text_file = is_piped || !options.prompt;
  if (is_text_file && !options.raw && text.ends_with('\n')) text.pop_back();
  if (text.empty()) {
    return fail(ErrorCode::invalid_argument,
                "prompt: expected some text (-p TEXT, -f FILE, or piped input), found none");
  }
  return std::optional<std::string>(std::move(text));
}

// The same choice with the texts of its files. A schema is told from a file's name by how it
// begins: no file is called "{".
Result<session::ConstraintChoice> read_constraint(session::ConstraintChoice choice) {
  constexpr size_t kSourceBytesMax = 1 << 20;
  if (choice.count() > 1) {
    return fail(ErrorCode::invalid_argument,
                "expected one of --json-schema, --grammar, --regex and --choice, found {}",
                choice.count());
  }
  if (choice.json_schema) {
    const size_t begin = choice.json_schema->find_first_not_of(" \t\r\n");
    const bool is_schema = begin != std::string::npos && (*choice.json_schema)[begin] == '{';
    if (!is_schema) {
      CAIRN_TRY(choice.json_schema, read_input(*choice.json_schema, kSourceBytesMax));
    }
  }
  // Every grammar has a rule, and no file's name is like one.
  if (choice.grammar && choice.grammar->find("::=") == std::string::npos) {
    CAIRN_TRY(choice.grammar, read_input(*choice.grammar, kSourceBytesMax));
  }
  return choice;
}

// The answer to what is asked.
Result<session::Answer> print_answer(terminal::TextOut& out, bool is_silent, Chat& chat,
                                     const Ask& ask) {
  CAIRN_TRY(chat.begin(ask));
  terminal_chat::AnswerPrinter printer(&out, is_silent);
  Result<session::Answer> answer = chat.complete(printer.hooks());
  printer.finish();
  return answer;
}

// Shows the calls and reads a line for the result of each; false where there are none.
Result<bool> read_results(const Chat& chat, std::vector<std::string>& results) {
  results.clear();
  for (const chat::ToolCall& call : chat.dialogue().open_calls()) {
    std::fprintf(stderr, "call: %s\n", printable(terminal_chat::call_line(call)).c_str());
    std::string result;
    CAIRN_TRY(const bool is_there, read_line(stdin, result, kPromptBytesMax));
    if (!is_there) return false;
    results.push_back(std::move(result));
  }
  return !results.empty();
}

Figures figures_of(const RunOptions& options) {
  if (options.verbose) return Figures::all;
  return options.quiet || !terminal::is_terminal(stderr) ? Figures::none : Figures::brief;
}

void show_figures(Figures figures, const session::Answer& answer, Chat& chat) {
  if (figures == Figures::none) return;
  const std::string line = chat.figures(figures, answer);
  std::fprintf(stderr, figures == Figures::brief ? "%s\n" : "[%s]\n", line.c_str());
}

Result<int> answer_once(const RunOptions& options, Chat& chat, const std::string& prompt) {
  terminal::TextOut out(stdout);
  const terminal::InterruptGuard guard;
  CAIRN_TRY(session::Answer answer, print_answer(out, options.json, chat, {.text = prompt}));
  Ask results{.kind = Ask::Kind::results};
  while (!options.json && answer.finish == session::FinishReason::tool_calls) {
    CAIRN_TRY(const bool is_answered, read_results(chat, results.results));
    if (!is_answered) break;
    CAIRN_TRY(answer, print_answer(out, options.json, chat, results));
  }
  if (!options.session_path.empty()) CAIRN_TRY(chat.save(options.session_path));
  if (!options.receipt_path.empty()) CAIRN_TRY(chat.write_receipt(options.receipt_path));
  if (options.json) {
    CAIRN_TRY(const std::string json, chat.json_of(answer));
    out.write(json);
    out.write("\n");
  }
  CAIRN_TRY(out.finish());
  show_figures(figures_of(options), answer, chat);
  if (const std::string cut = terminal_chat::cut_line(answer); !cut.empty()) {
    std::fprintf(stderr, "cairn: %s\n", printable(cut).c_str());
  }
  if (answer.finish == session::FinishReason::interrupted) return command_line::kExitInterrupted;
  return answer.fits_form ? command_line::kExitFine : command_line::kExitCut;
}

// Before a model is loaded: whether a file of the conversation can be written where it has to be.
Status check_file(std::string_view option, const std::string& path,
                  std::initializer_list<std::string> inputs) {
  if (path.empty()) return Ok{};
  if (path == "-") return fail(ErrorCode::invalid_argument, "{}: expected a file, found -", option);
  std::vector<FileIdentity> read;
  for (const std::string& input : inputs) {
    if (const auto file = identity_of(input)) read.push_back(*file);
  }
  return check_output(path, {.inputs = read});
}

// Goes on with the conversation that is in the session's file, where there is one.
Status take_up_session(const RunOptions& options, Chat& chat) {
  if (options.session_path.empty()) return Ok{};
  if (const Status loaded = chat.load(options.session_path); !loaded) {
    if (loaded.error().code != ErrorCode::not_found) return loaded;
    return Ok{};
  }
  if (!options.system.empty()) CAIRN_TRY(chat.set_system(options.system));
  if (options.quiet || !terminal::is_terminal(stderr)) return Ok{};
  std::fprintf(stderr, "%s: going on after %d turns\n", printable(options.session_path).c_str(),
               int(chat.dialogue().turn_count()));
  return Ok{};
}

// What can be told before a model is loaded.
Status check_options(const RunOptions& options, bool is_conversation) {
  if (is_conversation && options.json) {
    return fail(ErrorCode::invalid_argument, "--json: expected a prompt, found a conversation");
  }
  if (!options.tool_choice.empty() && options.tools_path.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--tool-choice: expected --tools beside it, found none");
  }
  const std::string prompt = options.prompt_path.value_or("");
  if (!options.trace_path.empty() &&
      (options.trace_path == options.session_path || options.trace_path == options.receipt_path)) {
    return fail(ErrorCode::invalid_argument, "--trace: expected a file of its own, found {}",
                options.trace_path);
  }
  CAIRN_TRY(check_file("--trace", options.trace_path,
                       {options.model_path, options.session_path, options.receipt_path, prompt}));
  CAIRN_TRY(check_file("--session", options.session_path, {options.model_path}));
  return check_file("--receipt", options.receipt_path,
                    {options.model_path, options.session_path, prompt});
}

// The matcher's constraint is the session's too.
Result<session::ChatOptions> chat_options_of(const RunOptions& options,
                                             const sample::SamplingParams& sampling,
                                             session::ConstraintChoice constraint,
                                             grammar::Matcher* matcher) {
  session::ChatOptions chat{.system = options.system,
                            .sampling = sampling,
                            .token_count_max = options.token_count_max,
                            .matcher = matcher,
                            .raw = options.raw};
  chat.stop = options.stop;
  chat.keeps_receipts = !options.receipt_path.empty();
  chat.keeps_seed = options.sampling.seed.has_value() || options.sampling.tells_seed;
  chat.constraint = std::move(constraint);
  if (!options.reasoning.empty()) {
    const Status set = terminal_chat::set_reasoning_option(chat, options.reasoning);
    if (!set) return command_line::as_option(set.error());
  }
  if (!options.tools_path.empty()) {
    CAIRN_TRY(chat.tools, read_input(options.tools_path, kToolsBytesMax));
  }
  chat.tool_choice = options.tool_choice;
  return chat;
}

// All that a run opens from here on. In a conversation a person names further files, which lie in
// the folder that the program was started in, unless that is where all folders are.
SandboxRules sandbox_rules(const RunOptions& options, bool is_conversation) {
  SandboxRules rules;
  allow_model(options.model_path, rules);
  allow_engine(options.engine, rules);
  for (const auto& source : {options.constraint.json_schema, options.constraint.grammar}) {
    if (source) rules.readable.push_back(*source);
  }
  rules.readable.push_back(options.tools_path);
  allow_output(options.session_path, rules);
  allow_output(options.receipt_path, rules);
  if (!is_conversation) return rules;
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (here.has_relative_path()) rules.writable.push_back(here.string());
  // What the line editor reads of the terminal and its letters.
  for (const char* path :
       {"/usr/lib/locale", "/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo"}) {
    rules.readable.push_back(path);
  }
  rules.readable.push_back(env("TERMINFO").value_or(""));
  rules.readable.push_back(env("HOME").value_or("") + "/.terminfo");
  if (options.forgets_lines) return rules;
  const std::filesystem::path history = terminal::default_history_path();
  std::filesystem::create_directories(history.parent_path(), error);
  allow_output(history.string(), rules);
  return rules;
}

Result<int> converse(const RunOptions& options, Chat& chat, bool is_sandboxed) {
  terminal_chat::ChatLoop loop(
      &chat, {.figures = figures_of(options),
              .history_path = options.forgets_lines ? "" : terminal::default_history_path(),
              .session_path = options.session_path,
              .receipt_path = options.receipt_path,
              .message_prefix = options.message_prefix,
              .file_hint = is_sandboxed ? kFileHint : ""});
  return loop.run();
}

Result<int> hold(const RunOptions& options, Chat& chat, const std::optional<std::string>& prompt,
                 bool is_sandboxed) {
  CAIRN_TRY(take_up_session(options, chat));
  return prompt ? answer_once(options, chat, *prompt) : converse(options, chat, is_sandboxed);
}

// What belongs to a model that is computed here.
Status check_remote(const RunOptions& options) {
  const auto expect_none = [](bool is_there, std::string_view name) -> Status {
    if (!is_there) return Ok{};
    return fail(ErrorCode::invalid_argument,
                "{}: expected none beside --server, whose model answers; found some", name);
  };
  CAIRN_TRY(expect_none(!options.model_path.empty(), "MODEL"));
  CAIRN_TRY(expect_none(options.raw, "--raw"));
  CAIRN_TRY(expect_none(options.json, "--json"));
  CAIRN_TRY(expect_none(!options.trace_path.empty(), "--trace"));
  CAIRN_TRY(expect_none(!options.engine.cache_dir.empty(), "--cache-dir"));
  return expect_none(!options.engine.adapters.empty(), "--lora");
}

Result<std::string> server_key(const RunOptions& options) {
  if (options.api_key_path.empty()) return options.api_key;
  constexpr size_t kKeyBytesMax = 4096;
  CAIRN_TRY(std::string text, read_input(options.api_key_path, kKeyBytesMax));
  text.resize(std::min(text.find_first_of("\r\n"), text.size()));
  return text;
}

Result<int> run_remote(const RunOptions& options, const std::optional<std::string>& prompt) {
  CAIRN_TRY(check_remote(options));
  CAIRN_TRY(session::ConstraintChoice constraint, read_constraint(options.constraint));
  CAIRN_TRY(session::ChatOptions chat_options,
            chat_options_of(options, {}, std::move(constraint), nullptr));
  CAIRN_TRY(std::string key, server_key(options));
  CAIRN_TRY(const std::unique_ptr<terminal_chat::RemoteChat> chat,
            terminal_chat::RemoteChat::start({.url = options.server,
                                              .key = std::move(key),
                                              .authority_path = options.authority_path,
                                              .sampling = options.sampling,
                                              .chat = std::move(chat_options)}));
  return hold(options, *chat, prompt, false);
}

}  // namespace

Result<int> run(const RunOptions& options) {
  if (options.server.empty()) CAIRN_TRY(check_model_name(options.model_path));
  if (!options.receipt_path.empty() && options.engine.numerics != Numerics::exact_1) {
    return fail(ErrorCode::invalid_argument,
                "--receipt: expected --numerics exact, by which answers that are read again have "
                "the same bits, found fast");
  }
  CAIRN_TRY(const std::optional<std::string> prompt, find_prompt(options));
  CAIRN_TRY(check_options(options, !prompt));
  if (!options.server.empty()) return run_remote(options, prompt);
  std::unique_ptr<Trace> trace;
  if (!options.trace_path.empty()) {
    CAIRN_TRY(trace, Trace::open(options.trace_path));
  }
  CAIRN_TRY(const bool is_sandboxed,
            enter_sandbox(options.sandbox, sandbox_rules(options, !prompt)));
  if (is_sandboxed) CAIRN_TRY(seal_sandbox());
  EngineOptions engine_options = options.engine;
  engine_options.trace = trace.get();
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load_engine(options.model_path, engine_options));
  const bool is_builtin = options.model_path.empty();
  CAIRN_TRY(const sample::SamplingParams sampling,
            session::effective_sampling(engine->file().fields(), is_builtin, options.sampling));
  if (options.sampling.tells_seed) {
    std::fprintf(stderr, "cairn: seed %llu\n", static_cast<unsigned long long>(sampling.seed));
  }
  const Status biased = sample::check_logit_bias(sampling, engine->size().vocabulary_count);
  if (!biased) return command_line::as_option(biased.error());
  std::unique_ptr<grammar::Matcher> matcher;
  session::ConstraintChoice constraint;
  if (engine->tokenizer() != nullptr) {
    CAIRN_TRY(constraint, read_constraint(options.constraint));
    CAIRN_TRY(matcher, session::make_matcher(constraint, engine->text()));
  }
  CAIRN_TRY(session::ChatOptions chat_options,
            chat_options_of(options, sampling, std::move(constraint), matcher.get()));
  CAIRN_TRY(session::ChatSession session,
            session::ChatSession::start(engine.get(), std::move(chat_options)));
  if (session.is_raw() && !options.raw) {
    std::fprintf(stderr, "cairn: the model has no chat template: it gets the text as it is\n");
  }
  // Between the questions of a person there is time to read ahead.
  std::unique_ptr<session::Service> service;
  if (!prompt && terminal::is_terminal(stdin)) {
    CAIRN_TRY(service, session::Service::start(engine.get()));
    service->lock();
  }
  terminal_chat::LocalChat chat(engine.get(), &session, service.get(),
                                input_files(engine->file(), engine->options()));
  Result<int> code = hold(options, chat, prompt, is_sandboxed);
  if (service) service->unlock();
  return code;
}

}  // namespace cairn::cli
