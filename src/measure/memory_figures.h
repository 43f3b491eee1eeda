// The results of `cairn bench memory`, as rows: a figure, its limit, and llama.cpp's figure in the
// same scenario if it is known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace cairn::measure {

constexpr double kMiB = 1 << 20;  // Bytes.

struct Figure {
  std::string what;
  double measured = 0;
  std::string unit;  // "tokens", "µs", "MiB" …
  double bar = 0;    // The largest allowed value.
  bool has_bar = true;
  double peer = -1;  // llama.cpp's; negative: not measured.

  bool holds() const { return !has_bar || measured <= bar; }
};

// Token counts of conversations, through the engine, as clients cause them: 100 tokens of system
// prompt, user messages of 600 tokens, answers of 24. `preset` says which of the peer's figures
// stand beside; may be empty.
Result<std::vector<Figure>> measure_conversations(Engine& engine, std::string_view preset);

// Time and bytes of the memory alone, at 32k tokens; nothing is computed for it.
Result<std::vector<Figure>> measure_costs(Engine& engine);

// Attention over pages in scattered order against pages in a row, at 8k tokens.
Result<std::vector<Figure>> measure_paging(Engine& engine);

struct MemoryWork {
  std::string_view preset;       // Whose figures of the peer stand beside; may be empty.
  uint64_t resident_before = 0;  // Resident bytes before the engine was loaded.
  uint64_t weights_bytes = 0;    // Of the model's file.
};

// All of these, behind what a loaded engine holds beside its weights.
Result<std::vector<Figure>> measure_memory(Engine& engine, const MemoryWork& work);

}  // namespace cairn::measure
