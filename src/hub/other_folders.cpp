// Each program's layout is a function; all walk folders of a known depth.
#include "hub/other_folders.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "gguf/split.h"
#include "hub/answers.h"
#include "hub/model_folder.h"
#include "hub/model_reference.h"
#include "json/value.h"

namespace cairn::hub {

namespace {

namespace fs = std::filesystem;

constexpr size_t kEntriesMax = 100'000;
constexpr size_t kRecordBytesMax = size_t(1) << 20;

// The entries of a folder in the order of their names; none where it cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  auto entry = fs::directory_iterator(folder, error);
  for (; !error && entry != fs::directory_iterator() && entries.size() < kEntriesMax;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// All below a folder; what may not be read hides what is in it, and nothing else.
fs::recursive_directory_iterator walk(const fs::path& folder, std::error_code& error) {
  return fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied,
                                          error);
}

// Models in GGUF below a folder, which are no projectors: the first file of each.
std::vector<fs::path> models_below(const fs::path& folder) {
  constexpr int kDepthMax = 3;
  std::vector<fs::path> files;
  std::error_code error;
  auto entry = walk(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator() && files.size() < kEntriesMax;
       entry.increment(error)) {
    if (entry.depth() >= kDepthMax) entry.disable_recursion_pending();
    const std::string name = entry->path().filename().string();
    const auto split = gguf::parse_split_name(name);
    const bool is_model =
        name.ends_with(".gguf") && name.find("mmproj") == name.npos && (!split || split->part == 1);
    std::error_code missing;  // A link that leads nowhere is no model.
    if (is_model && fs::is_regular_file(entry->path(), missing)) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

KeptModel model_of(Keeper keeper, const fs::path& first, std::string repo, std::string file) {
  KeptModel model{.keeper = keeper,
                  .name = repo.empty() ? first.string() : fmt::format("hf:{}:{}", repo, file),
                  .repo = std::move(repo),
                  .file = std::move(file)};
  model.paths = {first.string()};
  if (const auto split = gguf::parse_split_name(first.string())) {
    std::error_code error;
    for (uint32_t part = 2; part <= std::min<uint32_t>(split->part_count, 1000); ++part) {
      const std::string path = gguf::split_path(split->stem, part, split->part_count);
      if (fs::exists(path, error)) model.paths.push_back(path);
    }
  }
  measure(model);
  return model;
}

// A link to blobs/DIGEST says what the file is.
std::string digest_of_link(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string() : sha256_in(target.filename().string());
}

// Of what llama.cpp writes beside a file: the repository and the file, from its URL.
std::optional<std::pair<std::string, std::string>> origin_of(const fs::path& path) {
  constexpr std::string_view kResolve = "/resolve/";
  const std::string record = path.string() + ".json";
  Result<std::string> text = read_file(record, kRecordBytesMax);
  if (!text) return std::nullopt;
  Result<json::Value> value = json::read_value(record, *text, {.bytes = kRecordBytesMax});
  if (!value) return std::nullopt;
  const std::string_view url = value->text_at("url").value_or("");
  const size_t resolve = url.find(kResolve);
  if (resolve == url.npos) return std::nullopt;
  const std::string_view before = url.substr(0, resolve);
  const size_t name = before.rfind('/');
  const size_t owner = name == before.npos || name == 0 ? before.npos : before.rfind('/', name - 1);
  const std::string_view behind = url.substr(resolve + kResolve.size());
  const size_t file = behind.find('/');
  if (owner == before.npos || file == behind.npos) return std::nullopt;
  return std::pair(std::string(before.substr(owner + 1)), std::string(behind.substr(file + 1)));
}

}  // namespace

std::vector<KeptModel> in_hub_cache(const std::string& folder) {
  constexpr std::string_view kModels = "models--";
  std::vector<KeptModel> models;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    const size_t between = name.find("--", kModels.size());
    if (!name.starts_with(kModels) || between == name.npos) continue;
    const std::string repo =
        name.substr(kModels.size(), between - kModels.size()) + "/" + name.substr(between + 2);
    std::vector<fs::path> snapshots = entries_of(entry / "snapshots");
    Result<std::string> main = read_file((entry / "refs" / "main").string(), 200);
    if (main) {
      std::stable_partition(snapshots.begin(), snapshots.end(), [&](const fs::path& snapshot) {
        return snapshot.filename().string() == (*main).substr(0, (*main).find('\n'));
      });
    }
    std::set<std::string> seen;
    for (const fs::path& snapshot : snapshots) {
      for (const fs::path& path : models_below(snapshot)) {
        const std::string file = path.lexically_relative(snapshot).string();
        if (!seen.insert(file).second) continue;
        models.push_back(model_of(Keeper::hugging_face, path, repo, file));
        models.back().sha256 = digest_of_link(path);
      }
    }
  }
  return models;
}

std::vector<KeptModel> in_llama_cache(const std::string& folder) {
  std::vector<KeptModel> models;
  for (const fs::path& path : models_below(folder)) {
    if (path.parent_path() != fs::path(folder)) continue;
    const auto origin = origin_of(path);
    if (origin) {
      models.push_back(model_of(Keeper::llama_cpp, path, origin->first, origin->second));
    } else {
      models.push_back(model_of(Keeper::llama_cpp, path, "", path.filename().string()));
    }
  }
  return models;
}

std::vector<KeptModel> in_lm_studio(const std::string& folder) {
  std::vector<KeptModel> models;
  for (const fs::path& owner : entries_of(folder)) {
    for (const fs::path& name : entries_of(owner)) {
      const std::string repo = owner.filename().string() + "/" + name.filename().string();
      for (const fs::path& path : models_below(name)) {
        models.push_back(
            model_of(Keeper::lm_studio, path, repo, path.lexically_relative(name).string()));
      }
    }
  }
  return models;
}

std::vector<KeptModel> in_ollama(const std::string& folder) {
  constexpr std::string_view kModel = "application/vnd.ollama.image.model";
  constexpr std::string_view kDefaultRegistry = "registry.ollama.ai";
  std::vector<KeptModel> models;
  const auto add = [&](const fs::path& manifest, const fs::path& relative) {
    std::vector<std::string> parts;
    for (const fs::path& part : relative) parts.push_back(part.string());
    Result<std::string> text = read_file(manifest.string(), kRecordBytesMax);
    if (parts.size() != 4 || !text) return;
    Result<std::vector<ManifestLayer>> layers = parse_manifest(*text);
    if (!layers) return;
    for (const ManifestLayer& layer : *layers) {
      const fs::path blob = fs::path(folder) / "blobs" / ("sha256-" + layer.sha256);
      std::error_code error;
      if (layer.media_type != kModel || !fs::is_regular_file(blob, error)) continue;
      KeptModel model = model_of(Keeper::ollama, blob, "", "");
      model.repo = parts[1] + "/" + parts[2];
      model.file = parts[3];
      model.sha256 = layer.sha256;
      model.name = to_text({.kind = SourceKind::ollama,
                            .host = parts[0] == kDefaultRegistry ? "" : parts[0],
                            .repo = model.repo,
                            .pick = model.file});
      models.push_back(std::move(model));
    }
  };
  const fs::path manifests = fs::path(folder) / "manifests";
  std::error_code error;
  auto entry = walk(manifests, error);
  size_t seen = 0;
  for (; !error && entry != fs::recursive_directory_iterator() && ++seen < kEntriesMax;
       entry.increment(error)) {
    std::error_code missing;
    if (!fs::is_regular_file(entry->path(), missing)) continue;
    add(entry->path(), entry->path().lexically_relative(manifests));
  }
  std::sort(models.begin(), models.end(),
            [](const KeptModel& a, const KeptModel& b) { return a.name < b.name; });
  return models;
}

}  // namespace cairn::hub
