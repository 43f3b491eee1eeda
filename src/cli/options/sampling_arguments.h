// The options of sampling, one for each line of its table. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "command_line/command_line.h"
#include "session/sampling_choice.h"

namespace cairn::cli {

class SamplingArguments {
 public:
  void add_to(command_line::Options& command);
  // What was said. Errors: invalid_argument.
  Result<session::SamplingChoice> read() const;

 private:
  std::deque<std::optional<double>> values_;  // One for each field; addresses stay.
  std::deque<bool> flags_;
  std::deque<std::vector<std::string>> lists_;
  std::string seed_;
};

}  // namespace cairn::cli
