// What the process forbids itself before it reads anything, and what it says when an exception is
// nobody's. Thread rule: before other threads start, but for exception_text().
#pragma once

#include <sys/types.h>

#include <string>

namespace cairn {

// No core files (they hold prompts), no privileges by programs that it starts (Python, for
// runtimes), new files for their owner alone but for those that shared_file_mask() allows. Limits
// of file sizes are errors, not signals. Standard streams that are closed stay unusable, but no
// file gets their numbers.
void forbid_process();

// The umask that the program was started with: files that are meant for others too have the
// permissions that it allows. From the first call on the process's own is 077.
mode_t shared_file_mask();

// What the exception that is being handled says, for a person: what was too much where memory or
// threads are not to be had.
std::string exception_text();

// From now on an exception that nobody catches, as of a thread of a pool, is a line on stderr and
// exit code 1; unfinished outputs are removed.
void install_last_catch();

}  // namespace cairn
