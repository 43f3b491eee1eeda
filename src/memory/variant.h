// Which variant of the model (such as the LoRA adapters in use) computed a sequence. What one
// variant has computed is never reused by another, even if the tokens are the same.
#pragma once

#include <cstdint>

namespace cairn::memory {

// A digest of everything beside the model that changes what is kept, such as adapters and their
// scales; equal numbers compute equal bits. The memory only compares them.
enum class Variant : uint64_t { plain = 0 };

}  // namespace cairn::memory
