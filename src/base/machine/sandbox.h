// What a process takes from itself for good before it reads what strangers made, so that whoever
// makes it run other code than its own has little to do with it: all files but those that are named
// (Landlock), and system calls that it has no use for (seccomp). Knows paths, not what they are
// for. What the kernel lacks is told, never passed over in silence. Thread rule: enter_sandbox()
// before other threads start, which have what it leaves; seal_sandbox() from any thread, for all of
// them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cairn {

// Files, and folders with all that is below them. Links are followed now, not later. What is not
// there is left out, so that whoever opens it can say so.
struct SandboxRules {
  std::vector<std::string> readable = {};
  std::vector<std::string> writable = {};  // Also read, made and removed there.
  std::vector<std::string> sockets = {};   // Folders in which sockets are made and removed.
  bool connects = false;                   // To other machines, by addresses and names.
};

struct SandboxSupport {
  int landlock_version = 0;    // Of the kernel's interface; 0: it is not there, or switched off.
  bool filters_calls = false;  // seccomp.
  std::string why_not;         // Empty: all of it is there.
};
SandboxSupport sandbox_support();

// From now on only these files, no programs, no debugging, mounting, kernel modules and the like,
// and no connections where the kernel can tell (Landlock 4), unless the rules allow them. Errors:
// unsupported, with why; io: the kernel refuses, and what holds by then holds.
Status enter_sandbox(const SandboxRules& rules);

// From now on no new sockets either, or none that listen where it `connects`, and no changes of
// owners and permissions by paths; those that listen go on accepting. Errors: as of
// enter_sandbox().
Status seal_sandbox(bool connects = false);

}  // namespace cairn
