// What a model's name says: "Qwen3-30B-A3B-Instruct-2507" is of basename Qwen3, size 30B-A3B,
// finetune Instruct, version 2507. The guesses are the usual converter's. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::convert {

struct ModelName {
  std::string full, organization, basename, finetune, version, size_label;  // Empty: not said.
};

// `id` is a folder's name or "organization/name". A size that is far from weight_count is none.
ModelName parse_model_name(std::string_view id, int64_t weight_count);

// "tiny-llama-3b" as a title: "Tiny Llama 3b".
std::string title_of(std::string_view name);

struct WeightCounts {
  int64_t total = 0, shared = 0, of_expert = 0, expert_count = 0;
};
// "8B", "8x7B", "596M".
std::string size_label(const WeightCounts& counts);

}  // namespace cairn::convert
