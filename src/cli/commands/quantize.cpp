// `cairn quantize`: options, and what became of the tensors.
#include "quantize/quantize.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "base/printable.h"
#include "base/quantities.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "command_line/exit_codes.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

struct QuantizeArguments {
  ExpectedDigests expected;
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

Result<int> run_quantize(QuantizeArguments& a) {
  for (const std::string& text : a.overrides) {
    CAIRN_TRY(quantize::TypeOverride parsed, quantize::parse_override("--tensor", text));
    a.quantize.overrides.push_back(std::move(parsed));
  }
  std::optional<terminal::Progress> progress(std::in_place, "quantizing",
                                             terminal::Progress::Unit::bytes);
  a.quantize.on_progress = [&](uint64_t done, uint64_t total) { progress->update(done, total); };
  CAIRN_TRY(const quantize::QuantizeReport report, quantize::quantize(a.quantize));
  progress.reset();
  show(report);
  return command_line::kExitFine;
}

command_line::Action add_quantize(command_line::Options& command) {
  const auto a = std::make_shared<QuantizeArguments>();
  std::string mixes;
  for (const quantize::QuantMix& mix : quantize::quant_mixes()) {
    mixes += fmt::format("{}{}", mixes.empty() ? "" : ", ", mix.name);
  }
  command.add("IN", a->quantize.in_path, "the GGUF file to read; of a split model, its first part")
      .takes("FILE")
      .required();
  command.add("OUT", a->quantize.out_path, "the GGUF file to write").takes("FILE").required();
  command.add("TYPE", a->quantize.mix, "one of " + mixes).required();
  command
      .add("--tensor", a->overrides,
           "store the tensors whose names match PATTERN as TYPE; * matches anything; may be given "
           "several times")
      .takes("PATTERN=TYPE")
      .repeatable();
  command
      .add("--imatrix", a->quantize.importance_path,
           "an importance matrix, as llama.cpp's imatrix tool writes it")
      .takes("FILE");
  command.add("-t,--threads", a->quantize.thread_count, "number of threads; 0: one per core")
      .in_range(0, 1024);
  a->expected.add_to(command);
  command.add_example("cairn quantize MODEL-F16.gguf MODEL-Q4_K_M.gguf Q4_K_M",
                      "the usual compromise between size and quality");
  return [a]() -> Result<int> {
    CAIRN_TRY(a->quantize.in_path, a->expected.find(a->quantize.in_path));
    return run_quantize(*a);
  };
}

}  // namespace

const command_line::Command kQuantizeCommand = {
    "quantize", "write a smaller model file: fewer bits per weight", add_quantize};

}  // namespace cairn::cli
