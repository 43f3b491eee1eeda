// The command line: which commands and options there are, what they are called, where their values
// come from. The only user of CLI11. Every option is also an environment variable, CAIRN_ and its
// name in capitals; the command line wins.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_levels.h"
#include "base/env.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "cli/builtin_model.h"
#include "cli/commands/adapter_choice.h"
#include "cli/commands/embed.h"
#include "cli/commands/inspect.h"
#include "cli/commands/load.h"
#include "cli/commands/logits.h"
#include "cli/commands/memory_bench.h"
#include "cli/commands/perplexity.h"
#include "cli/commands/run.h"
#include "cli/commands/speed_bench.h"
#include "cli/commands/template.h"
#include "cli/commands/tokenize.h"
#include "cli/commands/verify.h"
#include "cli/commands/welcome.h"
#include "cli/exit_codes.h"
#include "cli/terminal/terminal.h"
#include "convert/convert.h"
#include "models/model.h"
#include "quantize/quantize.h"
#include "quantize/quantize_types.h"
#include "synth/synth.h"

namespace cairn::cli {

namespace {

constexpr char kFooter[] =
    "Every option is also an environment variable, named in brackets; the command line wins.\n"
    "Exit codes: 0 fine, 1 error, 2 usage, 3 a mapped model file shrank, 130 interrupted.";

// A command after its options are parsed. Returns the exit code.
using Action = std::function<Result<int>()>;

// "--top-k" → "CAIRN_TOP_K"; positional MODEL → "CAIRN_MODEL".
std::string variable_of(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  std::string variable = "CAIRN_" + (names.empty() ? option.get_name(true) : names.front());
  for (char& c : variable) {
    if (c == '-') c = '_';
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  }
  return variable;
}

bool has_variable(const CLI::App& command, const CLI::Option& option) {
  return &option != command.get_help_ptr();
}

void name_variables(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (!has_variable(command, *option)) continue;
    option->description(option->get_description() + " [" + variable_of(*option) + "]");
  }
}

// Gives options that the command line left out their variables' values.
void take_variables(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (!has_variable(command, *option) || option->count() > 0) continue;
    const auto& rivals = option->get_excludes();
    const bool is_excluded = std::any_of(rivals.begin(), rivals.end(),
                                         [](CLI::Option* rival) { return rival->count() > 0; });
    const auto value = is_excluded ? std::nullopt : env(variable_of(*option).c_str());
    if (!value || value->empty()) continue;
    option->add_result(*value);
    option->run_callback();
  }
}

// CLI11 checks what must be there before variables are read, so this is checked afterwards.
Status require(std::string_view option, const std::string& value) {
  if (!value.empty()) return Ok{};
  return fail(ErrorCode::invalid_argument, "{}: expected a value, found none", option);
}

Result<ContextPolicy> parse_context_policy(std::string_view text) {
  if (text == "stop") return ContextPolicy::stop;
  if (text == "shift") return ContextPolicy::shift;
  return fail(ErrorCode::invalid_argument,
              "--context-policy: expected \"stop\" or \"shift\", found \"{}\"", text);
}

Result<Numerics> parse_numerics(std::string_view text) {
  if (text.empty() || text == "exact") return Numerics::exact_1;
  if (text == "fast") return Numerics::fast_1;
  return fail(ErrorCode::invalid_argument,
              "--numerics: expected \"exact\" or \"fast\", found \"{}\"", text);
}

// Options of everything that computes.
struct EngineArguments {
  EngineOptions options;
  std::string isa, numerics, kv, keys, values, memory_budget, context_policy;
  std::vector<std::string> adapters;

