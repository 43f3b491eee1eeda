// A conversation on another runtime: computed by whoever calls, in turn with all others of the
// engine. Thread rule: that of tracks.
#pragma once

#include <memory>

#include "base/result.h"
#include "capi/mailbox.h"
#include "capi/runtime_engine.h"
#include "capi/track.h"

namespace cairn::capi {

// Both outlive it. Errors: those of LoadedRuntime::open_session().
Result<std::unique_ptr<Track>> open_runtime_track(RuntimeEngine* engine, Mailbox* mailbox);

}  // namespace cairn::capi
