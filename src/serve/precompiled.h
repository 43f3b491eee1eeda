// What most sources of this module read, compiled once (cmake/precompiled.cmake). Sources include
// what they use nonetheless.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "chat/conversation.h"
#include "json/value.h"
#include "session/service.h"
#include "tokenize/tokenizer.h"