  void add_to(CLI::App& command) {
    command.add_option("-t,--threads", options.thread_count, "threads; 0: one for each core")
        ->check(CLI::Range(0, 1024));
    command.add_option("--backend", options.backend, "what computes: cpu, or reference (slow)");
    command.add_option("--isa", isa,
                       "this instruction set, not the best there is: scalar, avx2, avx2_vnni, "
                       "avx512_vnni, amx");
    command.add_option("--numerics", numerics,
                       "exact (unless told): the same bits always; fast: prompts round to bf16 "
                       "where the CPU multiplies that faster");
    CLI::Option* cache = command.add_option(
        "--pack-cache", options.pack_cache,
        "a folder for packed weights: the next start maps them instead of packing");
    command
        .add_flag("--no-pack", options.is_unpacked,
                  "read weights from the file as they are needed: slow, for models larger than "
                  "the memory")
        ->excludes(cache);
    command
        .add_option("--lora", adapters,
                    "FILE or FILE:SCALE: a LoRA adapter in GGUF; may come several times; 0: only "
                    "where it is asked for")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command.add_option("--kv", kv, "how keys and values are kept: f32, f16, bf16, q8_0 or q4_0");
    command.add_option("--cache-type-k", keys, "how keys are kept, where not as --kv says");
    command.add_option("--cache-type-v", values, "how values are kept, where not as --kv says");
  }
  void add_memory_to(CLI::App& command) {
    command
        .add_option("-c,--ctx-size", options.context_tokens, "context in tokens; 0: the model's")
        ->check(CLI::Range(0, 1 << 24));
    command.add_option(
        "--memory-budget", memory_budget,
        "at most so much memory for conversations: 512M, 4G; else half of what is free");
    command.add_option("--context-policy", context_policy,
                       "when the context is full: stop (unless told), or shift: leave out what is "
                       "oldest and read the rest anew");
    command
        .add_option("--keep", options.shift_keep,
                    "tokens at the beginning that no shift leaves out")
        ->check(CLI::Range(0, 1 << 24));
    command.add_flag("--keep-windows", options.keeps_all_windows,
                     "going back far costs memory for all of a window's past, not reading again");
  }
  Result<EngineOptions> read(std::string_view default_kv) const {
    EngineOptions read_options = options;
    if (!isa.empty()) {
      CAIRN_TRY(const IsaLevel level, parse_isa(isa));
      read_options.isa = name(level);
    }
    CAIRN_TRY(read_options.numerics, parse_numerics(numerics));
    for (const std::string& adapter : adapters) {
      CAIRN_TRY(AdapterChoice choice, parse_adapter(adapter));
      read_options.adapters.push_back(std::move(choice));
    }
    CAIRN_TRY(const KvType both, parse_kv_type("--kv", kv.empty() ? default_kv : kv));
    read_options.key_type = read_options.value_type = both;
    if (!keys.empty()) {
      CAIRN_TRY(read_options.key_type, parse_kv_type("--cache-type-k", keys));
    }
    if (!values.empty()) {
      CAIRN_TRY(read_options.value_type, parse_kv_type("--cache-type-v", values));
    }
    if (!context_policy.empty()) {
      CAIRN_TRY(read_options.context_policy, parse_context_policy(context_policy));
    }
    if (options.shift_keep > 0 && read_options.context_policy != ContextPolicy::shift) {
      return fail(ErrorCode::invalid_argument,
                  "--keep: expected --context-policy shift beside it, found stop");
    }
    if (!memory_budget.empty()) {
      CAIRN_TRY(const uint64_t bytes, parse_bytes("--memory-budget", memory_budget));
      read_options.memory_budget = bytes;
    }
    return read_options;
  }
};

// Options of sampling, from their table.
struct SamplingArguments {
  std::deque<std::optional<double>> values;  // One for each field; addresses stay.
  std::deque<bool> flags;
  std::deque<std::vector<std::string>> lists;
  std::optional<uint64_t> seed;

