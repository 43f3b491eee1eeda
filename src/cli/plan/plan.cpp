// `cairn plan`: what a model takes and how fast it would be, of its header alone; of one that is
// not here, the header is all that is fetched.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/cpu_features.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/load.h"
#include "cli/options/engine_arguments.h"
#include "cli/options/model_argument.h"
#include "cli/plan/plan_report.h"
#include "command_line/exit_codes.h"
#include "gguf/hollow.h"
#include "hub/remote_header.h"
#include "measure/product_rates.h"
#include "measure/speed_report.h"
#include "quantize/quantize_types.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

// Longer conversations are planned where they are asked for.
constexpr int32_t kUsualTokensMax = 32768;
constexpr int32_t kFirstLength = 4096;
// What people choose among, the largest first (docs/quantize.md).
constexpr const char* kMixes[] = {"Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "IQ4_XS", "Q3_K_M", "Q2_K"};

struct PlanArguments {
  std::string model;
  int32_t tokens = 0;
  int32_t conversations = 1;
  bool json = false, skips_speed = false;
  EngineArguments engine;
};

// A model without its weights, from wherever its header is.
struct HeaderSource {
  std::string name;
  std::vector<std::string> texts;  // Of a model that is not here.
  std::vector<gguf::File> parts;
  uint64_t bytes = 0;
  std::string note;

  Result<gguf::HollowModel> hollow(std::span<const quant::Type* const> types = {}) const {
    std::vector<const gguf::File*> files;
    for (const gguf::File& part : parts) files.push_back(&part);
    return gguf::make_hollow(files, types);
  }
};

Result<HeaderSource> open_remote(const hub::ModelReference& reference) {
  CAIRN_TRY(const hub::HubSettings settings, hub::read_settings());
  CAIRN_TRY(hub::RemoteHeader header, hub::fetch_header(settings, reference));
  HeaderSource source{.name = header.name, .texts = std::move(header.parts)};
  for (const std::string& text : source.texts) {
    CAIRN_TRY(gguf::File part, gguf::File::from_bytes(std::as_bytes(std::span(text)), source.name,
                                                      gguf::OpenMode::inspect));
    source.parts.push_back(std::move(part));
  }
  return source;
}

Result<HeaderSource> open_source(const std::string& named) {
  CAIRN_TRY(const FoundModel found, look_for_model(named));
  if (found.remote) return open_remote(*found.remote);
  CAIRN_TRY(gguf::File file, open_model(found.path, gguf::OpenMode::inspect));
  HeaderSource source{.name = file.name()};
  if (file.problems().count > 0) source.note = file.problems().lines.front();
  source.parts.push_back(std::move(file));
  return source;
}

class Planner {
 public:
  Planner(const PlanArguments* arguments, EngineOptions engine, HeaderSource source)
      : arguments_(*arguments), engine_(std::move(engine)), source_(std::move(source)) {}

  Result<PlanReport> run();

 private:
  Result<measure::ModelPlan> plan(int32_t tokens,
                                  std::span<const quant::Type* const> types = {}) const;
  Status plan_lengths();
  Status plan_types();
  Status measure();
  void add_speeds();
  double per_second(std::span<const measure::TypeCosts> costs, int32_t tokens) const;

  const PlanArguments& arguments_;
  EngineOptions engine_;
  HeaderSource source_;
  std::vector<measure::ModelPlan> lengths_, types_;
  measure::ProductRates rates_;
  PlanReport report_;
};

Result<measure::ModelPlan> Planner::plan(int32_t tokens,
                                         std::span<const quant::Type* const> types) const {
  CAIRN_TRY(gguf::HollowModel hollow, source_.hollow(types));
  measure::PlanQuestion question{.engine = engine_, .conversations = arguments_.conversations};
  question.engine.context_tokens = tokens;
  return measure::plan_model(std::move(hollow.file), question);
}

// The one that is asked for, and shorter ones.
Status Planner::plan_lengths() {
  int32_t tokens = arguments_.tokens;
  if (tokens == 0) {
    CAIRN_TRY(const measure::ModelPlan usual, plan(0));
    tokens = std::min(usual.context_tokens, kUsualTokensMax);
  }
  for (int32_t shorter = kFirstLength; shorter < tokens; shorter *= 4) {
    CAIRN_TRY(measure::ModelPlan more, plan(shorter));
    if (more.makes_text) lengths_.push_back(std::move(more));
  }
  CAIRN_TRY(measure::ModelPlan longest, plan(tokens));
  report_.plan = longest;
  if (longest.makes_text) lengths_.push_back(std::move(longest));
  return Ok{};
}

// Those that would make it smaller.
Status Planner::plan_types() {
  CAIRN_TRY(const gguf::HollowModel own, source_.hollow());
  for (const char* name : kMixes) {
    CAIRN_TRY(const quantize::QuantMix* mix, quantize::find_mix(name));
    Result<quantize::TypeChoice> choice = quantize::choose_types(own.file, *mix, {}, true);
    if (!choice) continue;  // Not a model that is quantized; what it takes is said all the same.
    CAIRN_TRY(const gguf::HollowModel other, source_.hollow(choice->types));
    if (other.file.file_bytes() >= own.file.file_bytes()) continue;
    CAIRN_TRY(measure::ModelPlan made, plan(report_.plan.context_tokens, choice->types));
    report_.types.push_back(
        {.name = name,
         .file_bytes = other.file.file_bytes(),
         .bytes = made.fixed.total() + made.conversations_bytes(arguments_.conversations)});
    types_.push_back(std::move(made));
  }
  return Ok{};
}

// Each type of weights once.
Status Planner::measure() {
  std::set<const quant::Type*> types;
  const auto add = [&](const measure::ModelPlan& plan) {
    for (const auto& costs : {plan.decode_one, plan.decode_all, plan.prompt}) {
      for (const measure::TypeCosts& part : costs) types.insert(part.type);
    }
  };
  add(report_.plan);
  for (const measure::ModelPlan& plan : types_) add(plan);
  types.erase(nullptr);
  terminal::Progress progress("measuring", terminal::Progress::Unit::operations);
  CAIRN_TRY(measure::LimitMeter meter, measure::LimitMeter::start(engine_));
  CAIRN_TRY(report_.limits, meter.measure());
  CAIRN_TRY(const std::unique_ptr<ThreadPool> threads, ThreadPool::start(report_.thread_count));
  for (const quant::Type* type : types) {
    progress.update(rates_.size(), types.size());
    CAIRN_TRY(rates_[type], measure::measure_product(*type, {.threads = threads.get(),
                                                             .isa = engine_.isa,
                                                             .numerics = engine_.numerics}));
  }
  report_.is_measured = true;
  return Ok{};
}

double Planner::per_second(std::span<const measure::TypeCosts> costs, int32_t tokens) const {
  if (!report_.is_measured || costs.empty()) return 0;
  return tokens / measure::expected_seconds(costs, rates_, report_.limits);
}

void Planner::add_speeds() {
  for (const measure::ModelPlan& plan : lengths_) {
    report_.lengths.push_back(
        {.tokens = plan.context_tokens,
         .conversation_bytes = plan.conversation_bytes,
         .alone_per_second = per_second(plan.decode_one, 1),
         .together_per_second = per_second(plan.decode_all, arguments_.conversations)});
  }
  for (size_t type = 0; type < types_.size(); ++type) {
    report_.types[type].alone_per_second = per_second(types_[type].decode_one, 1);
  }
  report_.prompt_per_second = per_second(report_.plan.prompt, report_.plan.prompt_rows);
}

Result<PlanReport> Planner::run() {
  report_.model = source_.name;
  report_.note = source_.note;
  report_.conversations = arguments_.conversations;
  report_.thread_count = engine_.thread_count > 0 ? engine_.thread_count : usable_core_count();
  report_.isa =
      engine_.isa.empty() ? std::string(name(best_isa(detect_cpu_features()))) : engine_.isa;
  report_.room = read_memory_room();
  CAIRN_TRY(const gguf::HollowModel own, source_.hollow());
  report_.summary = gguf::summarise(own.file);
  report_.file_bytes = own.file.file_bytes();
  CAIRN_TRY(plan_lengths());
  CAIRN_TRY(plan_types());
  if (!arguments_.skips_speed) CAIRN_TRY(measure());
  add_speeds();
  // Views into the header, which goes.
  report_.summary.templates.clear();
  report_.summary.tokenizer.reset();
  return std::move(report_);
}

Result<int> plan(const PlanArguments& a) {
  CAIRN_TRY(EngineOptions engine, a.engine.read("f16"));
  CAIRN_TRY(HeaderSource source, open_source(a.model));
  CAIRN_TRY(const PlanReport report, Planner(&a, std::move(engine), std::move(source)).run());
  terminal::TextOut out(stdout);
  out.write(a.json ? as_json(report) : as_table(report));
  CAIRN_TRY(out.finish());
  return command_line::kExitFine;
}

command_line::Action add_plan(command_line::Options& command) {
  const auto a = std::make_shared<PlanArguments>();
  add_model(command, a->model);
  command
      .add("-c,--ctx-size", a->tokens,
           "tokens of each conversation; 0: the model's, but at most 32768")
      .in_range(0, 1 << 24);
  command
      .add("--conversations,--parallel,-np", a->conversations,
           "conversations that are answered at the same time")
      .in_range(1, 512)
      .shows_default();
  command.add_flag("--skip-speed", a->skips_speed,
                   "measure nothing: what it takes, not how fast it is");
  command.add_flag("--json", a->json, "print JSON");
  a->engine.add_to(command);
  a->engine.add_program_to(command);
  command.set_notes(
      "Reads a model's header alone; of a model that is not on this machine, it fetches only "
      "that.\nSpeeds are foretold from what this machine's memory and kernels do in a short "
      "measurement; other programs make it slower.\n");
  command.add_example("cairn plan hf:OWNER/REPO:Q4_K_M -c 32768 -np 4",
                      "whether four conversations of 32768 tokens fit");
  return [a]() -> Result<int> { return plan(*a); };
}

}  // namespace

const command_line::Command kPlanCommand = {
    "plan", "what a model takes and how fast it would be, before it is loaded", add_plan};

}  // namespace cairn::cli
