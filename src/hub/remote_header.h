// What a model's files say of themselves, without the model: the first bytes of each file of a
// remote model, by ranges, as many as its header has. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/model_reference.h"
#include "hub/settings.h"
#include "hub/web.h"

namespace cairn::hub {

struct RemoteHeader {
  std::string name;                // The reference with the file that was chosen.
  std::vector<std::string> parts;  // The header of each file, of a split model in order, and a
                                   // little of what follows it.
  uint64_t fetched_bytes = 0;
};

// Nothing is kept on the disk. Errors: those of find_model(); invalid_data: no header in the first
// 256 MiB; io: a server that gives no ranges.
Result<RemoteHeader> fetch_header(const HubSettings& settings, const ModelReference& reference,
                                  const WebOptions& options = {});

}  // namespace cairn::hub
