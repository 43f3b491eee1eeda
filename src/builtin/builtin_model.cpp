// The symbols that builtin_model.S puts around the bytes.
#include "builtin/builtin_model.h"

extern "C" {
extern const std::byte cairn_builtin_model_begin[];
extern const std::byte cairn_builtin_model_end[];
}

namespace cairn::builtin {

std::span<const std::byte> model() {
  return {cairn_builtin_model_begin, cairn_builtin_model_end};
}

}  // namespace cairn::builtin
