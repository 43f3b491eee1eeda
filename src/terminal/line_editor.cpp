// libedit, bound so that Ctrl-C arrives as a key: it then can drop the line without a signal.
#include "terminal/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstring>
#include <cwchar>
#include <filesystem>
#include <iterator>
#include <span>
#include <string_view>
#include <system_error>

#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/output_file.h"
#include "terminal/terminal.h"

namespace cairn::terminal {

namespace {

constexpr int kHistoryLinesMax = 1000;

constexpr size_t kHistoryLineBytesMax = 4096;
// The file spells some characters with four.
constexpr off_t kHistoryFileBytesMax = off_t(4 * kHistoryLineBytesMax * kHistoryLinesMax);

// Between them terminals put what was pasted, where they are asked to: line breaks in it are text,
// not the end of the line.
constexpr char kPasteBegin[] = "\033[200~";
constexpr std::wstring_view kPasteEnd = L"\033[201~";
constexpr char kAskForMarks[] = "\033[?2004h";
constexpr char kNoMarks[] = "\033[?2004l";

// How often the size of the terminal is looked at while no key is pressed.
constexpr int kLookAtSizeMilliseconds = 200;

// A terminal that goes on asking for marks would put them into what is pasted to other programs. A
// handler has no state: it knows standard output alone.
void end_with_marks_off(int signal) {
  (void)!::write(STDOUT_FILENO, kNoMarks, sizeof kNoMarks - 1);
  remove_unfinished_outputs();
  // The default action follows as soon as this handler has returned.
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// While a line is read, signals that end the program turn the marks off too. The line editor's own
// handlers restore the terminal first and then call these.
class MarksGuard {
 public:
  explicit MarksGuard(std::FILE* out) {
    if (fileno(out) != STDOUT_FILENO) return;
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::signal(kSignals[i], end_with_marks_off);
    }
    is_set_ = true;
  }
  ~MarksGuard() {
    for (size_t i = 0; is_set_ && i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  MarksGuard(const MarksGuard&) = delete;
  MarksGuard& operator=(const MarksGuard&) = delete;

 private:
  static constexpr int kSignals[] = {SIGTERM, SIGHUP, SIGQUIT};
  struct sigaction before_[std::size(kSignals)] = {};
  bool is_set_ = false;
};

// What was pasted, as it can stand on a line: without the line break at its end, which would not
// be seen, and without control characters. Terminals send line breaks as the key does that ends a
// line.
std::wstring pasted_text(std::wstring_view typed) {
  std::wstring text;
  for (const wchar_t letter : typed) {
    const bool is_break = letter == L'\r' || letter == L'\n';
    if (is_break) text += L'\n';
    if (!is_break && (letter == L'\t' || (letter >= L' ' && letter != 127))) text += letter;
  }
  while (text.ends_with(L'\n')) text.pop_back();
  return text;
}

// Makes the folder readable by its owner alone.
void make_private_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return;
  std::filesystem::create_directories(folder, error);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
}

// What is not as expected of an opened history file; empty where all is well.
std::string mistake_in(int file) {
  struct stat found = {};
  if (fstat(file, &found) != 0) return std::strerror(errno);
  if (!S_ISREG(found.st_mode)) return "expected a regular file, found another kind";
  if (found.st_uid != geteuid()) return "expected a file of this user, found another's";
  if (found.st_size > kHistoryFileBytesMax) {
    return fmt::format("expected at most {} bytes, found {}", kHistoryFileBytesMax, found.st_size);
  }
  if (fchmod(file, 0600) != 0) return std::strerror(errno);
  return "";
}

}  // namespace

struct LineEditor::Editing {
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event = {};
  std::string history_path;
  const char* prompt = "";
  bool was_interrupted = false;
  bool marks_pastes = false;  // The terminal says what is pasted.
  int in = -1, out = -1;
  winsize size = {};     // Of the terminal, as the editor knows it.
  size_t bytes_max = 0;  // Of the line.

  void follow_size();
  bool wait_for_key();

  // Takes the file's lines, and keeps it for further ones where it is what it should be.
  void load_history(const std::string& path);
  void save_history();

