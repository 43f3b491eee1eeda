// Names of options, and what their words mean.
#include "cli/options/engine_arguments.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/cpu_features.h"
#include "base/log.h"
#include "base/quantities.h"
#include "cli/commands/find_model.h"
#include "engine/default_context.h"
#include "session/drafts/drafting.h"
#include "session/program/skip_file.h"
#include "terminal_chat/adapter_choice.h"

namespace cairn::cli {

namespace {

Result<KvType> parse_kv_type(std::string_view option, std::string_view text) {
  std::string names;
  for (size_t type = 0; type < std::size(kKvTypeNames); ++type) {
    if (kKvTypeNames[type] == text) return KvType(type);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kKvTypeNames[type]);
  }
  return fail(ErrorCode::invalid_argument, "{}: expected one of {}, found \"{}\"", option, names,
              text);
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

// A folder may be made in another one, but not where a path begins: there it is a mistake, as of a
// variable in it that is not set.
Status check_cache_folder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error).lexically_normal();
  std::filesystem::path folder = whole;
  while (folder.has_relative_path() && !std::filesystem::exists(folder, error)) {
    folder = folder.parent_path();
  }
  if (!std::filesystem::is_directory(folder, error)) {
    return fail(ErrorCode::invalid_argument, "--pack-cache: expected a folder, found the file {}",
                folder.string());
  }
  if (folder.has_relative_path() || !whole.has_relative_path()) return Ok{};
  return fail(ErrorCode::invalid_argument,
              "--pack-cache: expected a folder, or a place for one in another, found {}, of which "
              "nothing exists",
              whole.string());
}

}  // namespace

void EngineArguments::add_to(command_line::Options& command) {
  add_threads_to(command);
  command
      .add("--numerics", numerics_,
           "exact: results have the same bits on every CPU; fast: prompts are computed in bf16 "
           "on CPUs that multiply bf16 faster [default: exact]")
      .takes("MODE")
      .suggests({"exact", "fast"});
  add_weights_to(command);
  command.begin_group("KV cache and context", true);
  const std::vector<std::string> kv_types(std::begin(kKvTypeNames), std::end(kKvTypeNames));
  command.add("--kv", kv_, "type of the KV cache: f32, f16, bf16, q8_0 or q4_0")
      .takes("TYPE")
      .suggests(kv_types);
  command.add("--cache-type-k,-ctk", keys_, "type of the keys in the KV cache; default: as --kv")
      .takes("TYPE")
      .suggests(kv_types);
  command
      .add("--cache-type-v,-ctv", values_, "type of the values in the KV cache; default: as --kv")
      .takes("TYPE")
      .suggests(kv_types);
  command.add("--gpu-layers,--n-gpu-layers,-ngl", gpu_layers_, "layers for a GPU").hidden();
}

void EngineArguments::add_machine_to(command_line::Options& command) {
  add_threads_to(command);
  add_weights_to(command);
  command.begin_group("Memory");
  add_budget_to(command);
}

void EngineArguments::add_threads_to(command_line::Options& command) {
  command.begin_group("Computation", true);
  command.add("-t,--threads", options_.thread_count, "number of threads; 0: one per core")
      .in_range(0, 1024);
  command.add("--backend", options_.backend, "cpu, or reference (slow; for checks)")
      .takes("NAME")
      .suggests({"cpu", "reference"});
  command
      .add("--isa", isa_,
           "the instruction set of the kernels: scalar, avx2, avx2_vnni, avx512_vnni or amx; "
           "default: the best that the CPU has")
      .takes("NAME")
      .suggests({"scalar", "avx2", "avx2_vnni", "avx512_vnni", "amx"});
}

