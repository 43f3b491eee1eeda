// The limits of untrusted grammars. What exceeds one is a no_room error, in bounded time and
// memory; ordinary grammars stay far below. Thread-safe: plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::grammar {

struct Limits {
  size_t source_bytes = 256u << 10;
  size_t regex_bytes = 64u << 10;
  int32_t nesting = 256;
  int32_t rule_count = 4096;
  int32_t alternative_count = 16'384;
  int32_t token_count = 1024;     // Different tokens that are named.
  int32_t repeat_count = 10'000;  // The numbers of {m,n}.
  int32_t schema_depth = 64;
  int32_t property_count = 4096;
  int32_t enum_count = 65'536;   // Values of one enum, or choices of a list.
  size_t state_count = 300'000;  // Of the finished automaton, and of what it is made from.
  size_t edge_count = 1 << 20;   // 12 bytes each.
  // Elementary steps of compiling, some nanoseconds each: about half a second.
  int64_t work = 40'000'000;
};

// While tokens are chosen. Work is counted, not timed: the same request fails on every machine.
constexpr size_t kLiveStacksMax = 4096;
// Stacks that one token or one mask may touch for the first time: about two milliseconds.
constexpr int64_t kStepWorkMax = 1 << 16;

}  // namespace cairn::grammar
