// Which of a model's variants a timeline is computed by. What one of them has made is never read by
// another, even where the tokens are the same.
#pragma once

#include <cstdint>

namespace cairn::memory {

// A number for everything beside the model that goes into what is kept, such as adapters and their
// scales; equal numbers compute equal bits. The memory compares them and knows no more.
enum class Variant : uint64_t { plain = 0 };

}  // namespace cairn::memory
