// Amounts as people write and read them. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cairn {

// "512M", "4G", "1.5GiB", "800MB", "65536": K, M, G and T count in 1024s, KB … TB in 1000s.
// Errors: invalid_argument, naming `what`.
Result<uint64_t> parse_bytes(std::string_view what, std::string_view text);

// "1.5 GiB", "820 KiB", "12 bytes".
std::string show_bytes(uint64_t bytes);

// "0.35 s", "12 s", "3:05 min".
std::string show_seconds(double seconds);

}  // namespace cairn
