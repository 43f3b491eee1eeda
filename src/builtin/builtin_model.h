// The model that is inside the program (assets/README.md says what it is and is not).
// Thread-safe: constant data.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace cairn::builtin {

constexpr std::string_view kModelName = "cairn nano (built in)";

// A GGUF file, aligned to 64 bytes.
std::span<const std::byte> model();

}  // namespace cairn::builtin
