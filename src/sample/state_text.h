// What a sampler remembers, as text: of each token its position, its id and the two numbers, these
// as the hexadecimal digits of their bits, so that nothing is rounded. Thread-safe: pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sample/state.h"

namespace cairn::sample {

std::string to_text(const SamplerState& state);
// Errors: invalid_data: not as written; positions that do not ascend; numbers that are not finite.
Result<SamplerState> read_sampler_state(std::string_view text);

}  // namespace cairn::sample
