// From a path to an engine.
#include "cli/commands/load.h"

#include <filesystem>
#include <system_error>

#include "cli/builtin_model.h"
#include "cli/terminal/terminal.h"

namespace cairn::cli {

Result<gguf::File> open_model(const std::string& path) {
  std::error_code error;
  const std::filesystem::path config = std::filesystem::path(path) / "config.json";
  if (std::filesystem::is_directory(path, error) && std::filesystem::exists(config, error)) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a GGUF file, found a folder; `cairn convert DIR -o FILE` writes one",
                path);
  }
  if (!path.empty()) return gguf::File::open(path);
  return gguf::File::from_bytes(builtin_model(), std::string(kBuiltinModelName));
}

Result<std::unique_ptr<Engine>> load_engine(const std::string& path, EngineOptions options) {
  CAIRN_TRY(gguf::File file, open_model(path));
  Progress progress("loading", Progress::Unit::bytes);
  options.on_progress = [&progress](size_t done, size_t total) { progress.update(done, total); };
  return Engine::load(std::move(file), options);
}

namespace {

struct KvName {
  std::string_view name;
  KvType type;
};
constexpr KvName kKvNames[] = {{"f32", KvType::f32},
                               {"f16", KvType::f16},
                               {"bf16", KvType::bf16},
                               {"q8_0", KvType::q8_0},
                               {"q4_0", KvType::q4_0}};

}  // namespace

Result<KvType> parse_kv_type(std::string_view option, std::string_view text) {
  std::string names;
  for (const KvName& entry : kKvNames) {
    if (entry.name == text) return entry.type;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  return fail(ErrorCode::invalid_argument, "{}: expected one of {}, found \"{}\"", option, names,
              text);
}

}  // namespace cairn::cli
