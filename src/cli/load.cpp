// From a path to an engine.
#include "cli/load.h"

#include "cli/builtin_model.h"
#include "cli/terminal.h"

namespace cairn::cli {

Result<gguf::File> open_model(const std::string& path) {
  if (!path.empty()) return gguf::File::open(path);
  return gguf::File::from_bytes(builtin_model(), std::string(kBuiltinModelName));
}

Result<std::unique_ptr<Engine>> load_engine(const std::string& path, EngineOptions options) {
  CAIRN_TRY(gguf::File file, open_model(path));
  Progress progress("loading", Progress::Unit::bytes);
  options.on_progress = [&progress](size_t done, size_t total) { progress.update(done, total); };
  return Engine::load(std::move(file), options);
}

Result<KvType> parse_kv_type(std::string_view text) {
  if (text == "f32") return KvType::f32;
  if (text == "f16") return KvType::f16;
  if (text == "bf16") return KvType::bf16;
  return fail(ErrorCode::invalid_argument, "--kv: expected f32, f16 or bf16, found \"{}\"", text);
}

}  // namespace cairn::cli