  ~Editing() {
    if (history != nullptr) history_end(history);
    if (editor != nullptr) el_end(editor);
  }

  static Editing& of(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<Editing*>(self);
  }
  // Called before anything is drawn. The editor's own handler of a new size changes what is drawn
  // from in the midst of drawing, on whatever thread the signal reaches, and breaks off writing.
  static char* show_prompt(EditLine* editor) {
    ::signal(SIGWINCH, SIG_DFL);
    return const_cast<char*>(of(editor).prompt);
  }
  static int next_letter(EditLine* editor, wchar_t* letter);
  static unsigned char on_interrupt(EditLine* editor, int /*key*/) {
    of(editor).was_interrupted = true;
    return CC_NEWLINE;
  }
  static unsigned char on_paste(EditLine* editor, int /*key*/) {
    const size_t letters_max = of(editor).bytes_max;
    std::wstring typed, last;
    while (last != kPasteEnd) {
      wchar_t letter = 0;
      if (el_wgetc(editor, &letter) != 1) return CC_EOF;
      last += letter;
      if (last.size() <= kPasteEnd.size()) continue;
      // One letter too many is enough for the line to be refused.
      if (typed.size() <= letters_max) typed += last.front();
      last.erase(0, 1);
    }
    el_winsertstr(editor, pasted_text(typed).c_str());
    return CC_REFRESH;
  }
};

// Between keys, when nothing is being drawn.
void LineEditor::Editing::follow_size() {
  winsize now = {};
  if (::ioctl(out, TIOCGWINSZ, &now) != 0) return;
  if (now.ws_col == size.ws_col && now.ws_row == size.ws_row) return;
  size = now;
  el_resize(editor);
  // What the editor does next takes for granted that it knows what the terminal shows.
  el_set(editor, EL_REFRESH);
}

// False: no key, and none comes any more.
bool LineEditor::Editing::wait_for_key() {
  pollfd input{.fd = in, .events = POLLIN, .revents = 0};
  int wait = 0;  // What was typed in advance is not kept waiting.
  for (;;) {
    const int ready = ::poll(&input, 1, wait);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    follow_size();
    wait = kLookAtSizeMilliseconds;
  }
}

// 1: a letter; 0: the end; -1: an error. Bytes that are no letter are passed over.
int LineEditor::Editing::next_letter(EditLine* editor, wchar_t* letter) {
  Editing& self = of(editor);
  std::mbstate_t state = {};
  bool is_within = false;
  while (self.wait_for_key()) {
    char byte = 0;
    const ssize_t got = ::read(self.in, &byte, 1);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return int(got);
    size_t taken = std::mbrtowc(letter, &byte, 1, &state);
    if (taken == size_t(-1)) {
      // What was begun is no letter; the byte may begin another one.
      state = {};
      if (is_within) taken = std::mbrtowc(letter, &byte, 1, &state);
      if (taken == size_t(-1)) state = {};
    }
    is_within = taken == size_t(-2);
    if (taken <= 1) return 1;
  }
  return -1;
}

// The file is read by the name of what was opened and looked at, not by its own once more.
void LineEditor::Editing::load_history(const std::string& path) {
  make_private_folder(std::filesystem::path(path).parent_path());
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) {
    history_path = path;
    return;
  }
  std::string mistake = file < 0 && errno == ELOOP ? "expected a file, found a symbolic link"
                        : file < 0                 ? std::strerror(errno)
                                                   : mistake_in(file);
  struct stat found = {};
  if (mistake.empty() && fstat(file, &found) == 0 && found.st_size > 0) {
    const std::string opened = fmt::format("/proc/self/fd/{}", file);
    const bool is_read = ::history(history, &event, H_LOAD, opened.c_str()) >= 0;
    if (!is_read) mistake = "expected a history, found something else";
  }
  if (file >= 0) close(file);
  if (mistake.empty()) {
    history_path = path;
  } else {
    log::warning("{}: {}; what is typed is not kept", path, mistake);
  }
}

// libedit wants a file that has permissions; it gets one without a name.
void LineEditor::Editing::save_history() {
  const int file = memfd_create("history", MFD_CLOEXEC);
  std::FILE* stream = file < 0 ? nullptr : fdopen(file, "w");
  Status saved = fail(ErrorCode::io, "{}: {}", history_path, std::strerror(errno));
  if (stream != nullptr && ::history(history, &event, H_SAVE_FP, stream) >= 0 &&
      std::fflush(stream) == 0) {
    std::string text(size_t(std::max(off_t(0), lseek(file, 0, SEEK_END))), '\0');
    const ssize_t got = pread(file, text.data(), text.size(), 0);
    if (got == ssize_t(text.size())) {
      saved = write_file(history_path, std::as_bytes(std::span(text)),
                         {.is_private = true, .follows_links = false});
    }
  }
  if (stream != nullptr) std::fclose(stream);
  if (saved) return;
  log::warning("{}; what is typed is not kept", saved.error().message);
  history_path.clear();
}

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
  el_set(editor, EL_GETCFN, &Editing::next_letter);
  editing->in = fileno(in);
  editing->out = fileno(out);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SIGNAL, 1);
  el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
  el_set(editor, EL_ADDFN, "cairn-interrupt", "Drop the line", &Editing::on_interrupt);
  el_set(editor, EL_BIND, "^C", "cairn-interrupt", nullptr);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_set(editor, EL_ADDFN, "cairn-paste", "Insert what is pasted", &Editing::on_paste);
  el_set(editor, EL_BIND, kPasteBegin, "cairn-paste", nullptr);
  editing->marks_pastes = env("TERM") != "dumb";
  editing->history = history_init();
  if (editing->history != nullptr) {
    history(editing->history, &editing->event, H_SETSIZE, kHistoryLinesMax);
    history(editing->history, &editing->event, H_SETUNIQUE, 1);
    el_set(editor, EL_HIST, history, editing->history);
    if (!history_path.empty()) editing->load_history(history_path);
  }
  editing_ = std::move(editing);
}

