// `cairn store`: what a folder of stored conversations has; checks it, and carries sequences to and
// from other machines. A sequence is named by the first digits of its name, or by its session's.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/load.h"
#include "cli/options/engine_arguments.h"
#include "command_line/exit_codes.h"
#include "engine/sequence_proof.h"
#include "json/value.h"
#include "store/export.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

constexpr size_t kShownDigits = 12;
constexpr size_t kDigitsMin = 4;

struct StoreArguments {
  ExpectedDigests expected;
  std::string action, path, name, output, model_path;
  bool json = false, proves = false;
  EngineArguments engine;
};

Result<std::unique_ptr<store::DiskStore>> open_store(const StoreArguments& arguments) {
  // Looking at a folder that is not there must not make it.
  const bool makes = arguments.action == "import";
  if (!makes && !identity_of(arguments.path)) {
    return fail(ErrorCode::not_found, "{}: expected a folder of stored conversations, found none",
                arguments.path);
  }
  return store::DiskStore::open({.path = arguments.path});
}

// The names of sessions that stand for a manifest.
std::string sessions_of(store::DiskStore& store, const Sha256Digest& name) {
  std::string all;
  Result<std::vector<std::string>> sessions = store.folder().list_saved();
  if (!sessions) return all;
  for (const std::string& session : *sessions) {
    Result<Sha256Digest> saved = store.folder().saved(session);
    if (saved && *saved == name) all += (all.empty() ? "" : ", ") + session;
  }
  return all;
}

Result<store::IndexEntry> find_entry(store::DiskStore& store, const std::string& name) {
  Result<Sha256Digest> saved = store.folder().saved(name);
  std::optional<store::IndexEntry> found;
  for (const store::IndexEntry& entry : store.entries()) {
    const bool is_meant = saved ? entry.name == *saved
                                : name.size() >= kDigitsMin && hex_of(entry.name).starts_with(name);
    if (!is_meant) continue;
    if (found) {
      return fail(ErrorCode::invalid_argument,
                  "NAME: expected digits that one sequence's name begins with, found \"{}\", which "
                  "several begin with",
                  name);
    }
    found = entry;
  }
  if (found) return *found;
  return fail(ErrorCode::not_found,
              "NAME: expected a session, or at least {} digits that `cairn store ls` shows, found "
              "\"{}\"",
              kDigitsMin, name);
}

std::string time_text(int64_t ns) {
  const std::time_t seconds = std::time_t(ns / 1'000'000'000);
  std::tm parts = {};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min);
}

Result<std::string> list(store::DiskStore& store, bool json) {
  json::Value all = json::Value::array();
  std::string text = fmt::format("{:<14}{:>9}{:>9}  {:<18}{}\n", "name", "tokens", "records",
                                 "used (UTC)", "model");
  const std::vector<store::IndexEntry> entries = store.entries();
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const std::string sessions = sessions_of(store, entry->name);
    const std::string hex = hex_of(entry->name);
    all.push_back({{"name", hex},
                   {"session", sessions},
                   {"model", printable(entry->model)},
                   {"tokens", entry->length},
                   {"records", entry->records.size()},
                   {"used_ns", entry->used_ns}});
    text += fmt::format("{:<14}{:>9}{:>9}  {:<18}{}{}\n", hex.substr(0, kShownDigits),
                        entry->length, entry->records.size(), time_text(entry->used_ns),
                        printable(entry->model), sessions.empty() ? "" : "  (" + sessions + ")");
  }
  const store::StoreStats stats = store.stats();
  text += fmt::format("{} sequences, {}\n", stats.entries, show_bytes(stats.bytes));
  return json ? json::to_text(all) + "\n" : text;
}

Result<std::string> show(store::DiskStore& store, const std::string& name, bool json) {
  CAIRN_TRY(const store::IndexEntry entry, find_entry(store, name));
  Sha256Digest fingerprint{};
  CAIRN_TRY(const store::Manifest manifest, store.read_manifest(entry.name, &fingerprint));
  uint64_t bytes = 0;
  for (const store::PieceRef& piece : manifest.pieces) bytes += piece.file_bytes;
  const std::vector<int32_t> states = manifest.outline.state_positions();
  const std::vector<int32_t> rows = manifest.outline.hidden_positions();
  if (json) {
    json::Value value = {{"name", hex_of(entry.name)},
                         {"session", sessions_of(store, entry.name)},
                         {"model", printable(manifest.model)},
                         {"fingerprint", hex_of(fingerprint)},
                         {"tokens", manifest.outline.length()},
                         {"record_bytes", bytes},
                         {"states", states},
                         {"hidden_rows", rows}};
    json::Value records = json::Value::array();
    for (const store::PieceRef& piece : manifest.pieces) records.push_back(hex_of(piece.name));
    value["records"] = records;
    return json::to_text(value) + "\n";
  }
  return fmt::format(
      "name         {}\nsession      {}\nmodel        {}\nfingerprint  {}\ntokens       {}\n"
      "records      {}, {}\nstates at    {}\nrows at      {}\n",
      hex_of(entry.name), sessions_of(store, entry.name), printable(manifest.model),
      hex_of(fingerprint), manifest.outline.length(), manifest.pieces.size(), show_bytes(bytes),
      fmt::join(states, ", "), fmt::join(rows, ", "));
}

Result<std::string> verify(store::DiskStore& store, int& code) {
  CAIRN_TRY(const store::DiskStore::Verified found, store.verify());
  if (found.bad_sequences > 0) code = command_line::kExitError;
  return fmt::format("{} sequences, {} damaged; {} records, {} damaged or missing\n",
                     found.sequences, found.bad_sequences, found.records, found.bad_records);
}

