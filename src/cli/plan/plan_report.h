// What `cairn plan` has found out, as a table and as JSON. Knows no options and measures nothing.
// Thread-safe: pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/machine/machine_memory.h"
#include "gguf/summary.h"
#include "measure/machine_limits.h"
#include "measure/model_plan.h"

namespace cairn::cli {

// Speeds of 0 are not known: nothing was measured.
struct PlannedLength {
  int32_t tokens = 0;
  size_t conversation_bytes = 0;
  double alone_per_second = 0, together_per_second = 0;
};

// The model in another type.
struct PlannedType {
  std::string name;  // "Q4_K_M".
  uint64_t file_bytes = 0;
  size_t bytes = 0;  // All that the longest conversations take with it.
  double alone_per_second = 0;
};

struct PlanReport {
  std::string model;
  gguf::Summary summary;
  uint64_t file_bytes = 0;
  std::string note;  // What is wrong with the file; may be empty.
  int32_t conversations = 1;
  int thread_count = 0;
  std::string isa;
  measure::MachineLimits limits;
  bool is_measured = false;
  MemoryRoom room;
  measure::ModelPlan plan;  // Of the longest conversations.
  double prompt_per_second = 0;
  std::vector<PlannedLength> lengths;  // Ascending; of models that make text.
  std::vector<PlannedType> types;      // The largest first.

  size_t bytes() const { return plan.fixed.total() + plan.conversations_bytes(conversations); }
  bool fits(size_t wanted) const { return room.bytes == 0 || wanted <= room.bytes; }
};

std::string as_table(const PlanReport& report);
std::string as_json(const PlanReport& report);

}  // namespace cairn::cli