void EngineArguments::add_weights_to(command_line::Options& command) {
  command.begin_group("Weights", true);
  const command_line::Option cache =
      command
          .add("--pack-cache", options_.pack_cache,
               "a folder that keeps the weights in the kernels' layout, so that "
               "the next start is faster")
          .takes("DIR");
  command
      .add_flag("--no-pack", options_.is_unpacked,
                "read weights from the file while computing: slow, but models may be larger than "
                "the memory")
      .excludes(cache);
  command
      .add("--lora", adapters_,
           "a LoRA adapter in GGUF, and how strongly it counts (default 1; with 0 it is loaded, "
           "and used when /lora asks for it); may be given several times")
      .takes("FILE[:SCALE]")
      .repeatable();
}

void EngineArguments::add_budget_to(command_line::Options& command) {
  command
      .add("--memory-budget", memory_budget_,
           "largest memory for conversations, such as 512M or 4G; default: half of what is free "
           "beside the weights")
      .takes("SIZE");
}

void EngineArguments::add_memory_to(command_line::Options& command) {
  command
      .add("-c,--ctx-size", options_.context_tokens,
           fmt::format("largest number of tokens in a conversation; 0: the model's, at most {}",
                       kDefaultContextMax))
      .in_range(0, 1 << 24);
  add_budget_to(command);
  command
      .add("--context-policy", context_policy_,
           "when the context is full: stop, or shift: drop the oldest part and read the rest "
           "again [default: stop]")
      .takes("POLICY")
      .suggests({"stop", "shift"});
  command
      .add("--keep", options_.shift_keep,
           "number of tokens at the beginning that --context-policy shift never drops")
      .in_range(0, 1 << 24);
  command.add_flag("--keep-windows", options_.keeps_all_windows,
                   "models with sliding windows: keep the whole past, so that rewinding far back "
                   "costs memory instead of reading again");
}

void EngineArguments::add_program_to(command_line::Options& command) {
  command.begin_group("Less of the model, or more experts", true);
  command
      .add("--exit-layer", options_.program.exit_layer, "run only the first N layers; default: all")
      .takes("N")
      .in_range(1, 1024);
  command
      .add("--skip-layers", skipped_,
           "layers that do not run, such as 4-7,12 (the first is 0); tuned: those that `cairn tune "
           "skip` found for the model; tuned:N: the best N of them")
      .takes("LIST");
  command
      .add("--experts", options_.program.expert_count,
           "how many experts each token uses, of models that have some; default: as the model says")
      .takes("N")
      .in_range(1, 4096);
}

void EngineArguments::add_store_to(command_line::Options& command) {
  command
      .add("--cache-dir", options_.cache_dir,
           "a folder where conversations survive: what was read in an earlier run is not computed "
           "again; `cairn store` shows what is in it")
      .takes("DIR");
  command
      .add("--cache-disk-budget", disk_budget_,
           "largest size of that folder, such as 5G; default: a tenth of the disk, and 20 GiB at "
           "most where it is not lent to other machines")
      .takes("SIZE");
  command
      .add(
          "--cache-audit", options_.cache_audit_interval,
          "of about N conversations that come from that folder one is computed again while nothing "
          "else is to be done, and compared bit by bit; 1: all, 0: none")
      .in_range(0, 1 << 30)
      .shows_default();
}

void EngineArguments::add_drafts_to(command_line::Options& command) {
  command.begin_group("Drafts: faster answers, the same tokens", true);
  std::vector<std::string> choices = {"auto", "off"};
  for (const std::string_view kind : session::draft_kinds()) choices.emplace_back(kind);
  command
      .add("--draft", options_.drafts,
           "who proposes tokens that the model then checks, several in a step: auto, off, or some "
           "of the kinds with commas between them (docs/speculation.md)")
      .takes("auto|off|KIND[,KIND]")
      .suggests(choices)
      .shows_default();
  command
      .add("--draft-max,--draft-n,--spec-draft-n-max", options_.draft_tokens_max,
           "the most tokens that are proposed at a time")
      .in_range(0, 64)
      .shows_default();
  command
      .add("--draft-model,--model-draft", options_.draft_model.path,
           "a small model that proposes tokens, best one with the same vocabulary; self: the model "
           "itself, run as the options below say")
      .takes("FILE|self");
  command
      .add("--draft-exit-layer", options_.draft_model.program.exit_layer,
           "run only the first N layers of the draft model; default: all")
      .takes("N")
      .in_range(1, 1024);
  command
      .add("--draft-skip-layers", draft_skipped_,
           "layers of the draft model that do not run, as --skip-layers has them")
      .takes("LIST");
  command
      .add("--draft-experts", options_.draft_model.program.expert_count,
           "how many experts each token of the draft model uses; default: as it says")
      .takes("N")
      .in_range(1, 4096);
}

