// A model as its header has it, whose weights are all zeros that take no memory: for whoever counts
// what a model would take, without reading it, or without having it. Its tensors may be given other
// types. Thread-safe once made: constant data.
#pragma once

#include <span>
#include <string>

#include "base/arena.h"
#include "base/result.h"
#include "gguf/gguf.h"

namespace cairn::gguf {

// `file` reads `zeros`, which must live as long.
struct HollowModel {
  Arena zeros;
  File file;
};

// `parts`: a whole model, or all parts of a split one in order; opened for inspection, since their
// weights need not be there. `types`: one for each tensor of all parts, null: its own; none: all
// have their own. The model is one file of the name of the first part.
// Errors: what a file to be run must keep; memory_full: no addresses for so many bytes.
Result<HollowModel> make_hollow(std::span<const File* const> parts,
                                std::span<const quant::Type* const> types = {});

}  // namespace cairn::gguf
