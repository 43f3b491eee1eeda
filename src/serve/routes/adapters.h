// Which adapters a request is answered with. Thread-safe: pure.
#pragma once

#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "json/value.h"
#include "serve/refusal.h"

namespace cairn::serve {

// Of a list of objects with id and scale; those that it does not name are not used.
Checked<std::vector<AdapterUse>> read_adapters(const json::Value& list, std::string_view field,
                                               const Engine& engine);

}  // namespace cairn::serve
