// The programs run with a progress bar, then the table.
#include "cli/commands/verify.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/quantities.h"
#include "cli/commands/load.h"
#include "cli/exit_codes.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "engine/verifier.h"

namespace cairn::cli {

namespace {

std::string table(const VerifyReport& report) {
  std::string text =
      fmt::format("{:<12}{:>8}{:>17}{:>15}{:>18}{:>16}\n", "operation", "count", "tokens computed",
                  "tokens reused", "recurrence steps", "differing bits");
  for (const VerifyRow& row : report.rows) {
    text += fmt::format("{:<12}{:>8}{:>17}{:>15}{:>18}{:>16}\n", row.operation, row.count,
                        row.computed_tokens, row.reused_tokens, row.recurrence_steps,
                        row.differing_bits);
  }
  return text;
}

std::string json_of(const VerifyReport& report, uint64_t seed) {
  nlohmann::ordered_json json;
  json["seed"] = seed;
  json["differing_bits"] = report.differing_bits();
  json["first_difference"] = report.first_difference;
  json["operations"] = nlohmann::ordered_json::array();
  for (const VerifyRow& row : report.rows) {
    json["operations"].push_back({{"operation", std::string(row.operation)},
                                  {"count", row.count},
                                  {"computed_tokens", row.computed_tokens},
                                  {"reused_tokens", row.reused_tokens},
                                  {"recurrence_steps", row.recurrence_steps},
                                  {"differing_bits", row.differing_bits}});
  }
  return json.dump() + "\n";
}

}  // namespace

Result<int> verify_main(const VerifyArguments& arguments) {
  if (arguments.engine.numerics != Numerics::exact_1) {
    return fail(ErrorCode::invalid_argument,
                "verify: expected numerics {}, whose bits are promised; found {}",
                name(Numerics::exact_1), name(arguments.engine.numerics));
  }
  EngineOptions options = arguments.engine;
  // Programs are short; a step's workspace for more rows would only cost memory.
  options.row_count_max = 256;
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load_engine(arguments.model_path, options));
  const InterruptGuard guard;
  std::optional<Progress> progress;
  progress.emplace("verifying", Progress::Unit::operations);
  CAIRN_TRY(const VerifyReport report,
            verify(*engine, {.program_count = arguments.program_count,
                             .seed = arguments.seed,
                             .on_progress = [&](int32_t done, int32_t total) {
                               progress->update(uint64_t(done), uint64_t(total));
                               return !interrupted();
                             }}));
  progress.reset();
  TextOut out(stdout);
  out.write(arguments.json ? json_of(report, arguments.seed) : table(report));
  CAIRN_TRY(out.finish());
  if (report.differing_bits() == 0) return kExitFine;
  std::fprintf(stderr, "cairn: verify: expected equal bits, found %lld that differ (first: %s)\n",
               static_cast<long long>(report.differing_bits()), report.first_difference.c_str());
  return kExitError;
}

}  // namespace cairn::cli
