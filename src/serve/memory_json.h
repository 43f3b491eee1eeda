// Reports of memory as JSON: whole, and as what has changed since the one before. Positions and
// sizes alone. Not thread-safe.
#pragma once

#include <map>
#include <string>

#include "session/memory_report.h"

namespace cairn::serve {

// {"object": "memory", "process", "conversations", "engine", "store", "groups", "left_out",
//  "order": [ids], "sequences": [{id, use, length, common, stored, marks, groups}]}.
// Of a tenant's report the first four are null. Runs are flat lists: [begin, end, other references,
// begin …]; those of the store have no references.
std::string memory_json(const session::MemoryReport& report);

// The same of one report after another, each with only those sequences that are not as they were.
class MemoryChanges {
 public:
  // Empty where nothing has changed for a tenant: it is not told that others are at work.
  std::string next(const session::MemoryReport& report);

 private:
  std::string begin_;                         // What was said before the sequences.
  std::map<std::string, std::string> known_;  // By id: what was said of it.
};

}  // namespace cairn::serve
