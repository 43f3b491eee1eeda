// The program: its commands, in the order of its help.
#include <cstdio>
#include <string>

#include "base/cpu_levels.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "base/process.h"
#include "cli/commands/commands.h"
#include "cli/commands/welcome.h"
#include "command_line/exit_codes.h"

namespace {

constexpr const cairn::command_line::Command* kCommands[] = {
    &cairn::cli::kRunCommand,      &cairn::cli::kServeCommand,      &cairn::cli::kRouteCommand,
    &cairn::cli::kPullCommand,     &cairn::cli::kListCommand,       &cairn::cli::kShowCommand,
    &cairn::cli::kRmCommand,       &cairn::cli::kCpCommand,         &cairn::cli::kPlanCommand,
    &cairn::cli::kInspectCommand,  &cairn::cli::kTokenizeCommand,   &cairn::cli::kTemplateCommand,
    &cairn::cli::kEmbedCommand,    &cairn::cli::kLogitsCommand,     &cairn::cli::kVerifyCommand,
    &cairn::cli::kReplayCommand,   &cairn::cli::kBenchCommand,      &cairn::cli::kConvertCommand,
    &cairn::cli::kQuantizeCommand, &cairn::cli::kPerplexityCommand, &cairn::cli::kSynthCommand,
    &cairn::cli::kStoreCommand,    &cairn::cli::kTuneCommand,       &cairn::cli::kDoctorCommand,
};

}  // namespace

int main(int argument_count, char** arguments) {
  cairn::forbid_process();
  cairn::install_last_catch();
  cairn::install_output_guard();
  const std::string missing = cairn::missing_from_oldest();
  if (!missing.empty()) {
    std::fprintf(stderr, "cairn: CPU: expected x86-64-v2 or later, found one without %s\n",
                 missing.c_str());
    return cairn::command_line::kExitError;
  }
  cairn::install_mapping_guard();
  cairn::log::set_level(cairn::log::Level::warning);
  return cairn::command_line::run_command_line(
      {.doc = "cairn runs language models from GGUF files.",
       .commands = kCommands,
       .examples = {{"cairn run", "a conversation with the built-in model"},
                    {"cairn run MODEL.gguf", "a conversation with your model"},
                    {"cairn run hf:OWNER/REPO:Q4_K_M", "with one that is fetched first"},
                    {"cairn run MODEL.gguf -p \"Why is the sky blue?\"", "one answer"}},
       .version = CAIRN_VERSION,
       .version_text = cairn::cli::version_text,
       .welcome = cairn::cli::welcome_screen},
      argument_count, arguments);
}
