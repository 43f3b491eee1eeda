// From a path to an engine.
#include "cli/commands/load.h"

#include <filesystem>
#include <system_error>

#include "builtin/builtin_model.h"
#include "terminal/terminal.h"

namespace cairn::cli {

Status check_model_name(const std::string& path) {
  std::error_code error;
  const bool is_name =
      !path.empty() && !path.ends_with(".gguf") && path.find('/') == std::string::npos;
  if (!is_name || std::filesystem::exists(path, error)) return Ok{};
  return fail(ErrorCode::not_found,
              "{}: expected a GGUF file or an alias, found nothing of that name here; `cairn list` "
              "shows the models of this machine, `cairn pull` fetches others",
              path);
}

Result<gguf::File> open_model(const std::string& path, gguf::OpenMode mode) {
  CAIRN_TRY(check_model_name(path));
  std::error_code error;
  const std::filesystem::path config = std::filesystem::path(path) / "config.json";
  if (std::filesystem::is_directory(path, error) && std::filesystem::exists(config, error)) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a GGUF file, found a folder; `cairn convert DIR -o FILE` writes one",
                path);
  }
  if (!path.empty()) return gguf::File::open(path, mode);
  return gguf::File::from_bytes(builtin::model(), std::string(builtin::kModelName));
}

std::vector<FileIdentity> input_files(const gguf::File& model, const EngineOptions& options,
                                      std::initializer_list<std::string> others) {
  std::vector<FileIdentity> files = model.identities();
  std::vector<std::string> paths = others;
  for (const AdapterChoice& adapter : options.adapters) paths.push_back(adapter.path);
  for (const std::string& path : paths) {
    if (const auto file = identity_of(path)) files.push_back(*file);
  }
  return files;
}

Result<std::unique_ptr<Engine>> load_engine(const std::string& path, EngineOptions options) {
  CAIRN_TRY(gguf::File file, open_model(path));
  return load_engine(std::move(file), std::move(options));
}

Result<std::unique_ptr<Engine>> load_engine(gguf::File file, EngineOptions options) {
  terminal::Progress progress("loading", terminal::Progress::Unit::bytes);
  options.on_progress = [&progress](size_t done, size_t total) { progress.update(done, total); };
  return Engine::load(std::move(file), options);
}

}  // namespace cairn::cli
