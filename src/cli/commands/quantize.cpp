// `cairn quantize`: options, and what became of the tensors.
#include "quantize/quantize.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "base/printable.h"
#include "base/quantities.h"
#include "cli/commands/commands.h"
#include "cli/exit_codes.h"
#include "cli/terminal/terminal.h"

namespace cairn::cli {

namespace {

struct Arguments {
  quantize::QuantizeOptions quantize;
  std::vector<std::string> overrides;  // "blk.0.*=Q8_0".
};

void show(const quantize::QuantizeReport& report) {
  if (report.blind_count > 0) {
    std::fprintf(stderr,
                 "cairn: %lld matrices get so few bits that importances (--imatrix) matter much\n",
                 static_cast<long long>(report.blind_count));
  }
  for (const std::string& note : report.notes) {
    std::fprintf(stderr, "cairn: %s\n", printable(note).c_str());
  }
  std::string types;
  for (const auto& [type, count] : report.tensor_counts) {
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, type);
  }
  std::fprintf(stderr, "%s from %s, %.2f bits a weight: %s\n", show_bytes(report.out_bytes).c_str(),
               show_bytes(report.in_bytes).c_str(),
               8 * double(report.out_bytes) / double(report.weight_count), types.c_str());
}

Result<int> run_quantize(Arguments& a) {
  CAIRN_TRY(require("IN", a.quantize.in_path));
  CAIRN_TRY(require("OUT", a.quantize.out_path));
  CAIRN_TRY(require("TYPE", a.quantize.mix));
  for (const std::string& text : a.overrides) {
    CAIRN_TRY(quantize::TypeOverride parsed, quantize::parse_override("--tensor", text));
    a.quantize.overrides.push_back(std::move(parsed));
  }
  std::optional<Progress> progress(std::in_place, "quantizing", Progress::Unit::bytes);
  a.quantize.on_progress = [&](uint64_t done, uint64_t total) { progress->update(done, total); };
  CAIRN_TRY(const quantize::QuantizeReport report, quantize::quantize(a.quantize));
  progress.reset();
  show(report);
  return kExitFine;
}

Action add_quantize(Options& command) {
  const auto a = std::make_shared<Arguments>();
  std::string mixes;
  for (const quantize::QuantMix& mix : quantize::quant_mixes())
    mixes += " " + std::string(mix.name);
  command.add("IN", a->quantize.in_path, "the GGUF file to read; of a split model the first");
  command.add("OUT", a->quantize.out_path, "the GGUF file to write");
  command.add("TYPE", a->quantize.mix, "one of" + mixes);
  command
      .add("--tensor", a->overrides,
           "PATTERN=TYPE: matrices of these names get this type; * stands for anything")
      .repeatable();
  command.add("--imatrix", a->quantize.importance_path,
              "importances of inputs, as llama.cpp's imatrix tool writes them");
  command.add("-t,--threads", a->quantize.thread_count, "threads; 0: one for each core")
      .in_range(0, 1024);
  return [a]() -> Result<int> { return run_quantize(*a); };
}

}  // namespace

const Command kQuantizeCommand = {"quantize", "write a model again with smaller weights",
                                  add_quantize};

}  // namespace cairn::cli
