// A program that runs beside cairn, for as long as its owner wants, without the program around
// cairn taking notice: it is nobody's child, so no SIGCHLD comes of it and no wait() meets it. It
// has only the descriptors it was given, signals as a new program has them, and a session of its
// own, so that a terminal's keys are not for it. Thread rule: one thread at a time.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/machine/descriptor.h"
#include "base/result.h"

namespace cairn::runtimes {

class ChildProcess {
 public:
  // `program`: a path. `descriptors` become 3, 4 …; what it writes to stdout and stderr goes to
  // output(). Errors: io, with what the system says.
  static Result<ChildProcess> start(const std::string& program,
                                    std::span<const std::string> arguments,
                                    std::span<const int> descriptors);
  ChildProcess(ChildProcess&& other) noexcept = default;
  ChildProcess& operator=(ChildProcess&& other) noexcept = default;
  ~ChildProcess() { kill(); }

  // Readable without waiting; at its end when the program and all that it started have ended.
  int output() const { return output_.number(); }
  // False in a process that was forked off since.
  bool is_owned_here() const;
  // At once, with what it has started, as where `program` is a script around another one. In a
  // process that was forked off since, nothing.
  void kill();

 private:
  ChildProcess() = default;

  Descriptor process_;  // A pidfd: never another process that has got its number.
  pid_t group_ = 0;
  Descriptor output_;
  pid_t owner_ = 0;
};

}  // namespace cairn::runtimes
