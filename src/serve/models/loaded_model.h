// A model in memory: its engine, the thread that computes, and what requests are told of it.
// Thread-safe: constant once loaded, but for the service, which is thread-safe itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/models/model_source.h"
#include "serve/served_model.h"
#include "session/sampling_choice.h"
#include "session/turns.h"

namespace cairn::serve {

// What is the same for all models of a server.
struct LoadTerms {
  // Where there is a number of context tokens, models that know fewer get fewer.
  EngineOptions engine;
  session::SamplingChoice sampling;
  std::shared_ptr<session::Turns> turns;
  // From a path to a file; the path may be empty: the built-in model.
  std::function<Result<gguf::File>(const std::string& path)> open = [](const std::string& path) {
    return gguf::File::open(path);
  };
};

// Told while a model is loaded: what is being done, and how much of it.
enum class LoadStage : uint8_t { checking, loading };
using LoadProgress = std::function<void(LoadStage stage, int percent)>;

// Whether a file is the same one, and unchanged: nobody sets its time of change (ctime) at will.
struct FileStamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
// Of all parts; zeros of what is not there.
std::vector<FileStamp> stamps_of(const ModelSource& source);

// That the files have the digests that they must have. Errors: not_found, io; invalid_data, with
// both digests; cancelled, where `is_given_up`, which is asked for each MiB, says so.
Status check_digests(const ModelSource& source, const LoadProgress& progress,
                     const std::function<bool()>& is_given_up = {});

class LoadedModel {
 public:
  // First the digests of the files that have one to match, unless they were found right before,
  // then all else; a file that is changed meanwhile is an error. `checked`: the stamps of files
  // whose digests are right; becomes those of this load. Errors: what is wrong with the files or
  // the options; invalid_data with both digests; cancelled, where it was given up.
  static Result<std::unique_ptr<LoadedModel>> load(const ModelSource& source,
                                                   const LoadTerms& terms,
                                                   const LoadProgress& progress,
                                                   std::vector<FileStamp>& checked);

  const ServedModel& served() const { return served_; }

 private:
  LoadedModel() = default;

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<session::Service> service_;  // Goes before its engine.
  ServedModel served_;
};

}  // namespace cairn::serve
