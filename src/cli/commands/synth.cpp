// `cairn synth`: options of a synthetic model's shape, from their table, and a line about the file.
#include "synth/synth.h"

#include <fmt/format.h>

#include <cstdio>
#include <deque>
#include <memory>
#include <optional>

#include "base/printable.h"
#include "base/quantities.h"
#include "cli/commands/commands.h"
#include "command_line/exit_codes.h"
#include "models/model.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

class ShapeArguments {
 public:
  void add_to(command_line::Options& command) {
    std::string architectures, presets;
    for (const models::Architecture* architecture : models::all_architectures()) {
      architectures += " " + std::string(architecture->name);
    }
    for (const synth::SynthPreset& known : synth::synth_presets()) {
      presets += fmt::format("\n{}: {}", known.name, known.doc);
    }
    const command_line::Option like =
        command.add("--like", like_, "a small model of this architecture:" + architectures)
            .takes("ARCH");
    command.add("--preset", preset_, "the shape of a real model:" + presets)
        .takes("NAME")
        .excludes(like);
    for (const synth::SynthField& field : synth::synth_fields()) {
      values_.emplace_back();
      command.add("--" + std::string(field.name), values_.back(), std::string(field.doc))
          .in_range(field.min, field.max);
    }
    command.add_flag("--untied", untied_, "an output matrix separate from the embedding table");
  }

  Result<synth::SynthShape> read() const {
    if (like_.empty() && preset_.empty()) {
      return fail(ErrorCode::invalid_argument, "synth: expected --like or --preset, found neither");
    }
    Result<synth::SynthShape> shape =
        preset_.empty() ? synth::default_shape(like_) : synth::preset_shape(preset_);
    if (!shape) return command_line::as_option(shape.error());
    const auto fields = synth::synth_fields();
    for (size_t i = 0; i < fields.size(); ++i) {
      if (values_[i]) (*shape).*fields[i].member = *values_[i];
    }
    if (untied_) shape->tied_output = false;
    if (const Status status = check(*shape); !status)
      return command_line::as_option(status.error());
    return shape;
  }

 private:
  std::string like_, preset_;
  std::deque<std::optional<int32_t>> values_;  // One for each field; addresses stay.
  bool untied_ = false;
};

struct SynthArguments {
  synth::SynthOptions synth;
  ShapeArguments shape;
};

Result<int> run_synth(SynthArguments& a) {
  CAIRN_TRY(a.synth.shape, a.shape.read());
  CAIRN_TRY(models::find_architecture(a.synth.shape.architecture));
  if (const auto type = synth::matrix_type(a.synth.type); !type)
    return command_line::as_option(type.error());
  terminal::Progress progress("writing", terminal::Progress::Unit::bytes);
  a.synth.on_progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
  CAIRN_TRY(const synth::SynthReport report, synth::write_synthetic(a.synth));
  for (const std::string& note : report.notes) {
    std::fprintf(stderr, "cairn: %s\n", printable(note).c_str());
  }
  std::fprintf(stderr, "%s, %lld tensors, %lld weights\n", show_bytes(report.file_bytes).c_str(),
               static_cast<long long>(report.tensor_count),
               static_cast<long long>(report.weight_count));
  return command_line::kExitFine;
}

command_line::Action add_synth(command_line::Options& command) {
  const auto a = std::make_shared<SynthArguments>();
  command.begin_group("Shape");
  a->shape.add_to(command);
  command.begin_group("File");
  command.add("--type", a->synth.type, "type of matrices, such as Q4_K, Q8_0 or F16")
      .takes("TYPE")
      .shows_default();
  command.add("--seed", a->synth.seed, "the same seed gives the same file").shows_default();
  command.add("-t,--threads", a->synth.thread_count, "number of threads; 0: one per core")
      .in_range(0, 1024);
  command.add("-o,--output", a->synth.out_path, "the GGUF file to write").takes("FILE").required();
  return [a]() -> Result<int> { return run_synth(*a); };
}

}  // namespace

const command_line::Command kSynthCommand = {
    "synth", "write a model file with random weights, for measurements", add_synth};

}  // namespace cairn::cli
