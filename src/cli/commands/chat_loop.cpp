// Reading lines, answering them, and the commands.
#include "cli/commands/chat_loop.h"

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
#include "base/quantities.h"
#include "cli/commands/adapter_choice.h"
#include "cli/commands/chat_settings.h"
#include "cli/commands/load.h"
#include "cli/commands/report.h"
#include "cli/exit_codes.h"
#include "cli/nearest_name.h"
#include "cli/terminal/answer_printer.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/memory_map.h"
#include "session/receipt_text.h"

namespace cairn::cli {

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

ChatLoop::ChatLoop(Engine* engine, session::ChatSession* session, session::Service* service,
                   ChatLoopOptions options)
    : engine_(engine),
      session_(session),
      service_(service),
      model_name_(std::move(options.model_name)),
      figures_(options.figures),
      session_path_(std::move(options.session_path)),
      receipt_path_(std::move(options.receipt_path)),
      message_prefix_(std::move(options.message_prefix)),
      kept_change_(session->change_count()),
      out_(stdout),
      editor_(stdin, stdout, std::move(options.history_path)) {
  if (session_path_.empty()) return;
  if (const auto kept = identity_of(session_path_)) own_files_.push_back(*kept);
}

Result<int> ChatLoop::run() {
  // Between prompt and answer too, Ctrl-C must not end the conversation.
  const InterruptGuard guard;
  greet();
  answer_calls();  // A session may have been left before the results of its last calls.
  keep_session();
  bool was_interrupt = false;
  std::string message;
  while (true) {
    const LineEditor::Event event = read_while_reading_ahead(message);
    if (event == LineEditor::Event::end) break;
    if (event == LineEditor::Event::failure) return editor_.error();
    if (event == LineEditor::Event::interrupt) {
      if (was_interrupt) return kExitInterrupted;
      was_interrupt = true;
      remark("Ctrl-C again, Ctrl-D or /exit ends the program.");
      continue;
    }
    was_interrupt = false;
    if (handle(message) == Next::leave) break;
    keep_session();
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

// What the next prompt will begin with is read meanwhile. Where that fails the prompt will say why.
LineEditor::Event ChatLoop::read_while_reading_ahead(std::string& message) {
  if (service_ == nullptr) return read_message(message);
  Result<session::PromptBeginning> beginning = session_->next_beginning();
  if (!beginning || beginning->tokens.empty()) return read_message(message);
  const JobId ahead = service_->submit(
      std::make_unique<session::ReadAhead>(engine_, std::move(beginning).value()),
      {.is_idle = true});
  service_->unlock();
  const LineEditor::Event event = read_message(message);
  service_->cancel(ahead);
  service_->lock();
  return event;
}

// A message is a line, or several where each but the last ends with a backslash, or those between
// two marks of three quotes.
LineEditor::Event ChatLoop::read_message(std::string& message) {
  message.clear();
  const char* prompt = kPrompt;
  while (true) {
    std::string line;
    const LineEditor::Event event = editor_.read(prompt, line, kMessageBytesMax - message.size());
    if (event == LineEditor::Event::end && !message.empty()) return LineEditor::Event::line;
    if (event != LineEditor::Event::line) return event;
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
LineEditor::Event ChatLoop::read_block(std::string& message) {
  while (!message.ends_with(kBlockMark)) {
    std::string line;
    const LineEditor::Event event =
        editor_.read(kContinuationPrompt, line, kMessageBytesMax - message.size());
    if (event == LineEditor::Event::end) return LineEditor::Event::line;
    if (event != LineEditor::Event::line) return event;
    if (!message.empty()) message += '\n';
    message += line;
  }
  message.resize(message.size() - kBlockMark.size());
  if (message.ends_with('\n')) message.pop_back();
  return LineEditor::Event::line;
}

ChatLoop::Next ChatLoop::handle(const std::string& message) {
  if (message.find_first_not_of(" \t\n") == std::string::npos) return Next::go_on;
  if (message.starts_with('/')) return handle_command(message);
  return answer(session_->say(message_prefix_ + message));
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

// Of the answer that the session has begun; false where it asks for no results.
bool ChatLoop::print_answer() {
  tell_shift();
  AnswerPrinter printer(&out_);
  const InterruptGuard guard;
  Result<session::Answer> made = session_->complete(printer.hooks());
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
void ChatLoop::tell_shift() {
  const session::Completion& begun = session_->completion();
  const PromptReport& prompt = begun.prompt();
  if (prompt.left_out_tokens == told_left_out_) return;
  told_left_out_ = prompt.left_out_tokens;
  if (prompt.left_out_tokens == 0) return;
  remark("the context is full: " + shift_line({.left_out_tokens = prompt.left_out_tokens,
                                               .left_out_turns = prompt.left_out_turns,
                                               .read_tokens = prompt.computed_tokens}));
}

void ChatLoop::keep_session() {
  if (session_path_.empty() || kept_change_ == session_->change_count()) return;
  if (const Status saved = session_->save(session_path_); !saved) {
    complain(saved.error());
    return;
  }
  kept_change_ = session_->change_count();
}

void ChatLoop::keep_receipt() {
  if (!session_->receipt()) return;
  const Status written = session::write_receipt(receipt_path_, *session_->receipt());
  if (!written) complain(written.error());
}

void ChatLoop::show_figures(const session::Answer& answer) {
  if (figures_ == Figures::none) return;
  const memory::Usage usage = engine_->memory().usage();
  const memory::Sequence& sequence = session_->lane().sequence();
  const std::string line =
      figures_ == Figures::brief
          ? brief_line(answer, usage)
          : "[" +
                statistics_line(answer, usage,
                                {.used_tokens = sequence.length(),
                                 .free_tokens = session_->lane().room(),
                                 .weight_bytes = weight_bytes(engine_->file())}) +
                "]";
  const bool dim = uses_color(stderr);
  std::fprintf(stderr, "%s%s%s\n", dim ? "\033[2m" : "", line.c_str(), dim ? "\033[0m" : "");
}

// The results of the calls that the answer ended with, each a line of the person's.
bool ChatLoop::read_results(std::vector<std::string>& results) {
  results.clear();
  for (const chat::ToolCall& call : session_->open_calls()) {
    remark("call: " + call_line(call));
    std::string result;
    if (editor_.read(kResultPrompt, result, kMessageBytesMax) != LineEditor::Event::line)
      return false;
    results.push_back(std::move(result));
  }
  return !results.empty();
}

// `begun`: what beginning the answer said.
ChatLoop::Next ChatLoop::answer(const Status& begun, std::string_view command) {
  if (!begun) return complain(begun.error(), command);
  if (print_answer()) answer_calls();
  return Next::go_on;
}

void ChatLoop::answer_calls() {
  std::vector<std::string> results;
  while (read_results(results)) {
    if (const Status begun = session_->give_results(results); !begun) {
      complain(begun.error());
      return;
    }
    if (!print_answer()) return;
  }
}

ChatLoop::Next ChatLoop::complain(const Error& error, std::string_view command) {
  remark(fmt::format("cairn: {}{}{}", command, command.empty() ? "" : ": ", error.message));
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
  session_->clear();
  return Next::go_on;
}

ChatLoop::Next ChatLoop::regenerate(std::string_view /*rest*/) {
  return answer(session_->regenerate(), "/regen");
}

ChatLoop::Next ChatLoop::retry(std::string_view rest) {
  session::ChatOptions& options = session_->options();
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
  if (Status status = set_setting(session_->options(), rest.substr(0, end), value); !status)
    return complain(std::move(status).error());
  return Next::go_on;
}

ChatLoop::Next ChatLoop::show(std::string_view rest) {
  const std::string all = show_settings(session_->options());
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
  if (!rest.empty()) {
    Result<std::vector<AdapterUse>> uses = parse_adapter_uses(rest);
    if (!uses) return complain(uses.error());
    if (const Status chosen = session_->choose_adapters(*uses); !chosen) {
      return complain(chosen.error());
    }
  }
  remark_lines(show_adapters(engine_->adapters(), session_->lane().selection()));
  if (engine_->adapters().empty()) return Next::go_on;
  const Runner& runner = engine_->runner();
  remark(fmt::format("plans: {} selections, {}", runner.variant_count(),
                     show_bytes(runner.plan_bytes())));
  return Next::go_on;
}

ChatLoop::Next ChatLoop::go_on(std::string_view /*rest*/) {
  return answer(session_->continue_answer(), "/continue");
}

// Without a text the old message is put on the line, to be changed there.
ChatLoop::Next ChatLoop::edit(std::string_view rest) {
  Result<std::string> old = session_->last_message();
  if (!old) return complain(old.error(), "/edit");
  std::string text(rest);
  if (text.empty()) {
    const LineEditor::Event event = editor_.read(kEditPrompt, text, kMessageBytesMax, *old);
    if (event != LineEditor::Event::line) return Next::go_on;
    editor_.remember(text);
    if (text.empty()) return Next::go_on;
  }
  return answer(session_->edit(text), "/edit");
}

ChatLoop::Next ChatLoop::rewind(std::string_view rest) {
  int32_t turns = 1;
  const char* end = rest.data() + rest.size();
  const auto read = std::from_chars(rest.data(), end, turns);
  if (!rest.empty() && (read.ec != std::errc() || read.ptr != end)) {
    return complain({ErrorCode::invalid_argument,
                     fmt::format("/rewind: expected a number of turns, found \"{}\"", rest)});
  }
  Result<memory::ResumePlan> plan = session_->rewind(turns);
  if (!plan) return complain(plan.error(), "/rewind");
  remark(fmt::format("{} turns left; {}", session_->turn_count(), plan_line(*plan)));
  return Next::go_on;
}

ChatLoop::Next ChatLoop::fork(std::string_view rest) {
  const std::string name =
      rest.empty() ? fmt::format("branch-{}", session_->branches().size() + 1) : std::string(rest);
  if (const Status made = session_->fork(name); !made) return complain(made.error(), "/fork");
  remark(fmt::format("now in {}; it shares all {} turns so far", name, session_->turn_count()));
  return Next::go_on;
}

ChatLoop::Next ChatLoop::switch_branch(std::string_view rest) {
  Result<memory::ResumePlan> plan = session_->switch_to(rest);
  if (!plan) return complain(plan.error(), "/switch");
  remark(fmt::format("now in {}, {} turns; {}", rest, session_->turn_count(), plan_line(*plan)));
  return Next::go_on;
}

ChatLoop::Next ChatLoop::list_branches(std::string_view /*rest*/) {
  const std::vector<session::Branch>& branches = session_->branches();
  for (size_t branch = 0; branch < branches.size(); ++branch) {
    const session::MessageList& messages = branches[branch].messages;
    remark(fmt::format("{} {:<16} {} messages", branch == session_->active_branch() ? '*' : ' ',
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
  const std::vector<FileIdentity> inputs = input_files(engine_->file(), engine_->options());
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
  if (const Status saved = session_->save(path); !saved) return complain(saved.error());
  if (const auto written = identity_of(path)) own_files_.push_back(*written);
  remark(fmt::format("{} messages written to {}", session_->messages().size(), path));
  return Next::go_on;
}

ChatLoop::Next ChatLoop::load(std::string_view rest) {
  if (rest.empty())
    return complain({ErrorCode::invalid_argument, "/load: expected a file name, found none"});
  const std::string path = with_home(std::string(rest));
  if (Status read = session_->load(path); !read) return complain(std::move(read).error());
  if (const auto read_from = identity_of(path)) own_files_.push_back(*read_from);
  remark(fmt::format("{} messages read from {}", session_->messages().size(), path));
  answer_calls();  // The conversation may have been left before the results of its last calls.
  return Next::go_on;
}

ChatLoop::Next ChatLoop::set_system(std::string_view rest) {
  session_->set_system(rest);
  return Next::go_on;
}

ChatLoop::Next ChatLoop::show_memory(std::string_view /*rest*/) {
  const memory::Sequence& sequence = session_->lane().sequence();
  remark(memory_map(engine_->memory(), sequence) +
         fmt::format("{} tokens, room for {} more; all conversations: {}", sequence.length(),
                     session_->lane().room(), memory_line(engine_->memory().usage())));
  if (const SequenceStore* const store = engine_->sequence_store()) remark(store_line(*store));
  if (const std::optional<ContextShift> shift = session_->lane().next_shift()) {
    remark("when the context is full: " + shift_line(*shift));
  }
  return Next::go_on;
}

}  // namespace cairn::cli