  void add_to(CLI::App& command) {
    const sample::SamplingParams defaults;
    for (const sample::SamplingField& field : sample::sampling_fields()) {
      const std::string option = "--" + std::string(field.option);
      values.emplace_back();
      flags.push_back(false);
      if (field.flag != nullptr) {
        command.add_flag(option, flags.back(), std::string(field.doc));
        continue;
      }
      command.add_option(option, values.back(), std::string(field.doc))
          ->type_name(fmt::format("{} to {}", field.min, field.max))
          ->default_str(show(defaults, field));
    }
    for (const sample::SamplingList& list : sample::sampling_lists()) {
      lists.emplace_back();
      command.add_option("--" + std::string(list.option), lists.back(), std::string(list.doc))
          ->expected(1)
          ->allow_extra_args(false)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
          ->default_str(std::string(list.default_text));
    }
    command.add_option("--seed", seed, "the same seed gives the same answer; else a new one");
  }
  Result<session::SamplingChoice> read() const {
    session::SamplingChoice choice{.said = {}, .lists = {}, .seed = seed};
    sample::SamplingParams checked;
    const auto fields = sample::sampling_fields();
    for (size_t i = 0; i < fields.size(); ++i) {
      if (!values[i] && !flags[i]) continue;
      const double value = flags[i] ? 1 : *values[i];
      CAIRN_TRY(set(checked, fields[i], value));
      choice.said.emplace_back(&fields[i], value);
    }
    for (size_t i = 0; i < lists.size(); ++i) {
      if (lists[i].empty()) continue;
      const sample::SamplingList& list = sample::sampling_lists()[i];
      CAIRN_TRY(list.set(checked, lists[i]));
      choice.lists.emplace_back(&list, lists[i]);
    }
    return choice;
  }
};

// Options of a synthetic model's shape, from their table.
struct ShapeArguments {
  std::string like, preset;
  std::deque<std::optional<int32_t>> values;  // One for each field; addresses stay.
  bool untied = false;

  void add_to(CLI::App& command) {
    std::string architectures, presets;
    for (const models::Architecture* architecture : models::all_architectures()) {
      architectures += " " + std::string(architecture->name);
    }
    for (const synth::SynthPreset& known : synth::synth_presets()) {
      presets += fmt::format("\n{}: {}", known.name, known.doc);
    }
    CLI::Option* like_option =
        command.add_option("--like", like, "a small model of this architecture:" + architectures);
    command.add_option("--preset", preset, "the shape of a real model:" + presets)
        ->excludes(like_option);
    for (const synth::SynthField& field : synth::synth_fields()) {
      values.emplace_back();
      command.add_option("--" + std::string(field.option), values.back(), std::string(field.doc))
          ->check(CLI::Range(field.min, field.max));
    }
    command.add_flag("--untied", untied, "an output matrix of its own beside the embedding table");
  }
  Result<synth::SynthShape> read() const {
    if (like.empty() && preset.empty()) {
      return fail(ErrorCode::invalid_argument, "synth: expected --like or --preset, found neither");
    }
    synth::SynthShape shape = synth::default_shape(like);
    if (!preset.empty()) {
      CAIRN_TRY(shape, synth::preset_shape(preset));
    }
    const auto fields = synth::synth_fields();
    for (size_t i = 0; i < fields.size(); ++i) {
      if (values[i]) shape.*fields[i].member = *values[i];
    }
    if (untied) shape.tied_output = false;
    return shape;
  }
};

