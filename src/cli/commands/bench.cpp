// `cairn bench`: options of both kinds of measuring, and which of the two is meant.
#include <memory>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/memory_bench.h"
#include "cli/commands/speed_bench.h"
#include "cli/options/engine_arguments.h"

namespace cairn::cli {

namespace {

struct BenchCommandArguments {
  ExpectedDigests expected;
  std::string what;
  bool is_variable_model = false;  // The models of `memory` are the environment's.
  MemoryBenchArguments memory;
  SpeedBenchArguments speed;
  EngineArguments engine;
};

void add_speed(command_line::Options& command, SpeedBenchArguments& speed) {
  const auto add_list = [&](const char* names, std::vector<int32_t>& list, int32_t min,
                            const char* doc) {
    command.add(names, list, doc)
        .takes("N,N...")
        .separated_by(',')
        .in_range(min, 1 << 24)
        .shows_default();
  };
  measure::SpeedWork& work = speed.work;
  work.prompts = {512};
  work.new_tokens = 128;
  command.begin_group("Speed (MODEL)");
  add_list("-p,--prompt-tokens", work.prompts, 0, "prompt lengths to measure, in tokens");
  command.add("-n,--new-tokens", work.new_tokens, "tokens to decode; 0: none")
      .in_range(0, 1 << 24)
      .shows_default();
  add_list("-d,--depths", work.depths, 0, "tokens already in the context before each measurement");
  add_list("--batch", work.batches, 1, "numbers of sequences that decode together");
  command.add_flag("--separate-prompts", work.separate_prompts,
                   "give each sequence of a batch a context of its own, not a shared one");
  command.add("-r,--rounds", work.round_count, "how often to measure; the median is shown")
      .in_range(1, 10000)
      .shows_default();
}

void add_memory(command_line::Options& command, MemoryBenchArguments& memory) {
  command.begin_group("Memory (the word memory)");
  command
      .add("--preset", memory.presets,
           "measure models of these shapes only (names of `cairn synth --preset`)")
      .takes("NAME");
  command.add("--type", memory.type, "type of those models' matrices")
      .takes("TYPE")
      .shows_default();
  command.add("--folder", memory.folder, "where to write those models while they are measured")
      .takes("DIR");
}

Result<int> bench(BenchCommandArguments& a) {
  if (a.what == "memory") {
    CAIRN_TRY(a.memory.engine, a.engine.read("f16"));
    a.memory.json = a.speed.json;
    for (std::string& model : a.memory.models) {
      CAIRN_TRY(model, find_model(model));
    }
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
  CAIRN_TRY(a.speed.engine, a.engine.read("f16"));
  CAIRN_TRY(a.speed.model_path, a.expected.find(a.what));
  return bench_speed(a.speed);
}

command_line::Action add_bench(command_line::Options& command) {
  const auto a = std::make_shared<BenchCommandArguments>();
  command.add(
      "WHAT", a->what,
      "a GGUF file, to measure its speed; or the word memory, to measure what conversations cost");
  command
      .add("MODEL", a->memory.models,
           "behind the word memory: GGUF files; default: models with random weights")
      .takes("FILE")
      .notes_variable(a->is_variable_model);
  add_speed(command, a->speed);
  a->expected.add_to(command);
  add_memory(command, a->memory);
  command.begin_group("Output");
  command.add_flag("--json", a->speed.json, "print JSON");
  a->engine.add_to(command);
  a->engine.add_program_to(command);
  a->engine.add_memory_to(command);
  command.set_notes(
      "Speed: medians of samples taken in turn, beside the limits of the machine's memory and "
      "arithmetic.\nMemory: exit code 1 if a figure misses its target.\n");
  command.add_example("cairn bench MODEL.gguf", "tokens per second, prompt and decoding");
  command.add_example("cairn bench memory", "tokens, bytes and time that conversations cost");
  return [a]() -> Result<int> { return bench(*a); };
}

}  // namespace

const command_line::Command kBenchCommand = {
    "bench", "measure a model's speed, or what conversations cost", add_bench};

}  // namespace cairn::cli
