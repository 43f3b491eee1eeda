// From what a person names as a model to the path of its file: a file is taken as it is; hf:…,
// ollama:… and URLs are found on this machine or fetched; other words are aliases. Progress and
// notes go to stderr. Thread rule: one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "command_line/command_line.h"
#include "hub/pull.h"

namespace cairn::cli {

// `named` empty: the built-in model, whose path is empty. A path where nothing is stays what it is:
// whoever opens it says so. Errors: those of hub::pull(); of an alias.
Result<std::string> find_model(const std::string& named);

struct FoundModel {
  std::string path;  // Empty where it has to be fetched.
  std::optional<hub::ModelReference> remote;
};
// The same without fetching anything.
Result<FoundModel> look_for_model(const std::string& named);

// The option --expect-sha256 of a command that opens one model.
class ExpectedDigests {
 public:
  void add_to(command_line::Options& command);
  // find_model(), and the file's digest, or those of the files that are named, is what was said.
  // Nothing of a file is read but for its digest. Errors: also invalid_data: it has another one.
  Result<std::string> find(const std::string& named) const;

 private:
  std::vector<std::string> texts_;
};

// hub::pull() with progress on a terminal and notes on stderr.
Result<hub::Pulled> pull_with_progress(const hub::HubSettings& settings,
                                       const hub::ModelReference& reference,
                                       hub::PullOptions options);

}  // namespace cairn::cli