Action add_run(CLI::App& command) {
  struct Arguments {
    RunOptions run;
    EngineArguments engine;
    SamplingArguments sampling;
  };
  const auto a = std::make_shared<Arguments>();
  command.add_option("MODEL", a->run.model_path, "a GGUF file (of a split model: the first)");
  CLI::Option* prompt = command.add_option("-p,--prompt", a->run.prompt, "answer this and end");
  command
      .add_option("-f,--file", a->run.prompt_path, "answer the text in this file; -: from input")
      ->excludes(prompt);
  command.add_option("--system", a->run.system, "the system message");
  command
      .add_option("-n,--max-tokens", a->run.token_count_max,
                  "at most so many tokens an answer; -1: as many as it takes")
      ->check(CLI::Range(-1, 1 << 30));
  a->sampling.add_to(command);
  command.add_option("--json-schema", a->run.constraint.json_schema,
                     "the answer is JSON that this schema (or this file's) describes");
  command.add_option("--grammar", a->run.constraint.grammar,
                     "the answer fits the GBNF grammar in this file");
  command.add_option("--regex", a->run.constraint.regex,
                     "the whole answer fits this regular expression");
  command
      .add_option("--choice", a->run.constraint.choices,
                  "the answer is one of these, between commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--stop", a->run.stop, "a text that ends the answer; may be said again")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--reasoning", a->run.reasoning,
                     "on, off, or at most so many tokens of it; else as the template has it");
  command.add_option("--tools", a->run.tools_path,
                     "tools that the model may call: a JSON list in OpenAI's form");
  command.add_option("--tool-choice", a->run.tool_choice,
                     "auto, none, required or a tool's name: calls fit the tools' schemas");
  command.add_flag("--raw", a->run.raw, "no chat template: continue the text as it is");
  command.add_flag("--json", a->run.json, "one JSON object instead of text");
  command.add_flag("--chat", a->run.chat, "converse line by line even when input is no terminal");
  command.add_flag("-v,--verbose", a->run.verbose, "statistics even when stderr is no terminal");
  a->engine.add_to(command);
  a->engine.add_memory_to(command);
  command.footer(
      std::string(kBuiltinModelDoc) +
      "\nIt answers greedily (--temp 0) unless told otherwise. Without -p and -f, piped\n"
      "input is the prompt; on a terminal a conversation starts.\n" +
      kFooter);
  return [a]() -> Result<int> {
    CAIRN_TRY(a->run.engine, a->engine.read("f16"));
    CAIRN_TRY(a->run.sampling, a->sampling.read());
    if (a->run.verbose) log::set_level(log::Level::info);
    return run(a->run);
  };
}

Action add_inspect(CLI::App& command) {
  const auto options = std::make_shared<InspectOptions>();
  command.add_option("MODEL", options->path, "a GGUF file");
  command.add_flag("--json", options->json, "one JSON object instead of text");
  return [options]() -> Result<int> {
    CAIRN_TRY(require("MODEL", options->path));
    return inspect_main(*options);
  };
}

Action add_tokenize(CLI::App& command) {
  const auto options = std::make_shared<TokenizeOptions>();
  command.add_option("MODEL", options->model, "a GGUF file");
  command.add_option("FILE", options->text, "the text; else standard input");
  command.add_flag("--special", options->add_special, "with the tokens around a text (BOS, EOS)");
  command.add_flag("--parse-special", options->parse_special, "recognise special tokens in it");
  command.add_flag("--json", options->json, "JSON instead of lines");
  return [options]() -> Result<int> {
    CAIRN_TRY(require("MODEL", options->model));
    return tokenize_main(*options);
  };
}

Action add_template(CLI::App& command) {
  const auto options = std::make_shared<TemplateOptions>();
  command.add_option("MODEL", options->path, "a GGUF file, or a file with a template");
  command.add_option("--messages", options->messages_path,
                     "JSON: a list of messages, or an object with them, tools and variables");
  command.add_flag("--marks", options->marks, "set what the user wrote between ⟦ and ⟧");
  return [options]() -> Result<int> {
    CAIRN_TRY(require("MODEL", options->path));
    return template_main(*options);
  };
}

Action add_logits(CLI::App& command) {
  struct Arguments {
    LogitsOptions logits;
    EngineArguments engine;
  };
  const auto a = std::make_shared<Arguments>();
  command.add_option("MODEL", a->logits.model_path, "a GGUF file");
  command.add_option("--tokens", a->logits.tokens_path,
                     "file of token ids, a sequence a line, between blanks or commas");
  command.add_option("--batch", a->logits.batch, "tokens of a step")->check(CLI::Range(1, 1 << 16));
  command.add_option("-o,--output", a->logits.out_path, "file of f32 rows to write");
  a->engine.add_to(command);
  command.footer("Keys and values are kept in f32 unless --kv says otherwise.\n" +
                 std::string(kFooter));
  return [a]() -> Result<int> {
    CAIRN_TRY(require("MODEL", a->logits.model_path));
    CAIRN_TRY(require("--tokens", a->logits.tokens_path));
    CAIRN_TRY(require("--output", a->logits.out_path));
    CAIRN_TRY(a->logits.engine, a->engine.read("f32"));
    CAIRN_TRY(const int64_t row_count, write_logits(a->logits));
    std::fprintf(stderr, "%lld rows\n", static_cast<long long>(row_count));
    return kExitFine;
  };
}

