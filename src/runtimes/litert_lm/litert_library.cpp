// Digests and names.
#include "runtimes/litert_lm/litert_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "base/mapped_file.h"
#include "base/sha256.h"

namespace cairn::runtimes {

namespace {

constexpr LiteRtVersion kVersions[] = {
    {"litert-lm-api 0.18.1 for x86-64",
     "b837c18cc98920ea0f979c454795dcabb6c1f132b9b4a4a309243e67d62e94b9"},
};

// The function's name behind litert_lm_ becomes what the pointer points to.
template <class Function>
Status find(void* library, const std::string& path, const char* name, Function& function) {
  const std::string whole = std::string("litert_lm_") + name;
  void* const found = ::dlsym(library, whole.c_str());
  if (found == nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected the function {}, found none", path, whole);
  }
  std::memcpy(&function, &found, sizeof found);
  return Ok{};
}

Status check_version(const std::string& path, std::span<const LiteRtVersion> known) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return fail(ErrorCode::unsupported, "{}", file.error().message);
  const std::string digest = hex_of(Sha256().add(file->bytes()).finish());
  if (std::ranges::find(known, digest, &LiteRtVersion::sha256) != known.end()) return Ok{};
  return fail(ErrorCode::unsupported, "{}: expected {}, found another version (SHA-256 {})", path,
              known.front().name, digest);
}

}  // namespace

std::span<const LiteRtVersion> known_litert_versions() {
  return kVersions;
}

Result<LiteRtFunctions> open_litert_library(const std::string& path,
                                            std::span<const LiteRtVersion> known) {
  CAIRN_TRY(check_version(path, known));
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return fail(ErrorCode::unsupported, "{}", ::dlerror());
  LiteRtFunctions f{};
  CAIRN_TRY(find(library, path, "engine_settings_create", f.settings_create));
  CAIRN_TRY(find(library, path, "engine_settings_delete", f.settings_delete));
  CAIRN_TRY(find(library, path, "engine_settings_set_max_num_tokens", f.settings_set_max_tokens));
  CAIRN_TRY(find(library, path, "engine_settings_set_num_threads", f.settings_set_threads));
  CAIRN_TRY(find(library, path, "engine_create", f.engine_create));
  CAIRN_TRY(find(library, path, "engine_delete", f.engine_delete));
  CAIRN_TRY(find(library, path, "engine_create_session", f.session_create));
  CAIRN_TRY(find(library, path, "session_delete", f.session_delete));
  CAIRN_TRY(find(library, path, "session_cancel_process", f.session_cancel));
  CAIRN_TRY(find(library, path, "session_run_prefill", f.session_prefill));
  CAIRN_TRY(find(library, path, "session_run_decode", f.session_decode));
  CAIRN_TRY(find(library, path, "input_data_create", f.input_create));
  CAIRN_TRY(find(library, path, "input_data_delete", f.input_delete));
  CAIRN_TRY(find(library, path, "responses_get_num_candidates", f.responses_count));
  CAIRN_TRY(find(library, path, "responses_get_response_text_at", f.responses_text));
  CAIRN_TRY(find(library, path, "responses_delete", f.responses_delete));
  return f;
}

}  // namespace cairn::runtimes
