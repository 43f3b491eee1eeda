// Reading lines, answering them, and the commands.
#include "cli/chat_loop.h"

#include <cstdio>
#include <iterator>
#include <optional>

#include "base/printable.h"
#include "cli/exit_codes.h"
#include "cli/interrupt.h"
#include "cli/report.h"

namespace cairn::cli {

namespace {

constexpr char kPrompt[] = "> ";
constexpr char kContinuationPrompt[] = ". ";

// A remark of the program's own, beside the conversation.
void remark(std::string_view text) {
  std::fprintf(stderr, "%s\n", printable(text).c_str());
}

}  // namespace

struct ChatLoop::Command {
  std::string_view name;
  std::string_view argument;
  std::string_view doc;
  Next (ChatLoop::*run)(std::string_view rest);
};

const ChatLoop::Command ChatLoop::kCommands[] = {
    {"/help", "", "shows this", &ChatLoop::help},
    {"/regen", "", "makes the last answer anew, with the next seed", &ChatLoop::regenerate},
    {"/clear", "", "forgets the conversation", &ChatLoop::clear},
    {"/system", "TEXT", "sets the system message; without TEXT removes it", &ChatLoop::set_system},
    {"/memory", "", "shows what the conversation occupies", &ChatLoop::show_memory},
    {"/exit", "", "ends the program, as Ctrl-D does", &ChatLoop::leave},
};

ChatLoop::ChatLoop(Engine* engine, ChatSession* session, std::string model_name,
                   bool shows_statistics)
    : engine_(engine),
      session_(session),
      model_name_(std::move(model_name)),
      shows_statistics_(shows_statistics),
      out_(stdout),
      editor_(stdin, stdout, default_history_path()) {}

Result<int> ChatLoop::run() {
  // Between prompt and answer too, Ctrl-C must not end the conversation.
  const InterruptGuard guard;
  greet();
  bool was_interrupt = false;
  std::string message;
  while (true) {
    const LineEditor::Event event = read_message(message);
    if (event == LineEditor::Event::end) break;
    if (event == LineEditor::Event::interrupt) {
      if (was_interrupt) return kExitInterrupted;
      was_interrupt = true;
      remark("Ctrl-C again, Ctrl-D or /exit ends the program.");
      continue;
    }
    was_interrupt = false;
    if (handle(message) == Next::leave) break;
    CAIRN_TRY(out_.finish());
  }
  return kExitFine;
}

void ChatLoop::greet() {
  if (!is_terminal(stdin)) return;
  remark(fmt::format("{}: {} ({} million parameters). /help lists commands, Ctrl-D ends.",
                     model_name_, engine_->architecture(),
                     (engine_->parameter_count() + 500000) / 1000000));
}

// A message is a line, or several where each but the last ends with a backslash.
LineEditor::Event ChatLoop::read_message(std::string& message) {
  message.clear();
  const char* prompt = kPrompt;
  while (true) {
    std::string line;
    const LineEditor::Event event = editor_.read(prompt, line);
    if (event != LineEditor::Event::line) return event;
    editor_.remember(line);
    if (!line.ends_with('\\')) {
      message += line;
      return event;
    }
    line.back() = '\n';
    message += line;
    prompt = kContinuationPrompt;
  }
}

ChatLoop::Next ChatLoop::handle(const std::string& message) {
  if (message.find_first_not_of(" \t\n") == std::string::npos) return Next::go_on;
  if (message.starts_with('/')) return handle_command(message);
  answer(false, message);
  return Next::go_on;
}

ChatLoop::Next ChatLoop::handle_command(std::string_view line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view name = line.substr(0, end);
  std::string_view rest = line.substr(end);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  for (const Command& command : kCommands) {
    if (command.name == name) return (this->*command.run)(rest);
  }
  remark(fmt::format("{}: no such command; /help lists them. A message may start with a blank.",
                     name));
  return Next::go_on;
}

void ChatLoop::answer(bool again, std::string_view text) {
  std::optional<Progress> progress;
  progress.emplace("reading", Progress::Unit::tokens);
  bool is_at_line_start = true;
  const AnswerHooks hooks{
      .on_text =
          [&](std::string_view piece) {
            progress.reset();
            out_.write(piece);
            is_at_line_start = piece.ends_with('\n');
          },
      .on_prompt =
          [&](int32_t done, int32_t total) {
            if (progress) progress->update(uint64_t(done), uint64_t(total));
          },
      .wants_stop = [] { return interrupted(); },
  };
  const InterruptGuard guard;
  Result<Answer> made = again ? session_->regenerate(hooks) : session_->say(text, hooks);
  progress.reset();
  if (!is_at_line_start) out_.write("\n");
  if (!made) {
    remark("cairn: " + made.error().message);
  } else if (shows_statistics_) {
    const bool dim = uses_color(stderr);
    const std::string line = statistics_line(*made, engine_->memory().usage());
    std::fprintf(stderr, "%s[%s]%s\n", dim ? "\033[2m" : "", line.c_str(), dim ? "\033[0m" : "");
  }
}

ChatLoop::Next ChatLoop::help(std::string_view /*rest*/) {
  for (const Command& command : kCommands) {
    remark(fmt::format("{:<8}{:<6}{}", command.name, command.argument, command.doc));
  }
  remark("A line that ends with \\ goes on in the next one. Ctrl-C stops an answer.");
  return Next::go_on;
}

ChatLoop::Next ChatLoop::leave(std::string_view /*rest*/) {
  return Next::leave;
}

ChatLoop::Next ChatLoop::clear(std::string_view /*rest*/) {
  session_->clear();
  return Next::go_on;
}

ChatLoop::Next ChatLoop::regenerate(std::string_view /*rest*/) {
  answer(true, {});
  return Next::go_on;
}

ChatLoop::Next ChatLoop::set_system(std::string_view rest) {
  session_->set_system(rest);
  return Next::go_on;
}

ChatLoop::Next ChatLoop::show_memory(std::string_view /*rest*/) {
  const memory::Sequence& sequence = session_->generator().sequence();
  remark(fmt::format("{} tokens held, room for {} more; memory {}", sequence.length(),
                     session_->generator().room(), memory_line(engine_->memory().usage())));
  return Next::go_on;
}

}  // namespace cairn::cli