Action add_verify(CLI::App& command) {
  struct Arguments {
    VerifyArguments verify;
    EngineArguments engine;
  };
  const auto a = std::make_shared<Arguments>();
  command.add_option("MODEL", a->verify.model_path, "a GGUF file; else the built-in model");
  command.add_option("--programs", a->verify.program_count, "random programs to run")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--seed", a->verify.seed, "the same seed runs the same programs")
      ->capture_default_str();
  command.add_flag("--json", a->verify.json, "one JSON object instead of a table");
  a->engine.add_to(command);
  a->engine.add_memory_to(command);
  command.footer("Exit code 1 where a single bit differs.\n" + std::string(kFooter));
  return [a]() -> Result<int> {
    CAIRN_TRY(a->verify.engine, a->engine.read("f16"));
    return verify_main(a->verify);
  };
}

struct BenchArguments {
  std::string what;
  MemoryBenchArguments memory;
  SpeedBenchArguments speed;
  EngineArguments engine;

  void add_speed_to(CLI::App& command) {
    const auto add_list = [&](const char* names, std::vector<int32_t>& list, int32_t min,
                              const char* doc) {
      command.add_option(names, list, doc)
          ->delimiter(',')
          ->allow_extra_args(false)
          ->check(CLI::Range(min, 1 << 24))
          ->capture_default_str();
    };
    measure::SpeedWork& work = speed.work;
    work.prompts = {512};
    work.new_tokens = 128;
    add_list("-p,--prompt-tokens", work.prompts, 0, "speed: tokens of prompts, between commas");
    command.add_option("-n,--new-tokens", work.new_tokens, "speed: tokens to decode; 0: none")
        ->check(CLI::Range(0, 1 << 24))
        ->capture_default_str();
    add_list("-d,--depths", work.depths, 0, "speed: tokens before them");
    add_list("--batch", work.batches, 1, "speed: sequences that decode together");
    command.add_flag("--separate-prompts", work.separate_prompts,
                     "speed: what stands before is another for each sequence of a batch");
    command.add_option("-r,--rounds", work.round_count, "speed: how often all is measured")
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
  }
  void add_memory_to(CLI::App& command) {
    command.add_option("--preset", memory.presets, "memory: of those, only these shapes");
    command.add_option("--type", memory.type, "memory: type of their matrices")
        ->capture_default_str();
    command.add_option("--folder", memory.folder, "memory: where they are written meanwhile");
  }
};

Result<int> bench(BenchArguments& a) {
  if (a.what == "memory") {
    CAIRN_TRY(a.memory.engine, a.engine.read("f16"));
    a.memory.json = a.speed.json;
    return memory_bench_main(a.memory);
  }
  // A model that only the environment names stands where further ones would.
  if (a.what.empty() && a.memory.models.size() == 1) std::swap(a.what, a.memory.models[0]);
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
  return speed_bench_main(a.speed);
}

Action add_bench(CLI::App& command) {
  const auto a = std::make_shared<BenchArguments>();
  command.add_option("WHAT", a->what,
                     "a GGUF file, whose speed is measured; or memory: what conversations cost");
  command.add_option("MODEL", a->memory.models,
                     "memory: GGUF files; else models with random weights");
  a->add_speed_to(command);
  a->add_memory_to(command);
  command.add_flag("--json", a->speed.json, "JSON instead of tables");
  a->engine.add_to(command);
  a->engine.add_memory_to(command);
  command.footer(
      "Speed: medians of samples that take turns, beside what the machine could do at best.\n"
      "Memory: exit code 1 where a figure misses its bar.\n" +
      std::string(kFooter));
  return [a]() -> Result<int> { return bench(*a); };
}

