// Runs the built program as a person would: with arguments, an environment and an input; gives what
// it said and its exit code. For tests only.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
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

// Replaces the forked child by a program, the command's first word. Does not return.
[[noreturn]] inline void exec_command(const std::vector<std::string>& command,
                                      const Environment& environment) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  execvp(words[0], words.data());
  _exit(127);
}

[[noreturn]] inline void exec_program(std::vector<std::string> arguments,
                                      const Environment& environment) {
  arguments.insert(arguments.begin(), CAIRN_PROGRAM);
  exec_command(arguments, environment);
}

inline int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline Finished run_command(const std::vector<std::string>& command, const std::string& input = "",
                            const Environment& environment = {}) {
  const ScratchFolder folder;
  write_to(folder.file("in"), input);
  const pid_t child = fork();
  if (child == 0) {
    const int mode = O_WRONLY | O_CREAT | O_TRUNC;
    dup2(open(folder.file("in").c_str(), O_RDONLY), STDIN_FILENO);
    dup2(open(folder.file("out").c_str(), mode, 0600), STDOUT_FILENO);
    dup2(open(folder.file("err").c_str(), mode, 0600), STDERR_FILENO);
    exec_command(command, environment);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {exit_code_of(status), contents_of(folder.file("out")), contents_of(folder.file("err"))};
}

inline Finished run_program(std::vector<std::string> arguments, const std::string& input = "",
                            const Environment& environment = {}) {
  arguments.insert(arguments.begin(), CAIRN_PROGRAM);
  return run_command(arguments, input, environment);
}

}  // namespace cairn::cli
