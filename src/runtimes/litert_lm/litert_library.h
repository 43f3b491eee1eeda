// Unverified on hardware: no model of LiteRT-LM has been run through this. Its library, found by
// name when the program runs, and the few of its functions that are used, declared here. It has no
// version that a program could ask for, and its next one gives the same names other arguments: so
// only files whose digest is known are used. It stays loaded, as it has threads of its own.
// Thread-safe: constant.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cairn::runtimes {

struct LiteRtFunctions {
  void* (*settings_create)(const char* model_path, const char* backend, const char* vision_backend,
                           const char* audio_backend);
  void (*settings_delete)(void* settings);
  void (*settings_set_max_tokens)(void* settings, int count);
  void (*settings_set_threads)(void* settings, int count);
  void* (*engine_create)(const void* settings);  // Null: it cannot be.
  void (*engine_delete)(void* engine);
  void* (*session_create)(void* engine, void* config);
  void (*session_delete)(void* session);
  void (*session_cancel)(void* session);
  int (*session_prefill)(void* session, const void* const* inputs, size_t count);  // 0: done.
  void* (*session_decode)(void* session);  // Responses, or null.
  void* (*input_create)(int type, const void* data, size_t bytes);
  void (*input_delete)(void* input);
  int (*responses_count)(const void* responses);
  const char* (*responses_text)(const void* responses, int index);
  void (*responses_delete)(void* responses);
};

struct LiteRtVersion {
  std::string_view name;
  std::string_view sha256;  // In hexadecimal digits, of the file.
};

// Those that the functions above were read from.
std::span<const LiteRtVersion> known_litert_versions();

// Errors: unsupported: no such file, an unknown version, a function that is not there.
Result<LiteRtFunctions> open_litert_library(const std::string& path,
                                            std::span<const LiteRtVersion> known);

}  // namespace cairn::runtimes
