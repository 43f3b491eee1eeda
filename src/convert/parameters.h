// Hyperparameters of config.json as the metadata of a GGUF file. Knows no tensor and no tokenizer.
// Pure; any thread.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "convert/config.h"
#include "convert/family.h"
#include "convert/key_values.h"

namespace cairn::convert {

// Adds everything under the architecture's name, and general.file_type. Errors: not_found or
// invalid_data (names the key), unsupported (a rotary scaling that GGUF has no words for).
Status add_parameters(const Config& config, const Family& family, uint32_t file_type,
                      KeyValues& out);

}  // namespace cairn::convert
