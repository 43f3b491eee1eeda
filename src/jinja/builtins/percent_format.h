// `'…' % values`, Python's printf-style formatting, and `'…'.format(…)`. One render, one thread.
#pragma once

#include "jinja/builtins/arguments.h"
#include "jinja/runtime.h"

namespace cairn::jinja {

// The values are a tuple, a dict (for `%(name)s`) or a single value. REQUIRES: format is a string.
Result<Value> percent_format(Runtime& runtime, const Value& format, const Value& values);

// REQUIRES: format is a string.
Result<Value> brace_format(Runtime& runtime, const Value& format, const Arguments& arguments);

}  // namespace cairn::jinja
