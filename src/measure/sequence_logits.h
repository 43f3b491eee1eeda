// The logits of every token of a sequence, as raw f32 rows, for checks from outside.
// Thread rule: the engine's thread.
#pragma once

#include <span>

#include "base/ids.h"
#include "base/output_file.h"
#include "base/result.h"
#include "engine/engine.h"

namespace cairn::measure {

// Adds [tokens][vocabulary] f32, little-endian, computed from the beginning in steps as long as the
// engine takes them with all their outputs. Errors: memory_full, io.
Status append_logits(Engine& engine, std::span<const Token> tokens, OutputFile& out);

}  // namespace cairn::measure
