// Which runtime computes a model: the one that was asked for, or the best that can. A name that was
// asked for is never replaced by another one. Thread-safe: functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtimes/runtime.h"

namespace cairn::runtimes {

inline constexpr std::string_view kBuiltIn = "cairn";

// A name; none: CAIRN_BACKEND, and without it the highest rank of those that are available and can
// compute the model, the built-in engine before others of its rank. `others_fit`: why nothing but
// the built-in engine can do what else is asked for. Null: the built-in engine. Errors:
// invalid_argument: no such name; unsupported: it is not available, or cannot compute the model or
// do what is asked for. Both with the names there are.
Result<const RuntimeType*> choose(std::span<const RuntimeType* const> types,
                                  const std::optional<std::string>& wanted, const ModelProbe& probe,
                                  const Status& others_fit = Ok{});

struct Listed {
  std::string_view name;
  int32_t rank = 0;
  std::string why_not;                // Empty: it is available.
  const RuntimeType* type = nullptr;  // Null: the built-in engine.
};
// By rank, the highest first; the built-in engine before others of its rank.
std::vector<Listed> list(std::span<const RuntimeType* const> types);

}  // namespace cairn::runtimes
