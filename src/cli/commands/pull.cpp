// `cairn pull`: fetches a model, converts it where that was asked for, and prints its path.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/printable.h"
#include "base/quantities.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "command_line/exit_codes.h"
#include "convert/convert.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

struct PullArguments {
  std::string name, folder, authority_path, part_bytes;
  int32_t connection_count = 4, attempt_count = 6;
  bool converts = false, keeps_source = false;
};

Status convert_pulled(const hub::HubSettings& settings, const hub::Pulled& pulled,
                      bool keeps_source) {
  std::optional<terminal::Progress> progress(std::in_place, "converting",
                                             terminal::Progress::Unit::bytes);
  const auto on_progress = [&](uint64_t done, uint64_t total) { progress->update(done, total); };
  CAIRN_TRY(
      const convert::ConvertReport report,
      convert::convert(
          {.folder = pulled.path, .out_path = pulled.converted_path, .on_progress = on_progress}));
  progress.reset();
  std::fprintf(stderr, "cairn: converted to GGUF, %s, %s\n", report.architecture.c_str(),
               show_bytes(report.out_bytes).c_str());
  return hub::finish_conversion(settings, pulled, keeps_source);
}

void say_what_was_done(const hub::Pulled& pulled) {
  if (pulled.was_kept_by) {
    std::fprintf(stderr, "cairn: %s is here already, fetched by %s\n",
                 printable(pulled.name).c_str(), std::string(name(*pulled.was_kept_by)).c_str());
    return;
  }
  std::string line = show_bytes(pulled.fetched_bytes) + " fetched";
  if (pulled.resumed_bytes > 0) {
    line += ", " + show_bytes(pulled.resumed_bytes) + " were here from an earlier run";
  }
  if (!pulled.is_folder) line += "; SHA-256 " + pulled.sha256;
  std::fprintf(stderr, "cairn: %s\n", line.c_str());
}

Result<int> run_pull(const PullArguments& a) {
  CAIRN_TRY(const hub::ModelReference reference, hub::parse_pull_reference(a.name));
  CAIRN_TRY(hub::HubSettings settings, hub::read_settings());
  if (!a.folder.empty()) settings.folder = a.folder;
  if (!a.authority_path.empty()) settings.authority_path = a.authority_path;
  hub::PullOptions options{.connections_max = a.connection_count, .takes_folder = a.converts};
  options.web.patience.failures_max = a.attempt_count;
  if (!a.part_bytes.empty()) {
    CAIRN_TRY(options.chunk_bytes, parse_bytes("--part-size", a.part_bytes));
    options.chunk_bytes = std::max<uint64_t>(options.chunk_bytes, 4096);
  }
  CAIRN_TRY(const hub::Pulled pulled, pull_with_progress(settings, reference, options));
  say_what_was_done(pulled);
  if (pulled.is_folder) CAIRN_TRY(convert_pulled(settings, pulled, a.keeps_source));
  terminal::TextOut out(stdout);
  out.write((pulled.is_folder ? pulled.converted_path : pulled.path) + "\n");
  CAIRN_TRY(out.finish());
  return command_line::kExitFine;
}

command_line::Action add_pull(command_line::Options& command) {
  const auto a = std::make_shared<PullArguments>();
  command
      .add("NAME", a->name,
           "OWNER/REPO of Hugging Face, with :FILE or :QUANT behind it where it has several; "
           "ollama:NAME:TAG; or the URL of a GGUF file")
      .takes("NAME")
      .required();
  command.add_flag("--convert", a->converts,
                   "of a repository without a GGUF file fetch the safetensors, and convert them");
  command.add_flag("--keep-source", a->keeps_source,
                   "with --convert: keep the safetensors beside the GGUF file");
  command
      .add("--models", a->folder,
           "the folder of models; default: cairn/models in the folder of caches")
      .takes("DIR");
  command
      .add("--connections", a->connection_count, "how many parts of a file are fetched at a time")
      .in_range(1, 16)
      .shows_default();
  command
      .add("--part-size", a->part_bytes,
           "how large these parts are: what is lost at most of each when it is cut off; default: "
           "16M")
      .takes("SIZE");
  command
      .add("--retries", a->attempt_count,
           "how often in a row something is tried again before it is given up")
      .in_range(0, 1000)
      .shows_default();
  command
      .add("--cacert", a->authority_path,
           "believe servers whose certificates this file vouches for, in PEM; default: the "
           "system's, or SSL_CERT_FILE's")
      .takes("FILE");
  command.set_notes(
      "The path of the model is printed. `cairn run hf:OWNER/REPO:QUANT` and other commands take "
      "the same names, with hf: before them.\n"
      "HF_TOKEN (or the file of HF_TOKEN_PATH) is a token for private models, shown to HF_ENDPOINT "
      "alone; HTTPS_PROXY is a proxy. What was cut off goes on where it was. Models that "
      "llama.cpp, "
      "Hugging Face's programs, LM Studio or Ollama have fetched are not fetched again; "
      "docs/models.md.\n");
  command.add_example("cairn pull OWNER/REPO:Q4_K_M", "a quantization of a repository");
  command.add_example("cairn pull ollama:llama3.2:1b", "from Ollama's registry");
  command.add_example("cairn pull OWNER/REPO --convert", "safetensors, converted to GGUF");
  return [a]() -> Result<int> { return run_pull(*a); };
}

}  // namespace

const command_line::Command kPullCommand = {
    "pull", "fetch a model from Hugging Face, Ollama's registry or a URL", add_pull};

}  // namespace cairn::cli
