// The conversation as a person sees it: a prompt, lines, answers that appear as they are made,
// commands that begin with a slash. Works on a terminal and, line by line, on a pipe. Knows not
// where answers are computed. Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/output_file.h"
#include "base/result.h"
#include "session/answer.h"
#include "terminal/line_editor.h"
#include "terminal/terminal.h"
#include "terminal_chat/chat.h"
#include "terminal_chat/report.h"

namespace cairn::terminal_chat {

struct ChatLoopOptions {
  Figures figures = Figures::none;  // On stderr after each answer.
  std::string history_path = {};    // Of typed lines; empty for none.
  // What the conversation is written to after each turn; empty for nothing.
  std::string session_path = {};
  std::string receipt_path = {};    // For the last answer's receipt; empty for none.
  std::string message_prefix = {};  // Stands before each message that is typed.
  std::string file_hint = {};       // Said where a file cannot be opened.
};

class ChatLoop {
 public:
  // `chat` must outlive the loop.
  ChatLoop(Chat* chat, ChatLoopOptions options);

  // Until the end of input, /exit, or Ctrl-C twice at the prompt. Returns the exit code.
  // Errors: io, when standard output cannot be written; no_room, when a message has no end.
  Result<int> run();

 private:
  struct Command;
  enum class Next { go_on, leave };

  void greet();
  terminal::LineEditor::Event read_in_pause(std::string& message);
  terminal::LineEditor::Event read_message(std::string& message);
  Next handle(const std::string& message);
  Next handle_command(std::string_view line);
  Next answer(const Ask& ask, std::string_view command = "");
  bool print_answer(const ContextShift& begun);
  void show_figures(const session::Answer& answer);
  void tell_shift(const ContextShift& begun);
  void keep_session();
  void keep_receipt();
  void answer_calls();
  bool read_results(std::vector<std::string>& results);
  terminal::LineEditor::Event read_block(std::string& message);

  Next complain(const Error& error, std::string_view command = "");
  static void remark_lines(std::string_view lines);
  Next help(std::string_view rest);
  Next leave(std::string_view rest);
  Next clear(std::string_view rest);
  Next regenerate(std::string_view rest);
  Next retry(std::string_view rest);
  Next set(std::string_view rest);
  Next show(std::string_view rest);
  Next adapters(std::string_view rest);
  Next go_on(std::string_view rest);
  Next edit(std::string_view rest);
  Next rewind(std::string_view rest);
  Next fork(std::string_view rest);
  Next switch_branch(std::string_view rest);
  Next list_branches(std::string_view rest);
  Next save(std::string_view rest);
  Next save_over(std::string_view rest);
  Next save_to(const std::string& path, bool replaces);
  Next load(std::string_view rest);
  Next set_system(std::string_view rest);
  Next show_memory(std::string_view rest);
  static const Command kCommands[];

  Chat* chat_;
  Figures figures_;
  std::string session_path_, receipt_path_, message_prefix_, file_hint_;
  int32_t told_left_out_ = 0;  // Tokens that the person knows to be left out.
  int64_t kept_change_;        // Chat::change_count() of what the session's file has.
  terminal::TextOut out_;
  terminal::LineEditor editor_;
  std::vector<FileIdentity> own_files_;  // That this conversation was saved to or loaded from.
};

}  // namespace cairn::terminal_chat
