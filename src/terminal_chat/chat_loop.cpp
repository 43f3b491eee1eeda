// Reading lines, answering them, and the commands.
#include "terminal_chat/chat_loop.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "base/env.h"
#include "base/printable.h"
#include "base/text/nearest_name.h"
#include "command_line/exit_codes.h"
#include "terminal/interrupt.h"
#include "terminal_chat/answer_printer.h"
#include "terminal_chat/chat_settings.h"
#include "terminal_chat/report.h"

namespace cairn::terminal_chat {

namespace {

constexpr char kPrompt[] = "> ";
constexpr char kContinuationPrompt[] = ". ";
constexpr char kEditPrompt[] = "edit> ";
constexpr char kResultPrompt[] = "result> ";
constexpr std::string_view kBlockMark = "\"\"\"";
constexpr size_t kMessageBytesMax = size_t(64) << 20;  // As of a prompt in a file.

// A remark of the program's own, beside the conversation.
void remark(std::string_view text) {
  std::fprintf(stderr, "%s\n", printable(text).c_str());
}

// How to go on with an answer that was cut off.
std::string_view hint_for(session::FinishReason finish) {
  switch (finish) {
    case session::FinishReason::length:
      return "; /continue goes on";
    case session::FinishReason::memory:
      return "; /continue goes on when there is room";
    default:
      return "";
  }
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
    {"/regen", "", "makes another last answer, with the next seed", &ChatLoop::regenerate},
    {"/retry", "[N=V …]", "the same with other settings, as temperature=0.2", &ChatLoop::retry},
    {"/set", "N V", "changes a setting for the answers to come", &ChatLoop::set},
    {"/show", "[N]", "shows the settings, or one of them", &ChatLoop::show},
    {"/lora", "[N:S …]", "changes the adapters; off: none; without a name lists them",
     &ChatLoop::adapters},
    {"/continue", "", "goes on with an answer that was stopped", &ChatLoop::go_on},
    {"/edit", "[TEXT]", "changes your last message and answers it", &ChatLoop::edit},
    {"/rewind", "[TURNS]", "takes back the last turns (default: 1)", &ChatLoop::rewind},
    {"/fork", "[NAME]", "goes on in a new branch; this one stays as it is", &ChatLoop::fork},
    {"/switch", "NAME", "goes on in another branch", &ChatLoop::switch_branch},
    {"/branches", "", "lists the branches", &ChatLoop::list_branches},
    {"/memory", "", "draws what the conversation keeps", &ChatLoop::show_memory},
    {"/save", "FILE", "writes the conversation's text as JSON", &ChatLoop::save},
    {"/save!", "FILE", "the same in place of a file that is there", &ChatLoop::save_over},
    {"/load", "FILE", "goes on with a conversation that was saved", &ChatLoop::load},
    {"/clear", "", "forgets the conversation", &ChatLoop::clear},
    {"/system", "[TEXT]", "sets the system message; without TEXT removes it",
     &ChatLoop::set_system},
    {"/exit", "", "ends the program, as Ctrl-D, /quit and /bye do", &ChatLoop::leave},
};

// Other spellings of commands.
constexpr std::pair<std::string_view, std::string_view> kSameCommands[] = {
    {"/?", "/help"}, {"/quit", "/exit"}, {"/bye", "/exit"}};

ChatLoop::ChatLoop(Chat* chat, ChatLoopOptions options)
    : chat_(chat),
      figures_(options.figures),
      session_path_(std::move(options.session_path)),
      receipt_path_(std::move(options.receipt_path)),
      message_prefix_(std::move(options.message_prefix)),
      file_hint_(std::move(options.file_hint)),
      kept_change_(chat->change_count()),
      out_(stdout),
      editor_(stdin, stdout, std::move(options.history_path)) {
  if (session_path_.empty()) return;
  if (const auto kept = identity_of(session_path_)) own_files_.push_back(*kept);
}

Result<int> ChatLoop::run() {
  // Between prompt and answer too, Ctrl-C must not end the conversation.
  const terminal::InterruptGuard guard;
  greet();
  answer_calls();  // A session may have been left before the results of its last calls.
  keep_session();
  bool was_interrupt = false;
  std::string message;
  while (true) {
    const terminal::LineEditor::Event event = read_in_pause(message);
    if (event == terminal::LineEditor::Event::end) break;
    if (event == terminal::LineEditor::Event::failure) return editor_.error();
    if (event == terminal::LineEditor::Event::interrupt) {
      if (was_interrupt) return command_line::kExitInterrupted;
      was_interrupt = true;
      remark("Ctrl-C again, Ctrl-D or /exit ends the program.");
      continue;
    }
    was_interrupt = false;
    if (handle(message) == Next::leave) break;
    keep_session();
    CAIRN_TRY(out_.finish());
  }
  return command_line::kExitFine;
}

void ChatLoop::greet() {
  if (!terminal::is_terminal(stdin)) return;
  remark(chat_->greeting() + ". /help lists commands, Ctrl-D ends.");
}

terminal::LineEditor::Event ChatLoop::read_in_pause(std::string& message) {
  chat_->begin_pause();
  const terminal::LineEditor::Event event = read_message(message);
  chat_->end_pause();
  return event;
}

// A message is a line, or several where each but the last ends with a backslash, or those between
// two marks of three quotes.
terminal::LineEditor::Event ChatLoop::read_message(std::string& message) {
  message.clear();
  const char* prompt = kPrompt;
  while (true) {
    std::string line;
    const terminal::LineEditor::Event event =
        editor_.read(prompt, line, kMessageBytesMax - message.size());
    if (event == terminal::LineEditor::Event::end && !message.empty())
      return terminal::LineEditor::Event::line;
    if (event != terminal::LineEditor::Event::line) return event;
    editor_.remember(line);
    if (message.empty() && line.starts_with(kBlockMark)) {
      message = line.substr(kBlockMark.size());
      // Of a pasted block the whole stands on one line.
      if (message.starts_with('\n')) message.erase(0, 1);
      return read_block(message);
    }
    if (!line.ends_with('\\')) {
      message += line;
      return event;
    }
    line.back() = '\n';
    message += line;
    prompt = kContinuationPrompt;
  }
}

// The end of the input ends a block as well, and what was written counts.
terminal::LineEditor::Event ChatLoop::read_block(std::string& message) {
  while (!message.ends_with(kBlockMark)) {
    std::string line;
    const terminal::LineEditor::Event event =
        editor_.read(kContinuationPrompt, line, kMessageBytesMax - message.size());
    if (event == terminal::LineEditor::Event::end) return terminal::LineEditor::Event::line;
    if (event != terminal::LineEditor::Event::line) return event;
    if (!message.empty()) message += '\n';
    message += line;
  }
  message.resize(message.size() - kBlockMark.size());
  if (message.ends_with('\n')) message.pop_back();
  return terminal::LineEditor::Event::line;
}

ChatLoop::Next ChatLoop::handle(const std::string& message) {
  if (message.find_first_not_of(" \t\n") == std::string::npos) return Next::go_on;
  if (message.starts_with('/')) return handle_command(message);
  return answer({.text = message_prefix_ + message});
}

ChatLoop::Next ChatLoop::handle_command(std::string_view line) {
  const size_t end = std::min(line.find(' '), line.size());
  std::string_view name = line.substr(0, end);
  std::string_view rest = line.substr(end);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  for (const auto& [other, kept] : kSameCommands) {
    if (name == other) name = kept;
  }
  for (const Command& command : kCommands) {
    if (command.name == name) return (this->*command.run)(rest);
  }
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  const std::string nearest = nearest_name(name, names);
  remark(fmt::format("{}: no such command{}; /help lists them. A message may start with a blank.",
                     name, nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
  return Next::go_on;
}

// Of the answer that was begun; false where it asks for no results.
bool ChatLoop::print_answer(const ContextShift& begun) {
  tell_shift(begun);
  AnswerPrinter printer(&out_);
  const terminal::InterruptGuard guard;
  Result<session::Answer> made = chat_->complete(printer.hooks());
  printer.finish();
  if (!made) {
    remark("cairn: " + made.error().message);
    return false;
  }
  if (const std::string cut = cut_line(*made); !cut.empty()) {
    remark(fmt::format("cairn: {}{}", cut, hint_for(made->finish)));
  }
  if (made->tokens.empty() && made->finish == session::FinishReason::stop) {
    remark("the answer ends here: the model adds nothing");
  }
  show_figures(*made);
  keep_receipt();
  return made->finish == session::FinishReason::tool_calls;
}

// Before what stays of a conversation that is too long is read.
void ChatLoop::tell_shift(const ContextShift& begun) {
  if (begun.left_out_tokens == told_left_out_) return;
  told_left_out_ = begun.left_out_tokens;
  if (begun.left_out_tokens == 0) return;
  remark("the context is full: " + shift_line(begun));
}

void ChatLoop::keep_session() {
  if (session_path_.empty() || kept_change_ == chat_->change_count()) return;
  if (const Status saved = chat_->save(session_path_); !saved) {
    complain(saved.error());
    return;
  }
  kept_change_ = chat_->change_count();
}

void ChatLoop::keep_receipt() {
  if (receipt_path_.empty()) return;
  const Status written = chat_->write_receipt(receipt_path_);
  if (!written) complain(written.error());
}

void ChatLoop::show_figures(const session::Answer& answer) {
  if (figures_ == Figures::none) return;
  std::string line = chat_->figures(figures_, answer);
  if (figures_ == Figures::all) line = "[" + line + "]";
  const bool dim = terminal::uses_color(stderr);
  std::fprintf(stderr, "%s%s%s\n", dim ? "\033[2m" : "", line.c_str(), dim ? "\033[0m" : "");
}

// The results of the calls that the answer ended with, each a line of the person's.
bool ChatLoop::read_results(std::vector<std::string>& results) {
  results.clear();
  for (const chat::ToolCall& call : chat_->dialogue().open_calls()) {
    remark("call: " + call_line(call));
    std::string result;
    if (editor_.read(kResultPrompt, result, kMessageBytesMax) != terminal::LineEditor::Event::line)
      return false;
    results.push_back(std::move(result));
  }
  return !results.empty();
}

ChatLoop::Next ChatLoop::answer(const Ask& ask, std::string_view command) {
  Result<ContextShift> begun = chat_->begin(ask);
  if (!begun) return complain(begun.error(), command);
  if (print_answer(*begun)) answer_calls();
  return Next::go_on;
}

void ChatLoop::answer_calls() {
  std::vector<std::string> results;
  while (read_results(results)) {
    Result<ContextShift> begun = chat_->begin({.kind = Ask::Kind::results, .results = results});
    if (!begun) {
      complain(begun.error());
      return;
    }
    if (!print_answer(*begun)) return;
  }
}

ChatLoop::Next ChatLoop::complain(const Error& error, std::string_view command) {
  remark(fmt::format("cairn: {}{}{}", command, command.empty() ? "" : ": ", error.message));
  if (error.code == ErrorCode::io && !file_hint_.empty()) remark(file_hint_);
  return Next::go_on;
}

ChatLoop::Next ChatLoop::help(std::string_view /*rest*/) {
  for (const Command& command : kCommands) {
    remark(fmt::format("{:<10}{:<8}{}", command.name, command.argument, command.doc));
  }
  remark(
      "A line that ends with \\ goes on in the next one, as do lines between \"\"\" and \"\"\".");
  remark("Ctrl-C stops an answer.");
  return Next::go_on;
}

ChatLoop::Next ChatLoop::leave(std::string_view /*rest*/) {
  return Next::leave;
}

ChatLoop::Next ChatLoop::clear(std::string_view /*rest*/) {
  if (const Status cleared = chat_->clear(); !cleared) return complain(cleared.error(), "/clear");
  return Next::go_on;
}

ChatLoop::Next ChatLoop::regenerate(std::string_view /*rest*/) {
  return answer({.kind = Ask::Kind::regenerate}, "/regen");
}

ChatLoop::Next ChatLoop::retry(std::string_view rest) {
  session::ChatOptions& options = chat_->options();
  const sample::SamplingParams old = options.sampling;
  if (Status status = set_settings(options, rest); !status)
    return complain(std::move(status).error());
  // With the same seed unless one is said: what differs is what was set.
  if (options.sampling.seed == old.seed && !rest.empty()) --options.sampling.seed;
  return regenerate({});
}

// "/set parameter top_k 10", "/set system TEXT", "/set nothink": as Ollama has them.
ChatLoop::Next ChatLoop::set(std::string_view rest) {
  constexpr std::string_view kParameter = "parameter ", kSystem = "system";
  if (rest.starts_with(kParameter)) rest.remove_prefix(kParameter.size());
  if (rest == "think") rest = "reasoning on";
  if (rest == "nothink") rest = "reasoning off";
  if (rest == kSystem || rest.starts_with("system ")) {
    return set_system(rest.substr(std::min(kSystem.size() + 1, rest.size())));
  }
  const size_t end = std::min(rest.find_first_of(" ="), rest.size());
  const std::string_view value = rest.substr(std::min(end + 1, rest.size()));
  if (Status status = set_setting(chat_->options(), rest.substr(0, end), value); !status)
    return complain(std::move(status).error());
  return Next::go_on;
}

ChatLoop::Next ChatLoop::show(std::string_view rest) {
  const std::string all = show_settings(chat_->options());
  if (rest.empty()) {
    remark_lines(all);
    return Next::go_on;
  }
  // The line of one setting.
  const size_t at = ("\n" + all).find(fmt::format("\n{} ", rest));
  if (at != std::string::npos) {
    remark(std::string_view(all).substr(at, all.find('\n', at) - at));
  } else if (rest == "system") {
    remark("system: none");
  } else {
    remark(fmt::format("cairn: /show: expected one of its lines, found \"{}\"", rest));
  }
  return Next::go_on;
}

void ChatLoop::remark_lines(std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    remark(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

ChatLoop::Next ChatLoop::adapters(std::string_view rest) {
  Result<std::string> lines = chat_->adapters(rest);
  if (!lines) return complain(lines.error());
  remark_lines(*lines);
  return Next::go_on;
}

ChatLoop::Next ChatLoop::go_on(std::string_view /*rest*/) {
  return answer({.kind = Ask::Kind::go_on}, "/continue");
}

// Without a text the old message is put on the line, to be changed there.
ChatLoop::Next ChatLoop::edit(std::string_view rest) {
  Result<std::string> old = chat_->dialogue().last_message();
  if (!old) return complain(old.error(), "/edit");
  std::string text(rest);
  if (text.empty()) {
    const terminal::LineEditor::Event event =
        editor_.read(kEditPrompt, text, kMessageBytesMax, *old);
    if (event != terminal::LineEditor::Event::line) return Next::go_on;
    editor_.remember(text);
    if (text.empty()) return Next::go_on;
  }
  return answer({.kind = Ask::Kind::edit, .text = text}, "/edit");
}

ChatLoop::Next ChatLoop::rewind(std::string_view rest) {
  int32_t turns = 1;
  const char* end = rest.data() + rest.size();
  const auto read = std::from_chars(rest.data(), end, turns);
  if (!rest.empty() && (read.ec != std::errc() || read.ptr != end)) {
    return complain({ErrorCode::invalid_argument,
                     fmt::format("/rewind: expected a number of turns, found \"{}\"", rest)});
  }
  Result<memory::ResumePlan> plan = chat_->rewind(turns);
  if (!plan) return complain(plan.error(), "/rewind");
  remark(fmt::format("{} turns left; {}", chat_->dialogue().turn_count(), plan_line(*plan)));
  return Next::go_on;
}

ChatLoop::Next ChatLoop::fork(std::string_view rest) {
  const std::string name = rest.empty()
                               ? fmt::format("branch-{}", chat_->dialogue().branches().size() + 1)
                               : std::string(rest);
  if (const Status made = chat_->fork(name); !made) return complain(made.error(), "/fork");
  remark(fmt::format("now in {}; it shares all {} turns so far", name,
                     chat_->dialogue().turn_count()));
  return Next::go_on;
}

ChatLoop::Next ChatLoop::switch_branch(std::string_view rest) {
  Result<memory::ResumePlan> plan = chat_->switch_to(rest);
  if (!plan) return complain(plan.error(), "/switch");
  remark(fmt::format("now in {}, {} turns; {}", rest, chat_->dialogue().turn_count(),
                     plan_line(*plan)));
  return Next::go_on;
}

ChatLoop::Next ChatLoop::list_branches(std::string_view /*rest*/) {
  const session::Dialogue& dialogue = chat_->dialogue();
  const std::vector<session::Branch>& branches = dialogue.branches();
  for (size_t branch = 0; branch < branches.size(); ++branch) {
    const session::MessageList& messages = branches[branch].messages;
    remark(fmt::format("{} {:<16} {} messages", branch == dialogue.active_branch() ? '*' : ' ',
                       branches[branch].name, messages.size()));
  }
  return Next::go_on;
}

ChatLoop::Next ChatLoop::save(std::string_view rest) {
  return save_to(with_home(std::string(rest)), false);
}

ChatLoop::Next ChatLoop::save_over(std::string_view rest) {
  return save_to(with_home(std::string(rest)), true);
}

ChatLoop::Next ChatLoop::save_to(const std::string& path, bool replaces) {
  if (path.empty())
    return complain({ErrorCode::invalid_argument, "/save: expected a file name, found none"});
  const std::vector<FileIdentity> inputs = chat_->inputs();
  if (const Status allowed = check_output(path, {.inputs = inputs}); !allowed) {
    return complain(allowed.error());
  }
  const auto found = identity_of(path);
  const bool is_own =
      found && std::find(own_files_.begin(), own_files_.end(), *found) != own_files_.end();
  std::error_code error;
  if (found && !is_own && !replaces && std::filesystem::is_regular_file(path, error)) {
    return complain(fail(ErrorCode::invalid_argument,
                         "{}: expected a new file or one of this conversation, found another; "
                         "/save! writes over it",
                         path));
  }
  if (const Status saved = chat_->save(path); !saved) return complain(saved.error());
  if (const auto written = identity_of(path)) own_files_.push_back(*written);
  remark(fmt::format("{} messages written to {}", chat_->dialogue().messages().size(), path));
  return Next::go_on;
}

ChatLoop::Next ChatLoop::load(std::string_view rest) {
  if (rest.empty())
    return complain({ErrorCode::invalid_argument, "/load: expected a file name, found none"});
  const std::string path = with_home(std::string(rest));
  if (Status read = chat_->load(path); !read) return complain(std::move(read).error());
  if (const auto read_from = identity_of(path)) own_files_.push_back(*read_from);
  remark(fmt::format("{} messages read from {}", chat_->dialogue().messages().size(), path));
  answer_calls();  // The conversation may have been left before the results of its last calls.
  return Next::go_on;
}

ChatLoop::Next ChatLoop::set_system(std::string_view rest) {
  if (const Status set = chat_->set_system(rest); !set) return complain(set.error());
  return Next::go_on;
}

ChatLoop::Next ChatLoop::show_memory(std::string_view /*rest*/) {
  Result<std::string> lines = chat_->memory_lines();
  if (!lines) return complain(lines.error());
  remark(*lines);
  return Next::go_on;
}

}  // namespace cairn::terminal_chat
