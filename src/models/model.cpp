// The look-up of architectures.
#include "models/model.h"

#include <string>

namespace cairn::models {

Result<const Architecture*> find_architecture(std::string_view name) {
  std::string known;
  for (const Architecture* architecture : all_architectures()) {
    if (architecture->name == name) return architecture;
    known += known.empty() ? "" : ", ";
    known += architecture->name;
  }
  return fail(ErrorCode::unsupported, "general.architecture: expected one of {}, found \"{}\"",
              known, name);
}

}  // namespace cairn::models
