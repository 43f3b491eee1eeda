// `cairn bench`: options of both kinds of measuring, and which of the two is meant.
#include <memory>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/commands/memory_bench.h"
#include "cli/commands/speed_bench.h"
#include "cli/options/engine_arguments.h"

namespace cairn::cli {

namespace {

struct Arguments {
  std::string what;
  bool is_variable_model = false;  // The models of `memory` are the environment's.
  MemoryBenchArguments memory;
  SpeedBenchArguments speed;
  EngineArguments engine;
};

void add_speed(Options& command, SpeedBenchArguments& speed) {
  const auto add_list = [&](const char* names, std::vector<int32_t>& list, int32_t min,
                            const char* doc) {
    command.add(names, list, doc).separated_by(',').in_range(min, 1 << 24).shows_default();
  };
  measure::SpeedWork& work = speed.work;
  work.prompts = {512};
  work.new_tokens = 128;
  add_list("-p,--prompt-tokens", work.prompts, 0, "speed: tokens of prompts, between commas");
  command.add("-n,--new-tokens", work.new_tokens, "speed: tokens to decode; 0: none")
      .in_range(0, 1 << 24)
      .shows_default();
  add_list("-d,--depths", work.depths, 0, "speed: tokens before them");
  add_list("--batch", work.batches, 1, "speed: sequences that decode together");
  command.add_flag("--separate-prompts", work.separate_prompts,
                   "speed: what stands before is another for each sequence of a batch");
  command.add("-r,--rounds", work.round_count, "speed: how often all is measured")
      .in_range(1, 10000)
      .shows_default();
}

void add_memory(Options& command, MemoryBenchArguments& memory) {
  command.add("--preset", memory.presets, "memory: of those, only these shapes");
  command.add("--type", memory.type, "memory: type of their matrices").shows_default();
  command.add("--folder", memory.folder, "memory: where they are written meanwhile");
}

Result<int> bench(Arguments& a) {
  if (a.what == "memory") {
    CAIRN_TRY(a.memory.engine, a.engine.read("f16"));
    a.memory.json = a.speed.json;
    return bench_memory(a.memory);
  }
  // A model that only the environment names stands where further ones would.
  if (a.is_variable_model && a.what.empty()) a.what = a.memory.models[0];
  if (a.is_variable_model) a.memory.models.clear();
  if (a.what.empty()) {
    return fail(ErrorCode::invalid_argument,
                "bench: expected a model or \"memory\", found neither");
  }
  if (!a.memory.models.empty() && !a.memory.models[0].empty()) {
    return fail(ErrorCode::invalid_argument, "bench: expected one model, found \"{}\" after \"{}\"",
                a.memory.models[0], a.what);
  }
  a.speed.model_path = a.what;
  CAIRN_TRY(a.speed.engine, a.engine.read("f16"));
  return bench_speed(a.speed);
}

Action add_bench(Options& command) {
  const auto a = std::make_shared<Arguments>();
  command.add("WHAT", a->what,
              "a GGUF file, whose speed is measured; or memory: what conversations cost");
  const Option models =
      command.add("MODEL", a->memory.models, "memory: GGUF files; else models with random weights");
  command.watch(models, a->is_variable_model);
  add_speed(command, a->speed);
  add_memory(command, a->memory);
  command.add_flag("--json", a->speed.json, "JSON instead of tables");
  a->engine.add_to(command);
  a->engine.add_memory_to(command);
  command.set_footer(
      "Speed: medians of samples that take turns, beside what the machine could do at best.\n"
      "Memory: exit code 1 where a figure misses its bar.\n");
  return [a]() -> Result<int> { return bench(*a); };
}

}  // namespace

const Command kBenchCommand = {"bench", "measure a model's speed, or what conversations cost",
                               add_bench};

}  // namespace cairn::cli
