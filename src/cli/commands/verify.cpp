// `cairn verify`: shows, on the user's own model and machine, that whatever was forked, rewound,
// edited or thrown out of memory, the next logits are those of a fresh reading, bit for bit.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/quantities.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/load.h"
#include "cli/options/engine_arguments.h"
#include "cli/options/model_argument.h"
#include "command_line/exit_codes.h"
#include "engine/verifier.h"
#include "json/value.h"
#include "session/drafts/draft_verifier.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

struct VerifyArguments {
  std::string model_path;  // Empty: the built-in model.
  int32_t program_count = 8;
  int32_t token_count = 0;  // 0: the usual number, or what the context holds.
  uint64_t seed = 1;
  bool json = false;
  bool drafts = false;
  EngineOptions engine;
};

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

std::string json_of(const VerifyReport& report, uint64_t seed, const std::string& fingerprint) {
  json::Value json;
  json["seed"] = seed;
  json["fingerprint"] = fingerprint;
  json["differing_bits"] = report.differing_bits();
  json["first_difference"] = report.first_difference;
  json["operations"] = json::Value::array();
  for (const VerifyRow& row : report.rows) {
    json["operations"].push_back({{"operation", std::string(row.operation)},
                                  {"count", row.count},
                                  {"computed_tokens", row.computed_tokens},
                                  {"reused_tokens", row.reused_tokens},
                                  {"recurrence_steps", row.recurrence_steps},
                                  {"differing_bits", row.differing_bits}});
  }
  return json::to_text(json) + "\n";
}

std::string table(const std::vector<session::DraftVerifyRow>& rows) {
  std::string text = fmt::format("{:<18}{:>9}{:>10}{:>10}{:>11}\n", "drafter", "answers", "drafted",
                                 "accepted", "differing");
  for (const session::DraftVerifyRow& row : rows) {
    text += fmt::format("{:<18}{:>9}{:>10}{:>10}{:>11}\n", row.drafter, row.answers, row.drafted,
                        row.accepted, row.differing);
  }
  return text;
}

std::string json_of(const std::vector<session::DraftVerifyRow>& rows, uint64_t seed) {
  json::Value json;
  json["seed"] = seed;
  json["drafters"] = json::Value::array();
  for (const session::DraftVerifyRow& row : rows) {
    json["drafters"].push_back({{"drafter", row.drafter},
                                {"answers", row.answers},
                                {"drafted", row.drafted},
                                {"accepted", row.accepted},
                                {"differing", row.differing},
                                {"first_difference", row.first_difference}});
  }
  return json::to_text(json) + "\n";
}

// Answers with drafts, against those without.
Result<int> run_drafts(const VerifyArguments& arguments, Engine& engine,
                       std::optional<terminal::Progress>& progress,
                       const std::function<bool(int32_t done, int32_t total)>& on_progress) {
  if (engine.tokenizer() == nullptr) {
    return fail(ErrorCode::unsupported,
                "verify --draft: expected a model with a vocabulary, found none");
  }
  CAIRN_TRY(const std::vector<session::DraftVerifyRow> rows,
            session::verify_drafts(engine, {.program_count = arguments.program_count,
                                            .seed = arguments.seed,
                                            .on_progress = on_progress}));
  progress.reset();
  terminal::TextOut out(stdout);
  out.write(arguments.json ? json_of(rows, arguments.seed) : table(rows));
  CAIRN_TRY(out.finish());
  for (const session::DraftVerifyRow& row : rows) {
    if (row.differing == 0) continue;
    std::fprintf(stderr, "cairn: verify: expected equal answers, found %lld that differ (%s: %s)\n",
                 static_cast<long long>(row.differing), row.drafter.c_str(),
                 row.first_difference.c_str());
    return command_line::kExitError;
  }
  return command_line::kExitFine;
}

// Prints a table; returns the exit code, which is an error's where a single bit differs.
Result<int> run_programs(const VerifyArguments& arguments) {
  if (arguments.engine.numerics != Numerics::exact_1 && !arguments.drafts) {
    return fail(ErrorCode::invalid_argument,
                "verify: expected numerics {}, by which answers that are read again have the same "
                "bits; found {}",
                name(Numerics::exact_1), name(arguments.engine.numerics));
  }
  EngineOptions options = arguments.engine;
  // Programs are short; a step's workspace for more rows would only cost memory.
  options.row_count_max = 256;
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load_engine(arguments.model_path, options));
  const terminal::InterruptGuard guard;
  std::optional<terminal::Progress> progress;
  progress.emplace("verifying", terminal::Progress::Unit::operations);
  const auto on_progress = [&progress](int32_t done, int32_t total) {
    progress->update(uint64_t(done), uint64_t(total));
    return !terminal::interrupted();
  };
  if (arguments.drafts) return run_drafts(arguments, *engine, progress, on_progress);
  CAIRN_TRY(const VerifyReport report,
            verify(*engine, {.program_count = arguments.program_count,
                             .sequence_tokens_max = arguments.token_count,
                             .seed = arguments.seed,
                             .on_progress = on_progress}));
  progress.reset();
  terminal::TextOut out(stdout);
  const std::string fingerprint = engine->fingerprint(engine->default_selection()).text();
  out.write(arguments.json ? json_of(report, arguments.seed, fingerprint)
                           : table(report) + fmt::format("fingerprint {}\n", fingerprint));
  CAIRN_TRY(out.finish());
  if (report.differing_bits() == 0) return command_line::kExitFine;
  std::fprintf(stderr, "cairn: verify: expected equal bits, found %lld that differ (first: %s)\n",
               static_cast<long long>(report.differing_bits()), report.first_difference.c_str());
  return command_line::kExitError;
}

command_line::Action add_verify(command_line::Options& command) {
  struct VerifyCommandArguments {
    ExpectedDigests expected;
    VerifyArguments verify;
    EngineArguments engine;
  };
  const auto a = std::make_shared<VerifyCommandArguments>();
  add_model(command, a->verify.model_path);
  command
      .add("--programs", a->verify.program_count, "how many random sequences of operations to run")
      .in_range(1, 1 << 20)
      .shows_default();
  command
      .add(
          "--tokens", a->verify.token_count,
          "how long sequences may be: longer ones cross windows and more of the attention's parts; "
          "default: 160, or one less than the context")
      .in_range(1, 1 << 24);
  command.add("--seed", a->verify.seed, "the same seed runs the same operations").shows_default();
  command.add_flag(
      "--draft", a->verify.drafts,
      "check instead that answers with drafts, right and wrong ones, are those without");
  command.add_flag("--json", a->verify.json, "print one JSON object");
  a->engine.add_to(command);
  a->engine.add_program_to(command);
  a->engine.add_memory_to(command);
  a->expected.add_to(command);
  command.set_notes("Exit code 1 if a single bit differs.\n");
  return [a]() -> Result<int> {
    CAIRN_TRY(a->verify.engine, a->engine.read("f16"));
    CAIRN_TRY(a->verify.model_path, a->expected.find(a->verify.model_path));
    return run_programs(a->verify);
  };
}

}  // namespace

const command_line::Command kVerifyCommand = {
    "verify", "check that rewinds, forks and evictions change no bit of the logits", add_verify};

}  // namespace cairn::cli
