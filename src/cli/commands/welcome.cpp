// The first screen.
#include "cli/commands/welcome.h"

#include <fmt/core.h>

#include "base/cpu_features.h"
#include "base/machine/machine_memory.h"
#include "base/quantities.h"
#include "base/threads.h"
#include "engine/engine.h"

namespace cairn::cli {

std::string feature_names() {
  const CpuFeatures has = detect_cpu_features();
  const std::pair<bool, const char*> all[] = {
      {has.avx2, "AVX2"},         {has.fma, "FMA"},           {has.f16c, "F16C"},
      {has.avx512, "AVX-512"},    {has.avx512_vnni, "VNNI"},  {has.avx512_vbmi, "VBMI"},
      {has.avx512_bf16, "BF16"},  {has.avx_vnni, "AVX-VNNI"}, {has.amx_int8, "AMX-INT8"},
      {has.amx_bf16, "AMX-BF16"},
  };
  std::string names;
  for (const auto& [is_there, text] : all) {
    if (!is_there) continue;
    if (!names.empty()) names += ' ';
    names += text;
  }
  return names.empty() ? "no vector extensions that cairn knows" : names;
}

namespace {

// What is left for this process, and whose limit that is where others than the machine set it.
std::string memory_text() {
  const std::string total = show_bytes(read_machine_memory().total_bytes);
  const MemoryRoom room = read_memory_room();
  if (room.bytes == 0) return total;
  const std::string left = show_bytes(room.bytes);
  if (room.limited_by == "MemAvailable") return fmt::format("{}, {} free", total, left);
  return fmt::format("{}, of which cairn may take {} (limit: {})", total, left, room.limited_by);
}

}  // namespace

std::string welcome_screen() {
  const IsaLevel isa = best_isa(detect_cpu_features());
  return fmt::format(
      "cairn {}: runs language models from GGUF files\n"
      "\n"
      "  CPU      {} cores; {}; kernels: {}\n"
      "  memory   {}\n"
      "\n"
      "  cairn run                    chat with the built-in demo model\n"
      "  cairn run MODEL.gguf         chat with a model of yours\n"
      "  cairn run MODEL.gguf -p ...  one answer\n"
      "  cairn inspect MODEL.gguf     what is in a file\n"
      "  cairn list                   the models of this machine\n"
      "  cairn pull OWNER/REPO        fetch one from Hugging Face\n"
      "\n"
      "  cairn --help                 all commands; cairn COMMAND --help their options\n",
      CAIRN_VERSION, usable_core_count(), feature_names(), name(isa), memory_text());
}

std::string version_text() {
  constexpr std::string_view kCommit = CAIRN_COMMIT;  // Empty where the source has no history.
  return fmt::format("cairn {}{}\nnumerics: {} (default), {}\ninstruction set: {}", CAIRN_VERSION,
                     kCommit.empty() ? "" : fmt::format(" (commit {})", kCommit),
                     name(Numerics::exact_1), name(Numerics::fast_1),
                     name(best_isa(detect_cpu_features())));
}

}  // namespace cairn::cli
