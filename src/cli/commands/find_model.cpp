// Nothing is asked of anybody unless the name begins with hf:, ollama: or a URL's scheme, and the
// model is not here already.
#include "cli/commands/find_model.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "hub/model_folder.h"
#include "serve/models/loaded_model.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

// Its end, so that the line of progress fits a terminal.
std::string shortened(std::string_view name) {
  constexpr size_t kBytesMax = 36;
  if (name.size() <= kBytesMax) return std::string(name);
  return "..." + std::string(name.substr(name.size() - kBytesMax));
}

// A line for each file, one after the other.
class FileProgress {
 public:
  FileProgress(std::string_view verb, terminal::Progress::Unit unit) : verb_(verb), unit_(unit) {}

  void update(std::string_view name, uint64_t done, uint64_t total) {
    if (!line_ || name != name_) {
      line_.reset();
      name_ = name;
      line_.emplace(verb_ + printable(shortened(name)), unit_);
    }
    line_->update(done, total);
  }
  void end() { line_.reset(); }

 private:
  std::string verb_;
  terminal::Progress::Unit unit_;
  std::string name_;
  std::optional<terminal::Progress> line_;
};

Result<FoundModel> look_for_reference(const hub::HubSettings& settings, const std::string& text) {
  CAIRN_TRY(hub::ModelReference reference, hub::parse_reference(text));
  if (const auto kept = hub::find_kept(settings, reference)) return FoundModel{kept->paths.front()};
  return FoundModel{.remote = std::move(reference)};
}

}  // namespace

Result<hub::Pulled> pull_with_progress(const hub::HubSettings& settings,
                                       const hub::ModelReference& reference,
                                       hub::PullOptions options) {
  FileProgress fetching("", terminal::Progress::Unit::transfer);
  FileProgress checking("checking ", terminal::Progress::Unit::bytes);
  options.on_note = [](std::string_view line) {
    std::fprintf(stderr, "cairn: %s\n", printable(line).c_str());
  };
  options.on_progress = [&](std::string_view name, uint64_t done, uint64_t total) {
    checking.end();
    fetching.update(name, done, total);
  };
  options.on_check = [&](std::string_view name, uint64_t done, uint64_t total) {
    fetching.end();
    checking.update(name, done, total);
  };
  return hub::pull(settings, reference, options);
}

Result<FoundModel> look_for_model(const std::string& named) {
  std::error_code error;
  if (named.empty() || std::filesystem::exists(named, error)) return FoundModel{named};
  const bool is_reference = hub::is_reference(named);
  if (!is_reference && !hub::is_alias(named)) return FoundModel{named};
  CAIRN_TRY(const hub::HubSettings settings, hub::read_settings());
  if (is_reference) return look_for_reference(settings, named);
  if (settings.folder.empty()) return FoundModel{named};
  CAIRN_TRY(const std::optional<std::string> target,
            hub::ModelFolder(settings.folder).model_of(named));
  if (!target) return FoundModel{named};
  return hub::is_reference(*target) ? look_for_reference(settings, *target) : FoundModel{*target};
}

Result<std::string> find_model(const std::string& named) {
  CAIRN_TRY(FoundModel found, look_for_model(named));
  if (!found.remote) return std::move(found.path);
  CAIRN_TRY(const hub::HubSettings settings, hub::read_settings());
  CAIRN_TRY(hub::Pulled pulled, pull_with_progress(settings, *found.remote, {}));
  return std::move(pulled.path);
}

void ExpectedDigests::add_to(command_line::Options& command) {
  command
      .add("--expect-sha256", texts_,
           "refuse the model's file if it has another SHA-256: HEX, or NAME=HEX with the name of a "
           "part; may be given several times")
      .takes("HEX")
      .repeatable();
}

Result<std::string> ExpectedDigests::find(const std::string& named) const {
  CAIRN_TRY(const std::string path, find_model(named));
  if (texts_.empty()) return path;
  if (path.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--expect-sha256: expected a model of a file, found the built-in one");
  }
  std::vector<serve::ModelSource> models = {serve::plain_source("model", path)};
  for (const std::string& text : texts_) CAIRN_TRY(serve::expect_digest(text, models));
  terminal::Progress line("checking", terminal::Progress::Unit::operations);
  CAIRN_TRY(serve::check_digests(
      models.front(), [&](serve::LoadStage, int percent) { line.update(uint64_t(percent), 100); }));
  return path;
}

}  // namespace cairn::cli
