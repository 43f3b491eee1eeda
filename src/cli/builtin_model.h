// The model that is inside the program (assets/README.md says what it is and is not).
// Thread-safe: constant data.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace cairn::cli {

constexpr std::string_view kBuiltinModelName = "cairn nano (built in)";
constexpr std::string_view kBuiltinModelDoc =
    "Without MODEL the built-in one runs: cairn nano, 4 million parameters, trained on made-up\n"
    "conversations. It recalls what it is told, copies, spells, counts and knows a few capitals "
    "and\n"
    "opposites. It is there to show that everything works; it is not a chat model.";

// A GGUF file, aligned to 64 bytes.
std::span<const std::byte> builtin_model();

}  // namespace cairn::cli
