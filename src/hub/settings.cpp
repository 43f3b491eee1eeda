// One paragraph for each program.
#include "hub/settings.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/env.h"
#include "base/file.h"

namespace cairn::hub {

namespace {

constexpr size_t kTokenBytesMax = 4096;
constexpr size_t kPathBytesMax = 4096;

std::string set_value(const char* name) {
  return env(name).value_or("");
}

// The folder of a variable, or another one within a folder that may be none.
std::string folder_of(const char* name, const std::string& base, const std::string& within) {
  const std::string own = with_home(set_value(name));
  if (!own.empty()) return own;
  return base.empty() ? "" : base + within;
}

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin));
}

// A token is a part of a header: nothing in it may end the line.
Status set_token(HubSettings& settings, std::string_view text, const std::string& source) {
  const std::string token = trimmed(text);
  const bool is_plain =
      std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!is_plain) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a token of printable characters, found others in it", source);
  }
  settings.token = token;
  if (!token.empty()) settings.token_source = source;
  return Ok{};
}

Status find_token(HubSettings& settings, const std::string& hub_home) {
  if (const std::string token = set_value("HF_TOKEN"); !token.empty()) {
    return set_token(settings, token, "HF_TOKEN");
  }
  const std::string path = folder_of("HF_TOKEN_PATH", hub_home, "/token");
  if (path.empty()) return Ok{};
  Result<std::string> text = read_file(path, kTokenBytesMax);
  if (text) return set_token(settings, *text, path);
  // Most people have none.
  return text.error().code == ErrorCode::not_found ? Status(Ok{}) : Status(text.error());
}

std::string without_last_slashes(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

Result<HubSettings> read_settings() {
  const std::string home = set_value("HOME");
  const std::string caches = folder_of("XDG_CACHE_HOME", home, "/.cache");

  HubSettings settings;
  settings.folder = folder_of("CAIRN_MODELS", caches, "/cairn/models");
  settings.authority_path = set_value("SSL_CERT_FILE");

  const std::string hub_home = folder_of("HF_HOME", caches, "/huggingface");
  settings.hub_cache = folder_of("HF_HUB_CACHE", hub_home, "/hub");
  settings.hub_url = without_last_slashes(set_value("HF_ENDPOINT"));
  if (settings.hub_url.empty()) settings.hub_url = "https://huggingface.co";
  const std::string offline = set_value("HF_HUB_OFFLINE");
  settings.is_offline = !offline.empty() && offline != "0";
  CAIRN_TRY(find_token(settings, hub_home));

  settings.llama_cache = folder_of("LLAMA_CACHE", caches, "/llama.cpp");

  if (!home.empty()) {
    settings.lm_studio_folders = {home + "/.lmstudio/models", home + "/.cache/lm-studio/models"};
    // Where somebody has moved it, a file says where to.
    Result<std::string> moved = read_file(home + "/.lmstudio-home-pointer", kPathBytesMax);
    if (moved && !trimmed(*moved).empty()) {
      settings.lm_studio_folders.front() = trimmed(*moved) + "/models";
    }
  }

  const std::string ollama = folder_of("OLLAMA_MODELS", home, "/.ollama/models");
  if (!ollama.empty()) settings.ollama_folders.push_back(ollama);
  if (set_value("OLLAMA_MODELS").empty()) {
    settings.ollama_folders.push_back("/usr/share/ollama/.ollama/models");  // Of its service.
  }
  settings.ollama_url = without_last_slashes(set_value("CAIRN_OLLAMA_REGISTRY"));
  if (settings.ollama_url.empty()) settings.ollama_url = "https://registry.ollama.ai";
  return settings;
}

}  // namespace cairn::hub
