// What was measured as a table and as JSON.
#include "cli/commands/speed_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/quantities.h"
#include "cli/commands/load.h"
#include "cli/options/engine_arguments.h"
#include "command_line/exit_codes.h"
#include "json/value.h"
#include "measure/speed_report.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

// What was measured, and of which file.
struct SpeedBench {
  std::string model;
  uint64_t file_bytes = 0;
  bool separate_prompts = false;
  measure::SpeedReport report;
};

// As in "1.61 T": a number of a rate that may be missing.
std::string show_rate(double rate) {
  if (rate <= 0) return "not measured";
  return rate >= 1e12 ? fmt::format("{:.2f} T", rate * 1e-12)
                      : fmt::format("{:.1f} G", rate * 1e-9);
}

std::string head_lines(const SpeedBench& bench) {
  const measure::SpeedReport& report = bench.report;
  return fmt::format(
      "{}: {}, {:.2f} G weights, {}\n"
      "{} threads, {}, {}; keys {}, values {}\n"
      "at best: {}B/s read, {}op/s of int8, {}op/s of {}\n"
      "loaded in {}, first token after {}; {} resident\n\n",
      bench.model, report.architecture, double(report.parameter_count) * 1e-9,
      show_bytes(bench.file_bytes), report.options.thread_count, report.options.isa,
      name(report.options.numerics), name(report.options.key_type), name(report.options.value_type),
      show_rate(report.limits.read_bytes_per_second),
      show_rate(report.limits.integer_ops_per_second),
      show_rate(report.limits.float_ops_per_second),
      report.options.numerics == Numerics::fast_1 ? "bf16" : "f32",
      show_seconds(report.load_seconds), show_seconds(report.first_token_seconds),
      show_bytes(report.resident_bytes));
}

std::string table(const SpeedBench& bench) {
  const measure::SpeedReport& report = bench.report;
  std::string text = head_lines(bench);
  text +=
      fmt::format("{:<13}{:>7}{:>6}{:>10}{:>10}{:>10}{:>8}{:>13}{:>10}{:>7}\n", "", "depth",
                  "batch", "tokens/s", "from", "to", "samples", "first token", "limit", "of it");
  for (const measure::SpeedRow& row : report.rows) {
    const std::string what = row.prompt_tokens > 0 ? fmt::format("prompt {}", row.prompt_tokens)
                                                   : fmt::format("decode {}", row.new_tokens);
    const auto [low, high] = std::minmax_element(row.samples.begin(), row.samples.end());
    const std::string first_token =
        row.prompt_tokens > 0
            ? fmt::format("{:.1f} ms", measure::median(row.first_token_seconds) * 1e3)
            : "";
    text += fmt::format(
        "{:<13}{:>7}{:>6}{:>10.2f}{:>10.2f}{:>10.2f}{:>8}{:>13}{:>10.1f}{:>6.0f}%\n", what,
        row.depth, row.batch, row.tokens_per_second(), *low, *high, row.samples.size(), first_token,
        row.limit_tokens_per_second(), 100 * row.share_of_limit());
  }
  for (const measure::SpeedRow& row : report.rows) {
    if (row.new_tokens == 0 || row.batch > 1) continue;
    text += fmt::format("{}a token at {}: {} of weights, {} of keys and values, {} of states\n",
                        &row == &report.rows[0] ? "\n" : "", row.depth,
                        show_bytes(uint64_t(row.costs.weight_bytes)),
                        show_bytes(uint64_t(row.costs.kv_bytes)),
                        show_bytes(uint64_t(row.costs.state_bytes)));
  }
  return text;
}

json::Value json_of(const measure::SpeedRow& row) {
  json::Value json = {{"n_prompt", row.prompt_tokens},
                      {"n_gen", row.new_tokens},
                      {"depth", row.depth},
                      {"batch", row.batch},
                      {"tokens_per_second", row.tokens_per_second()},
                      {"samples", row.samples}};
  if (row.prompt_tokens > 0) {
    json["first_token_ms"] = measure::median(row.first_token_seconds) * 1e3;
  }
  const double token_count = row.prompt_tokens > 0 ? row.prompt_tokens : row.batch;
  json["bytes_per_token"] = {{"weights", row.costs.weight_bytes / token_count},
                             {"keys_and_values", row.costs.kv_bytes / token_count},
                             {"states", row.costs.state_bytes / token_count}};
  json["operations_per_token"] = {{"integer", row.costs.integer_ops / token_count},
                                  {"float", row.costs.float_ops / token_count}};
  json["limit_tokens_per_second"] = row.limit_tokens_per_second();
  return json;
}

