// libedit, bound so that Ctrl-C arrives as a key: it then can drop the line without a signal.
#include "cli/terminal/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <filesystem>
#include <system_error>

#include "base/env.h"
#include "cli/terminal/terminal.h"

namespace cairn::cli {

namespace {

constexpr int kHistoryLinesMax = 1000;

// Makes the folder and the file readable by their owner alone.
bool prepare_private_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!fs::is_directory(folder, error)) {
    fs::create_directories(folder, error);
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool is_private = fchmod(file, 0600) == 0;
  close(file);
  return is_private;
}

}  // namespace

struct LineEditor::Editing {
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event = {};
  std::string history_path;
  const char* prompt = "";
  bool was_interrupted = false;

  ~Editing() {
    if (history != nullptr) history_end(history);
    if (editor != nullptr) el_end(editor);
  }

  static Editing& of(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<Editing*>(self);
  }
  static char* show_prompt(EditLine* editor) { return const_cast<char*>(of(editor).prompt); }
  static unsigned char on_interrupt(EditLine* editor, int /*key*/) {
    of(editor).was_interrupted = true;
    return CC_NEWLINE;
  }
};

LineEditor::LineEditor(std::FILE* in, std::FILE* out, std::string history_path)
    : in_(in), out_(out) {
  if (!is_terminal(in) || !is_terminal(out)) return;
  // Letters beyond ASCII need a locale that knows UTF-8.
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
  auto editing = std::make_unique<Editing>();
  editing->editor = el_init("cairn", in, out, stderr);
  if (editing->editor == nullptr) return;
  EditLine* editor = editing->editor;
  el_set(editor, EL_CLIENTDATA, editing.get());
  el_set(editor, EL_PROMPT, &Editing::show_prompt);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SIGNAL, 1);
  el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
  el_set(editor, EL_ADDFN, "cairn-interrupt", "Drop the line", &Editing::on_interrupt);
  el_set(editor, EL_BIND, "^C", "cairn-interrupt", nullptr);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  editing->history = history_init();
  if (editing->history != nullptr) {
    history(editing->history, &editing->event, H_SETSIZE, kHistoryLinesMax);
    history(editing->history, &editing->event, H_SETUNIQUE, 1);
    el_set(editor, EL_HIST, history, editing->history);
    if (!history_path.empty() && prepare_private_file(history_path)) {
      editing->history_path = std::move(history_path);
      history(editing->history, &editing->event, H_LOAD, editing->history_path.c_str());
    }
  }
  editing_ = std::move(editing);
}

LineEditor::~LineEditor() = default;

LineEditor::Event LineEditor::read(const char* prompt, std::string& line,
                                   const std::string& initial) {
  line.clear();
  if (editing_ == nullptr) {
    if (is_terminal(in_)) {
      std::fputs(prompt, stderr);
      std::fflush(stderr);
    }
    int character = std::getc(in_);
    if (character == EOF) return Event::end;
    for (; character != EOF && character != '\n'; character = std::getc(in_)) {
      line += char(character);
    }
    return Event::line;
  }
  editing_->prompt = prompt;
  editing_->was_interrupted = false;
  const bool is_plain = std::none_of(initial.begin(), initial.end(),
                                     [](unsigned char c) { return c < ' ' || c == 127; });
  if (is_plain && !initial.empty()) el_push(editing_->editor, initial.c_str());
  int count = 0;
  const char* text = el_gets(editing_->editor, &count);
  if (editing_->was_interrupted) {
    std::fputs("\n", out_);
    std::fflush(out_);
    return Event::interrupt;
  }
  if (text == nullptr || count <= 0) return Event::end;
  line.assign(text, size_t(count));
  while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
  return Event::line;
}

void LineEditor::remember(const std::string& line) {
  if (editing_ == nullptr || editing_->history == nullptr || line.empty()) return;
  history(editing_->history, &editing_->event, H_ENTER, line.c_str());
  if (editing_->history_path.empty()) return;
  history(editing_->history, &editing_->event, H_SAVE, editing_->history_path.c_str());
}

std::string default_history_path() {
  if (const auto state = env("XDG_STATE_HOME"); state && state->starts_with('/')) {
    return *state + "/cairn/history";
  }
  if (const auto home = env("HOME"); home && home->starts_with('/')) {
    return *home + "/.local/state/cairn/history";
  }
  return {};
}

}  // namespace cairn::cli
