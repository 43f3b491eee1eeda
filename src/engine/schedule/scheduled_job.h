// A job as the scheduler keeps it: where it stands, what starting costs, whom it waits for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "engine/lane.h"
#include "engine/schedule/client_list.h"
#include "engine/schedule/job.h"
#include "memory/resolver.h"

namespace cairn {

enum class JobId : int64_t {};

struct ScheduledJob {
  enum class Stage : uint8_t { waiting, running };
  // As the trace shows it.
  enum class Phase : uint8_t { none, queued, reading, writing };

  JobId id;
  JobTerms terms;
  std::unique_ptr<Job> job;
  Client* client = nullptr;
  Stage stage = Stage::waiting;
  bool has_started = false;
  bool has_ended = false;  // Then there is no job any more.
  // Memory had no room for its next rows; -1: not since it was tried last.
  int64_t stalled_in = -1;
  int64_t turn = 0;  // The number of the last row that was its answer's, of those of all answers.
  // Another job has, or is computing, the beginning of its prompt up to this position.
  JobId source{-1};
  int32_t source_position = 0;
  bool has_source_published = false;
  int32_t lent_priority = std::numeric_limits<int32_t>::min();
  // Of waiting jobs: what starting costs, as it was found in an epoch of the memory; and the bytes
  // that have to be free or evictable for it.
  memory::ResumePlan plan;
  size_t wanted_bytes = 0;
  int64_t planned_in = -1;
  // In the trace, if there is one.
  int64_t task = 0;
  Phase phase = Phase::none;

  Lane* lane() const { return job->lane(); }
  uint64_t tenant() const { return job->variant().tenant; }
  bool is_running() const { return stage == Stage::running && !has_ended; }
  bool has_memory() const {
    return is_running() && lane() != nullptr && lane()->sequence().length() > 0;
  }
  // While blocks that it has taken are filled from the store.
  const StoredPrefix* read_stored() const {
    return stage == Stage::waiting && !has_ended && lane() != nullptr ? lane()->read_stored()
                                                                      : nullptr;
  }
  // While jobs of a higher priority wait for its prefix, it is as urgent as they are.
  int32_t step_priority() const { return std::max(terms.priority, lent_priority); }
};

using ScheduledJobs = std::vector<std::unique_ptr<ScheduledJob>>;

}  // namespace cairn
