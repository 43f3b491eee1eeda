// The 16 levels of IQ4_NL and IQ4_XS (facts of the GGUF format), and the search for a scale that an
// encoder needs because they are unevenly spaced.
#pragma once

#include <cstdint>

#include "quant/search.h"

namespace cairn::quant {

inline constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

// The scale d for which x ~ d * level is best; may be negative; 0 for a group of zeros.
float search_iq4_scale(const Group& group);
// The number of the level nearest to x / d; the level 1 everywhere where d is 0.
void quantize_iq4(const Group& group, float scale, int8_t* codes);
// The weighted squared error of quantize_iq4().
float error_of_iq4(const Group& group, float scale);

}  // namespace cairn::quant