Result<DraftModelChoice> EngineArguments::read_draft_model() const {
  DraftModelChoice choice = options_.draft_model;
  if (!choice.path.empty() && choice.path != "self") {
    CAIRN_TRY(choice.path, find_model(choice.path));
  }
  if (!draft_skipped_.empty()) {
    EngineOptions thin;
    CAIRN_TRY(session::set_skipped_layers("--draft-skip-layers", draft_skipped_, thin));
    choice.program.skipped_layers = thin.program.skipped_layers;
    choice.find_skipped_layers = thin.find_skipped_layers;
  }
  const bool is_thin =
      choice.program.exit_layer > 0 || choice.program.expert_count > 0 || !draft_skipped_.empty();
  if (is_thin && choice.path.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--draft-exit-layer, --draft-skip-layers, --draft-experts: expected --draft-model "
                "beside them, found none");
  }
  return choice;
}

Result<EngineOptions> EngineArguments::read(std::string_view default_kv) const {
  EngineOptions options = options_;
  if (gpu_layers_) {
    log::warning("--gpu-layers {}: cairn has no GPU backend; the CPU computes all layers",
                 *gpu_layers_);
  }
  if (!isa_.empty()) {
    Result<IsaLevel> level = parse_isa(isa_);
    if (!level) return command_line::as_option(level.error());
    options.isa = name(*level);
  }
  if (!options.pack_cache.empty()) CAIRN_TRY(check_cache_folder(options.pack_cache));
  CAIRN_TRY(options.numerics, parse_numerics(numerics_));
  if (const Status drafts = session::set_drafts(options_.drafts, options); !drafts) {
    return command_line::as_option(drafts.error());
  }
  CAIRN_TRY(options.draft_model, read_draft_model());
  for (const std::string& adapter : adapters_) {
    CAIRN_TRY(AdapterChoice choice, terminal_chat::parse_adapter(adapter));
    options.adapters.push_back(std::move(choice));
  }
  CAIRN_TRY(const KvType both, parse_kv_type("--kv", kv_.empty() ? default_kv : kv_));
  options.key_type = options.value_type = both;
  if (!keys_.empty()) {
    CAIRN_TRY(options.key_type, parse_kv_type("--cache-type-k", keys_));
  }
  if (!values_.empty()) {
    CAIRN_TRY(options.value_type, parse_kv_type("--cache-type-v", values_));
  }
  if (!skipped_.empty()) {
    CAIRN_TRY(session::set_skipped_layers("--skip-layers", skipped_, options));
  }
  if (!context_policy_.empty()) {
    CAIRN_TRY(options.context_policy, parse_context_policy(context_policy_));
  }
  if (options_.shift_keep > 0 && options.context_policy != ContextPolicy::shift) {
    return fail(ErrorCode::invalid_argument,
                "--keep: expected --context-policy shift beside it, found stop");
  }
  if (!disk_budget_.empty()) {
    if (options.cache_dir.empty()) {
      return fail(ErrorCode::invalid_argument,
                  "--cache-disk-budget: expected --cache-dir beside it, found none");
    }
    CAIRN_TRY(options.cache_disk_budget, parse_bytes("--cache-disk-budget", disk_budget_));
  }
  if (!memory_budget_.empty()) {
    CAIRN_TRY(const uint64_t bytes, parse_bytes("--memory-budget", memory_budget_));
    options.memory_budget = bytes;
  }
  return options;
}

}  // namespace cairn::cli
