// Renders a template's syntax tree. Only reads the tree, so many threads may render one template at
// once.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "jinja/builtins/strftime.h"
#include "jinja/syntax/syntax.h"
#include "jinja/work_budget.h"

namespace cairn::jinja {

using Variable = std::pair<std::string, Value>;

// The template's output, at most 8 MiB. Errors carry line and column: invalid_argument
// (raise_exception; the message is the template's), no_room (a budget of runtime.h), unsupported
// (any other failure, such as an attribute of an undefined value).
Result<MarkedText> render(const Tree& tree, std::span<const Variable> variables,
                          std::optional<CivilTime> clock);
// The same within a budget that other renders share.
Result<MarkedText> render(const Tree& tree, std::span<const Variable> variables,
                          std::optional<CivilTime> clock, WorkBudget& budget);

}  // namespace cairn::jinja
