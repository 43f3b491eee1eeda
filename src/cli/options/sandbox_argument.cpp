// Which files belong to what.
#include "cli/options/sandbox_argument.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "gguf/split.h"
#include "session/program/skip_file.h"

namespace cairn::cli {

namespace {

namespace fs = std::filesystem;

// What links of the folder lead to is not below it.
void allow_links(const std::string& folder, SandboxRules& rules) {
  std::error_code error, ignored;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_symlink(ignored)) rules.readable.push_back(entry->path().string());
  }
}

}  // namespace

void add_sandbox(command_line::Options& command, SandboxChoice& choice) {
  command.begin_group("Sandbox");
  command
      .add("--sandbox", choice.mode,
           "auto: open no files but those that the options name, and start no programs, where the "
           "kernel can see to it; on: expect that it can; off: do not ask it")
      .one_of({"auto", "on", "off"})
      .shows_default();
  command
      .add("--sandbox-path", choice.paths,
           "a file, or a folder with all that is below it, which may be read and written too; may "
           "be given several times")
      .takes("DIR")
      .repeatable();
}

void allow_model(const std::string& path, SandboxRules& rules) {
  if (path.empty()) return;  // The built-in one.
  rules.readable.push_back(path);
  rules.readable.push_back(session::skip_file_path(path));
  std::error_code error;
  if (fs::is_directory(path, error)) allow_links(path, rules);
  const auto split = gguf::parse_split_name(path);
  if (!split) return;
  for (uint32_t part = 1; part <= split->part_count; ++part) {
    rules.readable.push_back(gguf::split_path(split->stem, part, split->part_count));
  }
}

void allow_tier(const tier::TierOptions& options, SandboxRules& rules) {
  rules.connects = rules.connects || !options.url.empty();
  rules.readable.insert(
      rules.readable.end(),
      {options.login_file, options.key_file, options.authority_path, options.peers.authority_path});
  allow_replaced(options.peers.certificate_path, rules);
  allow_replaced(options.peers.tls_key_path, rules);
}

void allow_engine(const EngineOptions& options, SandboxRules& rules) {
  for (const AdapterChoice& adapter : options.adapters) rules.readable.push_back(adapter.path);
  if (options.draft_model.path != "self") allow_model(options.draft_model.path, rules);
  for (const std::string& folder : {options.cache_dir, options.pack_cache}) {
    if (folder.empty()) continue;
    // One that cannot be made is for its owner to tell.
    std::error_code error;
    if (folder == options.pack_cache) fs::create_directories(folder, error);
    (void)::mkdir(folder.c_str(), 0700);
    rules.writable.push_back(folder);
  }
}

void allow_output(const std::string& path, SandboxRules& rules) {
  if (path.empty() || path == "-") return;
  std::error_code error;
  // A file that is not there yet would keep a relative path relative.
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
  if (!error) rules.writable.push_back(whole.parent_path().string());
}

void allow_replaced(const std::string& path, SandboxRules& rules) {
  if (path.empty()) return;
  const fs::path folder = fs::path(path).parent_path();
  rules.readable.push_back(folder.empty() ? "." : folder.string());
  rules.readable.push_back(path);
}

Result<bool> enter_sandbox(const SandboxChoice& choice, SandboxRules rules) {
  if (choice.mode == "off") return false;
  rules.writable.insert(rules.writable.end(), choice.paths.begin(), choice.paths.end());
  const Status entered = cairn::enter_sandbox(rules);
  if (entered) return true;
  if (choice.mode == "on") return entered.error();
  // What the kernel lacks is nothing that the person who runs the program can change.
  if (entered.error().code == ErrorCode::unsupported) {
    log::info("{}", entered.error().message);
    return false;
  }
  return entered.error();
}

}  // namespace cairn::cli
