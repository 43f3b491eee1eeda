// Models one after another: written where they are presets, loaded, measured; then a table or JSON.
#include "cli/commands/memory_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/machine/machine_memory.h"
#include "base/output_file.h"
#include "cli/commands/load.h"
#include "command_line/command_line.h"
#include "command_line/exit_codes.h"
#include "json/value.h"
#include "measure/memory_figures.h"
#include "synth/synth.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

constexpr int32_t kContextTokens = 32768;

constexpr std::string_view kPresets[] = {"llama-1b", "gemma3-1b", "gemma4-e2b", "granite-h-1b",
                                         "qwen35-0.8b"};

// A preset's file, which goes when the measuring is done, or when a signal ends it.
Result<TemporaryFile> write_preset(std::string_view preset, const MemoryBenchArguments& args) {
  Result<synth::SynthShape> shape = synth::preset_shape(preset);
  if (!shape) return command_line::as_option(shape.error());
  shape->context = kContextTokens;
  if (const auto type = synth::matrix_type(args.type); !type)
    return command_line::as_option(type.error());
  std::error_code error;
  const std::string folder =
      args.folder.empty() ? std::filesystem::temp_directory_path(error).string() : args.folder;
  CAIRN_TRY(TemporaryFile file,
            TemporaryFile::create(folder, fmt::format("cairn-bench-{}", preset), ".gguf"));
  terminal::Progress progress(fmt::format("writing {}", preset), terminal::Progress::Unit::bytes);
  synth::SynthOptions options{
      .shape = std::move(*shape), .type = args.type, .out_path = file.path()};
  options.on_progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
  CAIRN_TRY(const synth::SynthReport report, synth::write_synthetic(options));
  return file;
}

struct ModelFigures {
  std::string model;
  std::vector<measure::Figure> figures;
};

Result<ModelFigures> figures_of(const std::string& path, std::string_view preset,
                                const MemoryBenchArguments& arguments) {
  EngineOptions options = arguments.engine;
  if (options.context_tokens == 0) options.context_tokens = kContextTokens;
  measure::MemoryWork work{.preset = preset, .resident_before = resident_bytes()};
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load_engine(path, options));
  std::error_code error;
  work.weights_bytes = std::filesystem::file_size(path, error);
  ModelFigures result{.model = preset.empty() ? path : std::string(preset), .figures = {}};
  if (terminal::is_terminal(stderr)) std::fprintf(stderr, "measuring %s\n", result.model.c_str());
  CAIRN_TRY(result.figures, measure::measure_memory(*engine, work));
  return result;
}

std::string show(double value) {
  return value == double(int64_t(value)) ? fmt::format("{:.0f}", value)
                                         : fmt::format("{:.2f}", value);
}

std::string table(const ModelFigures& model) {
  std::string text = fmt::format("\n{}\n{:<58}{:>12} {:<10}{:>10}{:>11}\n", model.model, "figure",
                                 "measured", "", "at most", "llama.cpp");
  for (const measure::Figure& figure : model.figures) {
    text += fmt::format("{:<58}{:>12} {:<10}{:>10}{:>11}{}\n", figure.what, show(figure.measured),
                        figure.unit, figure.has_bar ? show(figure.bar) : "",
                        figure.peer < 0 ? "" : show(figure.peer), figure.holds() ? "" : "  MISSED");
  }
  return text;
}

json::Value json_of(const ModelFigures& model) {
  json::Value json;
  json["model"] = model.model;
  json["figures"] = json::Value::array();
  for (const measure::Figure& figure : model.figures) {
    json::Value row = {{"figure", figure.what},
                       {"measured", figure.measured},
                       {"unit", figure.unit},
                       {"holds", figure.holds()}};
    if (figure.has_bar) row["at_most"] = figure.bar;
    if (figure.peer >= 0) row["llama_cpp"] = figure.peer;
    json["figures"].push_back(std::move(row));
  }
  return json;
}

Result<std::vector<ModelFigures>> measure_all(const MemoryBenchArguments& arguments,
                                              terminal::TextOut& out) {
  std::vector<ModelFigures> all;
  const auto keep = [&](ModelFigures figures) {
    if (!arguments.json) out.write(table(figures));
    all.push_back(std::move(figures));
  };
  for (const std::string& path : arguments.models) {
    CAIRN_TRY(ModelFigures figures, figures_of(path, "", arguments));
    keep(std::move(figures));
  }
  std::vector<std::string> presets = arguments.presets;
  if (presets.empty() && arguments.models.empty()) {
    presets.assign(std::begin(kPresets), std::end(kPresets));
  }
  for (const std::string& preset : presets) {
    CAIRN_TRY(const TemporaryFile model, write_preset(preset, arguments));
    CAIRN_TRY(ModelFigures figures, figures_of(model.path(), preset, arguments));
    keep(std::move(figures));
  }
  return all;
}

}  // namespace

Result<int> bench_memory(const MemoryBenchArguments& arguments) {
  terminal::TextOut out(stdout);
  CAIRN_TRY(const std::vector<ModelFigures> all, measure_all(arguments, out));
  bool holds = true;
  json::Value json = json::Value::array();
  for (const ModelFigures& model : all) {
    json.push_back(json_of(model));
    for (const measure::Figure& figure : model.figures) holds = holds && figure.holds();
  }
  if (arguments.json) out.write(json::to_text(json, {.indent = 2}) + "\n");
  CAIRN_TRY(out.finish());
  return holds ? command_line::kExitFine : command_line::kExitError;
}

}  // namespace cairn::cli
