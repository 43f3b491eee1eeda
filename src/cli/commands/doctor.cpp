// `cairn doctor`: what this machine has for cairn, and why what is missing is missing. Looks, and
// changes nothing; opens no model.
#include <sys/utsname.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_features.h"
#include "base/cpu_levels.h"
#include "base/file.h"
#include "base/machine/machine_memory.h"
#include "base/machine/sandbox.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "base/threads.h"
#include "cli/commands/commands.h"
#include "cli/commands/welcome.h"
#include "command_line/exit_codes.h"
#include "json/value.h"
#include "runtimes/selection.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

// What was found: as a person reads it, and as a program does.
struct Line {
  std::string_view part, name;
  std::string text;
  json::Value value;
};

std::string bytes_or_unknown(size_t bytes) {
  return bytes == 0 ? "unknown" : show_bytes(bytes);
}

void look_at_processor(std::vector<Line>& lines) {
  const CpuFeatures features = detect_cpu_features();
  const std::string missing = missing_from_oldest();
  const int cores = usable_core_count();
  lines.push_back({"processor", "cores", fmt::format("{} that this process may use", cores),
                   json::Value(cores)});
  lines.push_back({"processor", "features", feature_names(), json::Value(feature_names())});
  lines.push_back({"processor", "levels",
                   fmt::format("{}; kernels of {} are used", names_of_levels(features),
                               name(best_isa(features))),
                   json::Value(std::string(name(best_isa(features))))});
  if (missing.empty()) return;
  lines.push_back({"processor", "too_old", "lacks " + missing, json::Value(missing)});
}

void look_at_memory(std::vector<Line>& lines) {
  const MachineMemory machine = read_machine_memory();
  const MemoryRoom room = read_memory_room();
  lines.push_back(
      {"memory", "machine",
       fmt::format("{}, of which {} are available", bytes_or_unknown(machine.total_bytes),
                   bytes_or_unknown(machine.available_bytes)),
       json::Value(machine.total_bytes)});
  lines.push_back({"memory", "room",
                   fmt::format("{} for this process{}", bytes_or_unknown(room.bytes),
                               room.bytes == 0 ? "" : fmt::format(" (limit: {})", room.limited_by)),
                   json::Value(room.bytes)});
}

void look_at_kernel(std::vector<Line>& lines) {
  struct utsname names = {};
  const std::string release = ::uname(&names) == 0 ? names.release : "unknown";
  lines.push_back({"kernel", "release", release, json::Value(release)});
  constexpr size_t kBytesMax = 256;
  Result<std::string> pages = read_file("/sys/kernel/mm/transparent_hugepage/enabled", kBytesMax);
  std::string huge = pages ? std::move(pages).value() : "not there";
  if (huge.ends_with('\n')) huge.pop_back();
  lines.push_back({"kernel", "huge_pages", huge, json::Value(huge)});
  const SandboxSupport support = sandbox_support();
  lines.push_back({"kernel", "landlock",
                   support.landlock_version > 0
                       ? fmt::format("version {}", support.landlock_version)
                       : "not there",
                   json::Value(support.landlock_version)});
  lines.push_back({"kernel", "seccomp", support.filters_calls ? "there" : "not there",
                   json::Value(support.filters_calls)});
  const bool holds = support.why_not.empty();
  lines.push_back({"sandbox", "serve_and_run",
                   holds ? "on, unless --sandbox off" : "off: " + support.why_not,
                   json::Value(holds)});
}

void look_at_runtimes(std::vector<Line>& lines) {
  for (const runtimes::Listed& each : runtimes::list(runtimes::runtime_types())) {
    lines.push_back({"runtimes", each.name,
                     each.why_not.empty() ? "available" : "not available: " + each.why_not,
                     json::Value(each.why_not)});
  }
}

std::string text_of(const std::vector<Line>& lines) {
  std::string text;
  std::string_view part;
  for (const Line& line : lines) {
    if (line.part != part) text += fmt::format("{}\n", line.part);
    part = line.part;
    std::string name(line.name);
    for (char& letter : name) letter = letter == '_' ? ' ' : letter;
    text += fmt::format("  {:<16}{}\n", name, printable(line.text));
  }
  return text;
}

std::string json_of(const std::vector<Line>& lines) {
  json::Value all = json::Value::object();
  for (const Line& line : lines) {
    json::Value& part = all[std::string(line.part)];
    if (part.is_null()) part = json::Value::object();
    part[std::string(line.name)] = line.value;
  }
  return json::to_text(all) + "\n";
}

Result<int> look(bool as_json) {
  std::vector<Line> lines;
  look_at_processor(lines);
  look_at_memory(lines);
  look_at_kernel(lines);
  look_at_runtimes(lines);
  terminal::TextOut out(stdout);
  out.write(as_json ? json_of(lines) : text_of(lines));
  CAIRN_TRY(out.finish());
  return command_line::kExitFine;
}

command_line::Action add_doctor(command_line::Options& command) {
  const auto as_json = std::make_shared<bool>(false);
  command.add_flag("--json", *as_json,
                   "one JSON object; of a runtime: why it is not available, or an empty text");
  command.set_notes(
      "Runtimes are those of the C library and the Python package; this program computes with its "
      "own engine, which is \"cairn\".\n");
  command.add_example("cairn doctor", "what this machine has, and what it lacks");
  return [as_json] { return look(*as_json); };
}

}  // namespace

const command_line::Command kDoctorCommand = {
    "doctor", "show what this machine has for cairn, and what it lacks", add_doctor};

}  // namespace cairn::cli