Result<std::string> export_to(store::DiskStore& store, const StoreArguments& arguments) {
  if (arguments.output.empty()) {
    return fail(ErrorCode::invalid_argument, "export: expected -o FILE, found none");
  }
  CAIRN_TRY(const store::IndexEntry entry, find_entry(store, arguments.name));
  CAIRN_TRY(OutputFile out, OutputFile::open(arguments.output, {.is_private = true}));
  CAIRN_TRY(store::export_sequence(store, entry.name, out));
  CAIRN_TRY(out.commit());
  return fmt::format("{}: {} tokens\n", arguments.output, entry.length);
}

// The sequence as the model computes it, beside what is stored. What differs is removed again.
Result<std::string> prove(store::DiskStore& store, const StoreArguments& arguments,
                          const Sha256Digest& name, int& code) {
  CAIRN_TRY(const EngineOptions options, arguments.engine.read("f16"));
  if (options.numerics != Numerics::exact_1) {
    return fail(ErrorCode::invalid_argument,
                "--prove: expected numerics {}, by which answers that are read again have the same "
                "bits; found {}",
                cairn::name(Numerics::exact_1), cairn::name(options.numerics));
  }
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load_engine(arguments.model_path, options));
  const Selection& selection = engine->default_selection();
  const Sha256Digest own = engine->fingerprint(selection).digest();
  CAIRN_TRY(const store::DiskStore::Match match,
            store.open_sequence(name, own, engine->memory().layout()));
  CAIRN_TRY(memory::Sequence sequence,
            store.load(engine->memory(), selection.variant(), own, match, 0));
  CAIRN_TRY(const SequenceProof proof, prove_sequence(*engine, std::move(sequence)));
  if (proof.differing_bytes == 0) {
    return fmt::format("{} tokens computed again: {} have the same bits\n", proof.tokens,
                       show_bytes(proof.compared_bytes));
  }
  code = command_line::kExitError;
  CAIRN_TRY(store.remove(name));
  return fmt::format("{} of {} bytes differ from what the model computes (first: {}); removed\n",
                     proof.differing_bytes, proof.compared_bytes, proof.first_difference);
}

Result<std::string> import_from(store::DiskStore& store, const StoreArguments& arguments,
                                int& code) {
  CAIRN_TRY(const Sha256Digest name, store::import_sequence(store, arguments.name));
  const std::string line = fmt::format("{}\n", hex_of(name));
  if (!arguments.proves) return line;
  CAIRN_TRY(const std::string proof, prove(store, arguments, name, code));
  return line + proof;
}

Result<std::string> act(store::DiskStore& store, const StoreArguments& arguments, int& code) {
  const std::string& action = arguments.action;
  if (action == "ls") return list(store, arguments.json);
  if (action == "verify") return verify(store, code);
  if (arguments.name.empty()) {
    return fail(ErrorCode::invalid_argument, "{}: expected {} behind the folder, found nothing",
                action, action == "import" ? "a file" : "a name");
  }
  if (action == "show") return show(store, arguments.name, arguments.json);
  if (action == "export") return export_to(store, arguments);
  if (action == "import") return import_from(store, arguments, code);
  CAIRN_TRY(const store::IndexEntry entry, find_entry(store, arguments.name));
  for (std::string rest = sessions_of(store, entry.name); !rest.empty();
       rest = sessions_of(store, entry.name)) {
    CAIRN_TRY(store.folder().remove_saved(rest.substr(0, rest.find(','))));
  }
  CAIRN_TRY(store.remove(entry.name));
  return fmt::format("removed {}\n", hex_of(entry.name).substr(0, kShownDigits));
}

command_line::Action add_store(command_line::Options& command) {
  const auto a = std::make_shared<StoreArguments>();
  command.add("ACTION", a->action, "ls, show, rm, verify, export or import")
      .one_of({"ls", "show", "rm", "verify", "export", "import"})
      .required();
  command.add("DIR,--cache-dir", a->path, "the folder that `cairn run --cache-dir` was given")
      .takes("DIR")
      .required();
  command.add("NAME", a->name,
              "of show, rm and export: a session, or the first digits that ls shows; of import: a "
              "file that export wrote");
  command.add("-o,--output", a->output, "where export writes; - is standard output").takes("FILE");
  command.add_flag("--json", a->json, "ls and show: print JSON");
  command.add_flag("--prove", a->proves,
                   "import: compute the sequence again and compare every bit; what differs is not "
                   "kept");
  command.add("-m,--model", a->model_path, "the model for --prove; default: the built-in model")
      .takes("FILE");
  a->engine.add_to(command);
  a->engine.add_program_to(command);
  a->engine.add_memory_to(command);
  a->expected.add_to(command);
  command.set_notes(
      "verify reads everything and puts damaged records into DIR/quarantine; its exit code is 1 "
      "where it found one, as that of import --prove where a bit differs.\n");
  command.add_example("cairn store ls DIR", "what the folder has, the newest first");
  command.add_example("cairn store export DIR 3fa9 -o chat.cairn", "one conversation in one file");
  command.add_example("cairn store import DIR chat.cairn --prove -m MODEL.gguf",
                      "take it over, if the model computes the same");
  return [a]() -> Result<int> {
    CAIRN_TRY(a->model_path, a->expected.find(a->model_path));
    CAIRN_TRY(const std::unique_ptr<store::DiskStore> store, open_store(*a));
    int code = command_line::kExitFine;
    CAIRN_TRY(const std::string text, act(*store, *a, code));
    terminal::TextOut out(a->output == "-" ? stderr : stdout);
    out.write(text);
    CAIRN_TRY(out.finish());
    return code;
  };
}

}  // namespace

const command_line::Command kStoreCommand = {
    "store", "look at, check and carry conversations that survive in a folder", add_store};

}  // namespace cairn::cli