Action add_synth(CLI::App& command) {
  struct Arguments {
    synth::SynthOptions synth;
    ShapeArguments shape;
  };
  const auto a = std::make_shared<Arguments>();
  a->shape.add_to(command);
  command.add_option("--type", a->synth.type, "type of matrices, such as Q4_K, Q8_0 or F16")
      ->capture_default_str();
  command.add_option("--seed", a->synth.seed, "the same seed gives the same file")
      ->capture_default_str();
  command.add_option("-t,--threads", a->synth.thread_count, "threads; 0: one for each core")
      ->check(CLI::Range(0, 1024));
  command.add_option("-o,--output", a->synth.out_path, "the GGUF file to write");
  command.footer(kFooter);
  return [a]() -> Result<int> {
    CAIRN_TRY(require("--output", a->synth.out_path));
    CAIRN_TRY(a->synth.shape, a->shape.read());
    Progress progress("writing", Progress::Unit::bytes);
    a->synth.on_progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    CAIRN_TRY(const synth::SynthReport report, synth::write_synthetic(a->synth));
    for (const std::string& note : report.notes) {
      std::fprintf(stderr, "cairn: %s\n", printable(note).c_str());
    }
    std::fprintf(stderr, "%s, %lld tensors, %lld weights\n", show_bytes(report.file_bytes).c_str(),
                 static_cast<long long>(report.tensor_count),
                 static_cast<long long>(report.weight_count));
    return kExitFine;
  };
}

Action add_quantize(CLI::App& command) {
  const auto a = std::make_shared<quantize::QuantizeOptions>();
  std::string mixes;
  for (const quantize::QuantMix& mix : quantize::quant_mixes())
    mixes += " " + std::string(mix.name);
  command.add_option("IN", a->in_path, "the GGUF file to read; of a split model the first");
  command.add_option("OUT", a->out_path, "the GGUF file to write");
  command.add_option("TYPE", a->mix, "one of" + mixes);
  command
      .add_option("--tensor", a->overrides,
                  "PATTERN=TYPE: matrices of these names get this type; * stands for anything")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--imatrix", a->importance_path,
                     "importances of inputs, as llama.cpp's imatrix tool writes them");
  command.add_option("-t,--threads", a->thread_count, "threads; 0: one for each core")
      ->check(CLI::Range(0, 1024));
  command.footer(kFooter);
  return [a]() -> Result<int> {
    CAIRN_TRY(require("IN", a->in_path));
    CAIRN_TRY(require("OUT", a->out_path));
    CAIRN_TRY(require("TYPE", a->mix));
    std::optional<Progress> progress(std::in_place, "quantizing", Progress::Unit::bytes);
    a->on_progress = [&](uint64_t done, uint64_t total) { progress->update(done, total); };
    CAIRN_TRY(const quantize::QuantizeReport report, quantize::quantize(*a));
    progress.reset();
    for (const std::string& note : report.notes) {
      std::fprintf(stderr, "cairn: %s\n", printable(note).c_str());
    }
    std::string types;
    for (const auto& [type, count] : report.tensor_counts) {
      types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, type);
    }
    std::fprintf(stderr, "%s from %s, %.2f bits a weight: %s\n",
                 show_bytes(report.out_bytes).c_str(), show_bytes(report.in_bytes).c_str(),
                 8 * double(report.out_bytes) / double(report.weight_count), types.c_str());
    return kExitFine;
  };
}

// In the order of convert::OutType.
constexpr const char* kOutTypes[] = {"auto", "f32", "f16", "bf16"};

