// Runs the built program as a person would: with arguments, an environment and an input; gives what
// it said and its exit code. For tests only.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/scratch_folder.h"

namespace cairn::cli {

struct Finished {
  int exit_code = -1;  // 128 + the signal's number if one ended it.
  std::string out, err;
};

using test::contents_of;
using test::ScratchFolder;
using test::write_to;

using Environment = std::vector<std::pair<std::string, std::string>>;

// A command and its variables, ready before fork(): in the child of a process with threads nothing
// may be allocated, because another thread may have held the allocator's lock.
class PreparedCommand {
 public:
  // `command` outlives it.
  PreparedCommand(const std::vector<std::string>& command, const Environment& environment) {
    for (const std::string& word : command) words_.push_back(const_cast<char*>(word.c_str()));
    words_.push_back(nullptr);
    for (const auto& [name, value] : environment) own_.push_back(name + "=" + value);
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view text = *variable;
      const bool is_replaced = std::any_of(own_.begin(), own_.end(), [&](const std::string& own) {
        return text.starts_with(std::string_view(own).substr(0, own.find('=') + 1));
      });
      if (!is_replaced) variables_.push_back(*variable);
    }
    for (std::string& own : own_) variables_.push_back(own.data());
    variables_.push_back(nullptr);
  }
  // Replaces the forked child by the program, the command's first word. Does not return.
  [[noreturn]] void exec() const {
    ::execvpe(words_[0], words_.data(), variables_.data());
    ::_exit(127);
  }

 private:
  std::vector<char*> words_, variables_;
  std::vector<std::string> own_;
};

[[noreturn]] inline void exec_program(std::vector<std::string> arguments,
                                      const Environment& environment) {
  arguments.insert(arguments.begin(), CAIRN_PROGRAM);
  PreparedCommand(arguments, environment).exec();
}

inline int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline Finished run_command(const std::vector<std::string>& command, const std::string& input = "",
                            const Environment& environment = {}) {
  const ScratchFolder folder;
  const std::string in = folder.file("in"), out = folder.file("out"), err = folder.file("err");
  write_to(in, input);
  const PreparedCommand prepared(command, environment);
  const pid_t child = fork();
  if (child == 0) {
    const int mode = O_WRONLY | O_CREAT | O_TRUNC;
    dup2(open(in.c_str(), O_RDONLY), STDIN_FILENO);
    dup2(open(out.c_str(), mode, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), mode, 0600), STDERR_FILENO);
    prepared.exec();
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {exit_code_of(status), contents_of(out), contents_of(err)};
}

inline Finished run_program(std::vector<std::string> arguments, const std::string& input = "",
                            const Environment& environment = {}) {
  arguments.insert(arguments.begin(), CAIRN_PROGRAM);
  return run_command(arguments, input, environment);
}

}  // namespace cairn::cli