LineEditor::~LineEditor() = default;

LineEditor::Event LineEditor::read(const char* prompt, std::string& line, size_t bytes_max,
                                   const std::string& initial) {
  line.clear();
  if (editing_ == nullptr) {
    if (is_terminal(in_)) {
      std::fputs(prompt, stderr);
      std::fflush(stderr);
    }
    Result<bool> is_there = read_line(in_, line, bytes_max);
    if (!is_there) error_ = is_there.error();
    return !is_there ? Event::failure : *is_there ? Event::line : Event::end;
  }
  editing_->prompt = prompt;
  editing_->bytes_max = bytes_max;
  editing_->was_interrupted = false;
  (void)::ioctl(editing_->out, TIOCGWINSZ, &editing_->size);
  const bool is_plain = std::none_of(initial.begin(), initial.end(),
                                     [](unsigned char c) { return c < ' ' || c == 127; });
  if (is_plain && !initial.empty()) el_push(editing_->editor, initial.c_str());
  int count = 0;
  const char* text = nullptr;
  if (editing_->marks_pastes) {
    const MarksGuard guard(out_);
    std::fputs(kAskForMarks, out_);
    text = el_gets(editing_->editor, &count);
    std::fputs(kNoMarks, out_);
    std::fflush(out_);
  } else {
    text = el_gets(editing_->editor, &count);
  }
  if (editing_->was_interrupted) {
    std::fputs("\n", out_);
    std::fflush(out_);
    return Event::interrupt;
  }
  if (text == nullptr || count <= 0) return Event::end;
  if (size_t(count) > bytes_max) {
    error_ = fail(ErrorCode::no_room, "a message: expected at most {} bytes more, found {}",
                  bytes_max, count);
    return Event::failure;
  }
  line.assign(text, size_t(count));
  while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
  return Event::line;
}

void LineEditor::remember(const std::string& line) {
  if (editing_ == nullptr || editing_->history == nullptr || line.empty()) return;
  if (line.size() > kHistoryLineBytesMax) return;
  history(editing_->history, &editing_->event, H_ENTER, line.c_str());
  if (!editing_->history_path.empty()) editing_->save_history();
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

}  // namespace cairn::terminal
