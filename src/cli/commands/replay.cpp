// `cairn replay`: computes the answer of a receipt again, and says where it is not the same.
#include "session/replay.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/load.h"
#include "cli/options/engine_arguments.h"
#include "command_line/exit_codes.h"
#include "json/value.h"
#include "session/receipt_text.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

using session::Receipt;
using session::ReceiptDifference;

struct ReplayArguments {
  std::string receipt_path;
  std::string model_path;  // Empty: the built-in model.
  bool json = false;
  EngineOptions engine;
};

// What may have changed where the model computed the same until there.
std::string_view hint_for(const ReceiptDifference& difference) {
  if (difference.field == "fingerprint.model") return "; -m names another file";
  if (difference.field.starts_with("fingerprint.adapters")) {
    return "; --lora names the adapters, in the order of the receipt";
  }
  if (difference.field == "answer.token") return "; the logits are equal";
  return "";
}

std::string line_of(const ReceiptDifference& difference) {
  const std::string place =
      difference.token < 0 ? "" : fmt::format("token {} of the answer: ", difference.token);
  return fmt::format("different: {}{}: expected {}, found {}{}\n", place, difference.field,
                     difference.expected, difference.found, hint_for(difference));
}

std::string text_of(const Receipt& receipt, const std::optional<ReceiptDifference>& difference) {
  if (difference) return line_of(*difference);
  return fmt::format("equal: {} tokens, all bits of their logits, fingerprint {}\n",
                     receipt.choices.size(), receipt.sources.fingerprint().text());
}

// What this machine computes for the receipt. Another model is told by its digest, before its
// weights are taken.
Result<Receipt> compute(const ReplayArguments& arguments, const Receipt& receipt) {
  CAIRN_TRY(gguf::File file, open_model(arguments.model_path));
  Receipt other{.sources = receipt.sources};
  other.sources.model = file.identity();
  if (session::difference_of(receipt.sources, other.sources)) return other;
  EngineOptions options = arguments.engine;
  session::take_options(receipt, options);
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load_engine(std::move(file), options));
  if (engine->tokenizer() == nullptr) {
    return fail(ErrorCode::unsupported,
                "tokenizer.ggml.model: expected a vocabulary, found none: this model gives no "
                "answers");
  }
  terminal::Progress progress("replaying", terminal::Progress::Unit::operations);
  return session::replay(*engine, receipt, [&](int32_t tokens) {
    progress.update(uint64_t(tokens), receipt.choices.size());
  });
}

Result<int> replay_receipt(const ReplayArguments& arguments) {
  CAIRN_TRY(const Receipt receipt, session::load_receipt(arguments.receipt_path));
  if (receipt.sources.numerics != Numerics::exact_1) {
    return fail(ErrorCode::unsupported,
                "{}: expected numerics {}, by which answers that are read again have the same "
                "bits, found {}",
                arguments.receipt_path, name(Numerics::exact_1), name(receipt.sources.numerics));
  }
  CAIRN_TRY(const Receipt computed, compute(arguments, receipt));
  const std::optional<ReceiptDifference> difference = session::difference_of(receipt, computed);
  terminal::TextOut out(stdout);
  out.write(arguments.json ? json::to_text(session::comparison_json(receipt, difference)) + "\n"
                           : text_of(receipt, difference));
  CAIRN_TRY(out.finish());
  return difference ? command_line::kExitDiffers : command_line::kExitFine;
}

command_line::Action add_replay(command_line::Options& command) {
  struct ReplayCommandArguments {
    ExpectedDigests expected;
    ReplayArguments replay;
    EngineArguments engine;
  };
  const auto a = std::make_shared<ReplayCommandArguments>();
  command.add("RECEIPT", a->replay.receipt_path, "a file that `cairn run --receipt` wrote")
      .takes("FILE")
      .required();
  command
      .add("MODEL,-m,--model", a->replay.model_path,
           "the GGUF file that gave the answer; default: the built-in model")
      .takes("FILE");
  command.add_flag("--json", a->replay.json, "print one JSON object");
  a->engine.add_machine_to(command);
  a->expected.add_to(command);
  command.set_notes(
      "Numerics, types of the KV cache, context and sampling are the receipt's. Exit code 5 where "
      "the answer differs; what is printed names the first difference.\n");
  command.add_example("cairn run MODEL.gguf -p \"Why is the sky blue?\" --receipt sky.json",
                      "an answer with a receipt");
  command.add_example("cairn replay sky.json -m MODEL.gguf", "the same answer, bit for bit?");
  return [a]() -> Result<int> {
    CAIRN_TRY(a->replay.engine, a->engine.read("f16"));
    CAIRN_TRY(a->replay.model_path, a->expected.find(a->replay.model_path));
    return replay_receipt(a->replay);
  };
}

}  // namespace

const command_line::Command kReplayCommand = {
    "replay", "compute the answer of a receipt again, and compare every bit", add_replay};

}  // namespace cairn::cli
