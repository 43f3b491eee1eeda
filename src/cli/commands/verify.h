// `cairn verify`: shows, on the user's own model and machine, that whatever was forked, rewound,
// edited or thrown out of memory, the next logits are those of a fresh reading, bit for bit.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engine/engine.h"

namespace cairn::cli {

struct VerifyArguments {
  std::string model_path;  // Empty: the built-in model.
  int32_t program_count = 8;
  uint64_t seed = 1;
  bool json = false;
  EngineOptions engine;
};

// Prints a table; returns the exit code, which is an error's where a single bit differs.
Result<int> verify_main(const VerifyArguments& arguments);

}  // namespace cairn::cli
