// A model that is served, and what requests to it begin with. Thread-safe: constant once made; the
// service and the scales are thread-safe themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "sample/params.h"
#include "serve/adapter_scales.h"
#include "session/service.h"

namespace cairn::serve {

struct ServedModel {
  session::Service* service = nullptr;
  std::string name;                 // By which clients know it.
  int64_t created = 0;              // Seconds since 1970.
  sample::SamplingParams sampling;  // Where a request says nothing.
  bool has_seed = false;            // Of `sampling`; else each request has a new one.
  // Of requests that name no adapters.
  std::shared_ptr<AdapterScales> adapters = std::make_shared<AdapterScales>();

  const Engine& engine() const { return service->engine(); }
  bool makes_text() const { return !engine().options().pooling; }
};

}  // namespace cairn::serve
