// The options of a tier that machines share: --tier and what belongs to it.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "command_line/command_line.h"
#include "tier/tier_options.h"

namespace cairn::cli {

class TierArguments {
 public:
  void add_to(command_line::Options& command);
  // Without a URL: there is no tier. Errors: invalid_argument.
  Result<tier::TierOptions> read() const;

 private:
  static Status check_peers(const tier::PeerOptions& peers);

  tier::TierOptions options_;
  std::string publishing_ = "second-use", fetching_ = "cheaper";
  int32_t seconds_ = 1800, megabytes_ = 250;
};

}  // namespace cairn::cli
