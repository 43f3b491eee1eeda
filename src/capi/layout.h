// The public structs as this library was compiled with them. Thread-safe: constant.
#pragma once

namespace cairn::capi {

// {"cairn_plan": {"size": 48, "target": 8, …}, …}
const char* layout_json();

}  // namespace cairn::capi