Action add_convert(CLI::App& command) {
  struct Arguments {
    convert::ConvertOptions convert;
    std::string type = kOutTypes[0];
  };
  const auto a = std::make_shared<Arguments>();
  command.add_option("DIR", a->convert.folder,
                     "a folder with config.json, safetensors and a tokenizer");
  command.add_option("-o,--output", a->convert.out_path, "the GGUF file to write");
  command
      .add_option("--outtype", a->type,
                  "type of matrices: f32, f16, bf16; auto: as in the folder, f16 for f32")
      ->check(CLI::IsMember({kOutTypes[0], kOutTypes[1], kOutTypes[2], kOutTypes[3]}))
      ->capture_default_str();
  command.footer(kFooter);
  return [a]() -> Result<int> {
    CAIRN_TRY(require("DIR", a->convert.folder));
    CAIRN_TRY(require("--output", a->convert.out_path));
    const auto* chosen = std::find(std::begin(kOutTypes), std::end(kOutTypes), a->type);
    a->convert.type = convert::OutType(chosen - std::begin(kOutTypes));
    std::optional<Progress> progress(std::in_place, "converting", Progress::Unit::bytes);
    a->convert.on_progress = [&](uint64_t done, uint64_t total) { progress->update(done, total); };
    CAIRN_TRY(const convert::ConvertReport report, convert::convert(a->convert));
    progress.reset();
    std::fprintf(stderr, "%s: %s, %lld tensors in %s, %lld tokens (%s)\n",
                 show_bytes(report.out_bytes).c_str(), report.architecture.c_str(),
                 static_cast<long long>(report.tensor_count), kOutTypes[size_t(report.type)],
                 static_cast<long long>(report.token_count), report.tokenizer.c_str());
    return kExitFine;
  };
}

Action add_perplexity(CLI::App& command) {
  struct Arguments {
    PerplexityOptions perplexity;
    EngineArguments engine;
  };
  const auto a = std::make_shared<Arguments>();
  command.add_option("MODEL", a->perplexity.model_path, "a GGUF file; else the built-in model");
  CLI::Option* text = command.add_option("-f,--file", a->perplexity.text_path, "the text");
  command.add_flag("--parse-special", a->perplexity.parse_special,
                   "text that spells special tokens means them");
  command.add_option("-c,--ctx-size", a->perplexity.context, "tokens of a chunk")
      ->check(CLI::Range(4, 1 << 24))
      ->capture_default_str();
  command.add_option("--chunks", a->perplexity.chunk_count_max, "so many chunks; 0: all")
      ->check(CLI::Range(0, 1 << 24));
  command.add_option("--save-logits", a->perplexity.save_path,
                     "keep all log-probabilities in this file, as llama.cpp does");
  command
      .add_option("--kl", a->perplexity.kl_path,
                  "compare with the log-probabilities in this file, over its text")
      ->excludes(text);
  command.add_flag("--json", a->perplexity.json, "JSON instead of text");
  a->engine.add_to(command);
  command.footer(kFooter);
  return [a]() -> Result<int> {
    if (a->perplexity.kl_path.empty()) CAIRN_TRY(require("--file", a->perplexity.text_path));
    CAIRN_TRY(a->perplexity.engine, a->engine.read("f16"));
    CAIRN_TRY(const PerplexityReport report, measure_perplexity(a->perplexity));
    TextOut out(stdout);
    out.write(a->perplexity.json ? report_json(report) + "\n" : report_text(report));
    CAIRN_TRY(out.finish());
    return kExitFine;
  };
}

