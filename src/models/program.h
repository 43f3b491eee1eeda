// A program: the model run thinner, or with more experts than its file says. Which layers run, and
// how many experts each token uses. The default program is the model itself; each other computes
// other bits, so that what one has kept is nothing to another (engine/fingerprint.h). Thread-safe:
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"

namespace cairn::models {

// What is asked for, before a model is known.
struct ProgramChoice {
  int32_t exit_layer = 0;               // Layers [0, exit_layer) run; 0: all.
  std::vector<int32_t> skipped_layers;  // Of these; in any order.
  int32_t expert_count = 0;             // That each token uses; 0: as the file says.

  bool is_default() const { return exit_layer == 0 && skipped_layers.empty() && expert_count == 0; }
};

// What that is for a model. Equal ones compute equal bits.
struct Program {
  std::vector<int32_t> skipped_layers;  // Ascending, each once.
  int32_t expert_used_count = 0;        // 0: as the file says, which is never spelled out.

  bool is_default() const { return skipped_layers.empty() && expert_used_count == 0; }
  bool skips(int32_t layer) const;
  // Whether a tensor belongs to a layer that is skipped ("blk.3.attn_q.weight").
  bool skips_tensor(std::string_view name) const;
  // "all but layers 4-7, 12; 2 experts"; "all layers" of the default.
  std::string text() const;

  bool operator==(const Program&) const = default;
};

// "4-7, 12"
std::string layer_list_text(const std::vector<int32_t>& ascending);

// The other way: "4-7,12". Errors: invalid_argument, with the option's name.
Result<std::vector<int32_t>> parse_layer_list(std::string_view option, std::string_view text);

// The number of experts that the choice means. Errors: invalid_argument where the model has none,
// or not so many.
Result<int32_t> choose_experts(const ProgramChoice& choice, const gguf::Metadata& meta);
// The layers that are left out of a model of so many. Errors: invalid_argument where there are no
// such layers, or none is left.
Result<std::vector<int32_t>> choose_skipped(const ProgramChoice& choice, int32_t layer_count);

}  // namespace cairn::models
