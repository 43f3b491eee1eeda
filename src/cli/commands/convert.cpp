// `cairn convert`: options, and a line about what was written.
#include "convert/convert.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>

#include "base/quantities.h"
#include "cli/commands/commands.h"
#include "command_line/exit_codes.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

// In the order of convert::OutType.
constexpr const char* kOutTypes[] = {"auto", "f32", "f16", "bf16"};

struct ConvertArguments {
  convert::ConvertOptions convert;
  std::string type = kOutTypes[0];
};

Result<int> run_convert(ConvertArguments& a) {
  const auto* chosen = std::find(std::begin(kOutTypes), std::end(kOutTypes), a.type);
  a.convert.type = convert::OutType(chosen - std::begin(kOutTypes));
  std::optional<terminal::Progress> progress(std::in_place, "converting",
                                             terminal::Progress::Unit::bytes);
  a.convert.on_progress = [&](uint64_t done, uint64_t total) { progress->update(done, total); };
  CAIRN_TRY(const convert::ConvertReport report, convert::convert(a.convert));
  progress.reset();
  std::fprintf(stderr, "%s: %s, %lld tensors in %s, %lld tokens (%s)\n",
               show_bytes(report.out_bytes).c_str(), report.architecture.c_str(),
               static_cast<long long>(report.tensor_count), kOutTypes[size_t(report.type)],
               static_cast<long long>(report.token_count), report.tokenizer.c_str());
  return command_line::kExitFine;
}

command_line::Action add_convert(command_line::Options& command) {
  const auto a = std::make_shared<ConvertArguments>();
  command.add("DIR", a->convert.folder, "a folder with config.json, safetensors and a tokenizer")
      .takes("DIR")
      .required();
  command.add("-o,--output", a->convert.out_path, "the GGUF file to write")
      .takes("FILE")
      .required();
  command
      .add("--outtype", a->type,
           "type of matrices: f32, f16, bf16; auto: what the folder has, but f16 for f32")
      .takes("TYPE")
      .one_of({std::begin(kOutTypes), std::end(kOutTypes)})
      .shows_default();
  return [a]() -> Result<int> { return run_convert(*a); };
}

}  // namespace

const command_line::Command kConvertCommand = {
    "convert", "convert a Hugging Face folder (safetensors) to a GGUF file", add_convert};

}  // namespace cairn::cli