Action add_embed(CLI::App& command) {
  struct Arguments {
    EmbedArguments embed;
    EngineArguments engine;
    bool normalizes = false, does_not = false;
  };
  const auto a = std::make_shared<Arguments>();
  command.add_option("MODEL", a->embed.model_path, "a GGUF file of a model that makes vectors");
  command.add_option("TEXT", a->embed.texts,
                     "texts; for a model that scores: a question, then what may answer it");
  command.add_option("-f,--file", a->embed.texts_path, "a text a line; -: from input");
  command.add_option("--pooling", a->embed.pooling,
                     "none, mean, cls, last or rank; else as the file says");
  CLI::Option* yes = command.add_flag("--normalize", a->normalizes,
                                      "vectors of length 1 (the default for one vector a text)");
  command.add_flag("--no-normalize", a->does_not, "vectors as they come")->excludes(yes);
  command.add_flag("--truncate", a->embed.truncates,
                   "texts that are longer than the context lose their end");
  command.add_flag("--similarity", a->embed.similarity, "a table: how near the texts are");
  command.add_flag("--json", a->embed.json, "JSON as OpenAI's interface has it");
  a->engine.add_to(command);
  a->engine.add_memory_to(command);
  command.footer("Keys and values are kept in f32 unless --kv says otherwise.\n" +
                 std::string(kFooter));
  return [a]() -> Result<int> {
    CAIRN_TRY(require("MODEL", a->embed.model_path));
    if (a->normalizes || a->does_not) a->embed.normalizes = a->normalizes;
    CAIRN_TRY(a->embed.engine, a->engine.read("f32"));
    return embed_main(a->embed);
  };
}

struct CommandRow {
  const char* name;
  const char* doc;
  Action (*add)(CLI::App& command);
};

constexpr CommandRow kCommands[] = {
    {"run", "answer a prompt or hold a conversation", add_run},
    {"inspect", "say all that a model file holds", add_inspect},
    {"tokenize", "show the tokens of a text", add_tokenize},
    {"template", "show a chat template, or messages in it", add_template},
    {"embed", "vectors of texts, or how well texts answer a question", add_embed},
    {"logits", "write the logits of given tokens to a file", add_logits},
    {"verify", "show that memory changes no bit: rewinds, forks, evictions", add_verify},
    {"bench", "measure a model's speed, or what conversations cost", add_bench},
    {"convert", "write a folder of safetensors as a GGUF file", add_convert},
    {"quantize", "write a model again with smaller weights", add_quantize},
    {"perplexity", "how surprised a model is by a text; how far from another it is",
     add_perplexity},
    {"synth", "write a model with random weights", add_synth},
};

// A message of one line, whatever it quotes.
int complain(std::string_view message, int exit_code) {
  std::string line = printable(message);
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  std::fprintf(stderr, "cairn: %s\n", line.c_str());
  return exit_code;
}

int dispatch(int argument_count, char** arguments) {
  CLI::App app("cairn runs language models from GGUF files.", "cairn");
  app.set_version_flag("--version", std::string("cairn ") + CAIRN_VERSION);
  app.require_subcommand(0, 1);
  app.footer(kFooter);
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (const CommandRow& row : kCommands) {
    CLI::App* command = app.add_subcommand(row.name, row.doc);
    commands.emplace_back(command, row.add(*command));
    name_variables(*command);
  }
  try {
    app.parse(argument_count, arguments);
    for (auto& [command, action] : commands) {
      if (command->parsed()) take_variables(*command);
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // Help or version was asked for.
    return complain(std::string(error.what()) + " (see cairn --help)", kExitUsage);
  }
  for (auto& [command, action] : commands) {
    if (!command->parsed()) continue;
    Result<int> code = action();
    if (code) return *code;
    const bool is_usage = code.error().code == ErrorCode::invalid_argument;
    return complain(code.error().message, is_usage ? kExitUsage : kExitError);
  }
  std::fputs(welcome_screen().c_str(), stdout);
  return kExitFine;
}

}  // namespace

}  // namespace cairn::cli

int main(int argument_count, char** arguments) {
  const std::string missing = cairn::missing_from_oldest();
  if (!missing.empty()) {
    std::fprintf(stderr, "cairn: CPU: expected x86-64-v2 or later, found one without %s\n",
                 missing.c_str());
    return cairn::cli::kExitError;
  }
  cairn::install_mapping_guard();
  cairn::log::set_level(cairn::log::Level::warning);
  return cairn::cli::dispatch(argument_count, arguments);
}