std::string json_of(const SpeedBench& bench) {
  const measure::SpeedReport& report = bench.report;
  json::Value json;
  json["model"] = bench.model;
  json["architecture"] = report.architecture;
  json["parameters"] = report.parameter_count;
  json["file_bytes"] = bench.file_bytes;
  json["threads"] = report.options.thread_count;
  json["isa"] = report.options.isa;
  json["numerics"] = std::string(name(report.options.numerics));
  json["keys"] = std::string(name(report.options.key_type));
  json["values"] = std::string(name(report.options.value_type));
  json["machine"] = {{"read_bytes_per_second", report.limits.read_bytes_per_second},
                     {"integer_ops_per_second", report.limits.integer_ops_per_second},
                     {"float_ops_per_second", report.limits.float_ops_per_second}};
  json["load_ms"] = report.load_seconds * 1e3;
  json["load_to_first_token_ms"] = report.first_token_seconds * 1e3;
  json["resident_bytes"] = report.resident_bytes;
  json["separate_prompts"] = bench.separate_prompts;
  json["rows"] = json::Value::array();
  for (const measure::SpeedRow& row : report.rows) json["rows"].push_back(json_of(row));
  return json::to_text(json, {.indent = 2}) + "\n";
}

// What was not asked for is not measured; depths and batches in their order, each once.
Status tidy_up(measure::SpeedWork& work) {
  std::erase(work.prompts, 0);
  if (work.prompts.empty() && work.new_tokens == 0) {
    return fail(ErrorCode::invalid_argument,
                "bench: expected tokens of a prompt (-p) or new ones (-n), found neither");
  }
  std::sort(work.depths.begin(), work.depths.end());
  work.depths.erase(std::unique(work.depths.begin(), work.depths.end()), work.depths.end());
  CHECK(!work.depths.empty() && !work.batches.empty());
  const int32_t row_count_max = EngineOptions{}.row_count_max;
  if (output_count(work) > row_count_max) {
    return fail(ErrorCode::invalid_argument, "--batch: expected at most {} sequences, found {}",
                row_count_max, output_count(work));
  }
  return Ok{};
}

Result<std::vector<measure::SpeedRow>> measure_with_progress(Engine& engine,
                                                             measure::LimitMeter& meter,
                                                             measure::SpeedWork& work) {
  terminal::Progress progress("measuring", terminal::Progress::Unit::tokens);
  const terminal::InterruptGuard guard;
  work.on_progress = [&](int64_t done, int64_t total) {
    progress.update(uint64_t(done), uint64_t(total));
    return !terminal::interrupted();
  };
  const auto limits = [&] { return meter.measure(measure::kBriefRuns); };
  return measure::measure_speed(engine, limits, work);
}

}  // namespace

Result<int> bench_speed(SpeedBenchArguments arguments) {
  measure::SpeedWork& work = arguments.work;
  CAIRN_TRY(tidy_up(work));
  EngineOptions options = arguments.engine;
  const int32_t needed_tokens = context_tokens(work);
  if (options.context_tokens == 0) options.context_tokens = needed_tokens;
  if (options.context_tokens < needed_tokens) {
    return fail(ErrorCode::invalid_argument, "--ctx-size: expected at least {}, found {}",
                needed_tokens, options.context_tokens);
  }
  SpeedBench bench{.model = arguments.model_path, .separate_prompts = work.separate_prompts};
  CAIRN_TRY(gguf::File file, open_model(arguments.model_path));  // Before anything takes time.
  std::error_code error;
  bench.file_bytes = std::filesystem::file_size(arguments.model_path, error);
  std::unique_ptr<Engine> engine;
  const auto load = [&]() -> Result<Engine*> {
    CAIRN_TRY(engine, load_engine(arguments.model_path, options));
    return engine.get();
  };
  CAIRN_TRY(measure::LimitMeter meter, measure::LimitMeter::start(options));
  CAIRN_TRY(bench.report, measure::measure_start(meter, load));
  CAIRN_TRY(bench.report.rows, measure_with_progress(*engine, meter, work));
  terminal::TextOut out(stdout);
  out.write(arguments.json ? json_of(bench) : table(bench));
  CAIRN_TRY(out.finish());
  return command_line::kExitFine;
}

}  // namespace cairn::cli
