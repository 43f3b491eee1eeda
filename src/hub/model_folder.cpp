// Records and aliases are small files of their own, written aside and renamed (base/output_file.h).
#include "hub/model_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <system_error>

#include "base/file.h"
#include "base/machine/descriptor.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "gguf/split.h"
#include "hub/answers.h"
#include "hub/partial_file.h"
#include "hub/web_url.h"
#include "json/value.h"

namespace cairn::hub {

namespace {

namespace fs = std::filesystem;

constexpr size_t kRecordBytesMax = size_t(1) << 20;
constexpr size_t kAliasBytesMax = 4096;
constexpr size_t kPresetBytesMax = size_t(1) << 20;
constexpr size_t kEntriesMax = 100'000;
constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kDefaultRegistry = "registry.ollama.ai";

std::string as_segment(std::string text) {
  std::replace(text.begin(), text.end(), ':', '+');
  return text;
}

// Ending with ".gguf", and of a split model the first part.
bool is_first_file(const std::string& path) {
  const auto split = gguf::parse_split_name(path);
  return path.ends_with(".gguf") && (!split || split->part == 1);
}

std::vector<std::string> parts_of(const std::string& first) {
  const auto split = gguf::parse_split_name(first);
  if (!split) return {first};
  std::vector<std::string> paths;
  std::error_code error;
  for (uint32_t part = 1; part <= std::min<uint32_t>(split->part_count, 1000); ++part) {
    std::string path = gguf::split_path(split->stem, part, split->part_count);
    if (fs::exists(path, error)) paths.push_back(std::move(path));
  }
  return paths;
}

// What a path within the folder says of its model: the reverse of folder_of().
void name_by_path(KeptModel& model, const std::string& relative) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(relative)) parts.push_back(part.string());
  const auto joined = [&](size_t begin, size_t end) {
    std::string text;
    for (size_t i = begin; i < end; ++i) text += (i > begin ? "/" : "") + parts[i];
    return text;
  };
  if (parts.size() >= 4 && parts[0] == "hf") {
    const size_t at = parts[2].find('@');
    model.repo = parts[1] + "/" + parts[2].substr(0, at);
    model.file = joined(3, parts.size());
    model.name = fmt::format("hf:{}/{}:{}", parts[1], parts[2], model.file);
  } else if (parts.size() == 5 && parts[0] == "ollama") {
    model.repo = parts[2] + "/" + parts[3];
    model.file = fs::path(parts[4]).stem().string();
    std::string host = parts[1];
    std::replace(host.begin(), host.end(), '+', ':');
    model.name = to_text({.kind = SourceKind::ollama,
                          .host = host == kDefaultRegistry ? "" : host,
                          .repo = model.repo,
                          .pick = model.file});
  }
}

// Safetensors that wait for the rest of them, or to be converted, below hf/OWNER/REPO[@REVISION];
// nothing where it is another folder, or where the model is there already.
std::optional<KeptModel> waiting_source(const fs::path& folder, const std::string& models_path) {
  const fs::path relative = folder.lexically_relative(models_path);
  const std::vector<fs::path> parts(relative.begin(), relative.end());
  std::error_code error;
  if (parts.size() != 5 || parts[0] != "hf" || parts[3] != kSourceFolder) return std::nullopt;
  const std::string repo = parts[2].string(), name = parts[4].string();
  if (name != repo.substr(0, repo.find('@')) || !fs::is_directory(folder, error)) {
    return std::nullopt;
  }
  const fs::path above = folder.parent_path().parent_path();
  if (fs::exists(above / (name + ".gguf"), error)) return std::nullopt;
  KeptModel model{.keeper = Keeper::cairn, .is_partial = true};
  name_by_path(model, (parts[0] / parts[1] / parts[2] / (name + ".gguf")).string());
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    model.paths.push_back(entry->path().string());
    if (model.paths.back().ends_with(".gguf"))
      return std::nullopt;  // A repository of its own kind.
  }
  measure(model);
  model.paths = {folder.string()};
  return model;
}

// What is being fetched, of a file or of all in a folder. Held until it is removed.
Result<std::vector<Descriptor>> hold_all(const fs::path& path) {
  constexpr std::string_view kChunks = ".partial.chunks";
  std::vector<Descriptor> held;
  const auto hold = [&](const std::string& whole) -> Status {
    CAIRN_TRY(Descriptor one, hold_partial(whole));
    held.push_back(std::move(one));
    return Ok{};
  };
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const std::string text = path.string();
    CAIRN_TRY(
        hold(text.ends_with(kPartial) ? text.substr(0, text.size() - kPartial.size()) : text));
    return held;
  }
  for (auto entry = fs::recursive_directory_iterator(path, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string file = entry->path().string();
    if (!file.ends_with(kChunks)) continue;
    CAIRN_TRY(hold(file.substr(0, file.size() - kChunks.size())));
  }
  return held;
}

}  // namespace

bool is_alias(std::string_view name) {
  constexpr size_t kNameBytesMax = 100;
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == ':';
  };
  return !name.empty() && name.size() <= kNameBytesMax && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), is_fine) && !name.ends_with(".gguf") &&
         !is_reference(name);
}

void measure(KeptModel& model) {
  std::error_code error;
  for (const std::string& path : model.paths) {
    const uintmax_t bytes = fs::file_size(path, error);
    if (error) continue;
    model.bytes += bytes;
    const fs::file_time_type written = fs::last_write_time(path, error);
    if (error) continue;
    const auto since = fs::file_time_type::clock::to_sys(written).time_since_epoch();
    const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
    model.modified_seconds = std::max(model.modified_seconds, seconds);
  }
}

std::string to_text(const ModelRecord& record) {
  json::Value files = json::Value::array();
  for (const ModelRecord::File& file : record.files) {
    files.push_back({{"path", file.path},
                     {"url", file.url},
                     {"bytes", file.bytes},
                     {"sha256", file.sha256},
                     {"etag", file.etag},
                     {"declared", file.is_declared}});
  }
  const json::Value value = {{"name", record.name},
                             {"revision", record.revision},
                             {"converted", record.is_converted},
                             {"files", files}};
  return json::to_text(value, {.indent = 2}) + "\n";
}

Result<ModelRecord> parse_record(std::string_view name, std::string_view text) {
  CAIRN_TRY(const json::Value value,
            json::read_value(name, text, {.bytes = kRecordBytesMax, .depth = 8}));
  ModelRecord record{.name = std::string(value.text_at("name").value_or("")),
                     .revision = std::string(value.text_at("revision").value_or("")),
                     .is_converted = value.is_true_at("converted")};
  const json::Value* const files = value.find("files");
  if (record.name.empty() || files == nullptr || !files->is_array()) {
    return fail(ErrorCode::invalid_data, "{}: expected a name and files, found {}", name,
                printable(value.describe()));
  }
  for (const json::Value& entry : files->items()) {
    const json::Value* const bytes = entry.find("bytes");
    const int64_t size = bytes == nullptr ? 0 : bytes->as_integer().value_or(0);
    record.files.push_back({.path = std::string(entry.text_at("path").value_or("")),
                            .url = std::string(entry.text_at("url").value_or("")),
                            .bytes = uint64_t(std::max<int64_t>(size, 0)),
                            .sha256 = sha256_in(entry.text_at("sha256").value_or("")),
                            .etag = std::string(entry.text_at("etag").value_or("")),
                            .is_declared = entry.is_true_at("declared")});
  }
  return record;
}

Result<std::string> ModelFolder::folder_of(const ModelReference& reference) const {
  if (reference.kind == SourceKind::hugging_face) {
    return fmt::format("{}/hf/{}{}{}", path_, reference.repo, reference.revision.empty() ? "" : "@",
                       reference.revision);
  }
  if (reference.kind == SourceKind::ollama) {
    const std::string host =
        reference.host.empty() ? std::string(kDefaultRegistry) : reference.host;
    return fmt::format("{}/ollama/{}/{}", path_, as_segment(host), reference.repo);
  }
  CAIRN_TRY(const WebUrl url, parse_url(reference.repo));
  std::string host = url.origin.substr(url.origin.find("://") + 3);
  const std::string_view usual_port = url.is_secure ? ":443" : ":80";
  if (host.ends_with(usual_port)) host.resize(host.size() - usual_port.size());
  return fmt::format("{}/url/{}", path_, as_segment(host));
}

std::vector<KeptModel> ModelFolder::list() const {
  std::vector<KeptModel> models;
  std::error_code error;
  // A folder that may not be read hides what is in it, and nothing else.
  auto entry =
      fs::recursive_directory_iterator(path_, fs::directory_options::skip_permission_denied, error);
  size_t seen = 0;
  for (; !error && entry != fs::recursive_directory_iterator() && ++seen < kEntriesMax;
       entry.increment(error)) {
    if (auto source = waiting_source(entry->path(), path_)) models.push_back(std::move(*source));
    std::string path = entry->path().string();
    const bool is_partial = path.ends_with(kPartial);
    const std::string whole = is_partial ? path.substr(0, path.size() - kPartial.size()) : path;
    if (is_partial ? !whole.ends_with(".gguf") : !is_first_file(path)) continue;
    std::error_code missing;  // A folder, or a link that leads nowhere, is no model.
    if (!fs::is_regular_file(path, missing)) continue;
    KeptModel model{.keeper = Keeper::cairn, .name = whole, .is_partial = is_partial};
    model.paths = is_partial ? std::vector<std::string>{path} : parts_of(path);
    name_by_path(model, fs::path(whole).lexically_relative(path_).string());
    measure(model);
    Result<std::optional<ModelRecord>> record = read_record(path);
    if (!is_partial && record && *record) {
      const ModelRecord& known = **record;
      model.name = known.name;
      if (!known.is_converted && !known.files.empty()) model.sha256 = known.files.front().sha256;
    }
    models.push_back(std::move(model));
  }
  std::sort(models.begin(), models.end(),
            [](const KeptModel& a, const KeptModel& b) { return a.name < b.name; });
  return models;
}

Result<std::optional<ModelRecord>> ModelFolder::read_record(const std::string& first_path) const {
  const std::string path = first_path + ".json";
  Result<std::string> text = read_file(path, kRecordBytesMax);
  if (!text && text.error().code == ErrorCode::not_found) return std::optional<ModelRecord>();
  if (!text) return text.error();
  CAIRN_TRY(ModelRecord record, parse_record(path, *text));
  return std::optional<ModelRecord>(std::move(record));
}

Status ModelFolder::write_record(const std::string& first_path, const ModelRecord& record) const {
  const std::string text = to_text(record);
  return write_file(first_path + ".json", std::as_bytes(std::span(text)));
}

Status ModelFolder::remove(const KeptModel& model) const {
  std::error_code error;
  for (const std::string& path : model.paths) {
    const std::string relative = fs::path(path).lexically_relative(path_).string();
    if (relative.empty() || relative.starts_with("..")) {
      return fail(ErrorCode::invalid_argument, "{}: expected a file in {}", path, path_);
    }
  }
  std::vector<Descriptor> held;
  for (const std::string& path : model.paths) {
    CAIRN_TRY(std::vector<Descriptor> more, hold_all(path));
    for (Descriptor& one : more) held.push_back(std::move(one));
  }
  for (const std::string& path : model.paths) {
    if (model.is_partial && fs::is_directory(path, error)) {
      fs::remove_all(path, error);
      if (error) return fail(ErrorCode::io, "{}: cannot remove: {}", path, error.message());
      continue;
    }
    const std::string whole =
        model.is_partial ? path.substr(0, path.size() - kPartial.size()) : path;
    for (const std::string_view ending : {"", ".json", ".partial", ".partial.chunks"}) {
      if (model.is_partial && !ending.starts_with(kPartial)) continue;
      fs::remove(whole + std::string(ending), error);
      if (error) return fail(ErrorCode::io, "{}: cannot remove: {}", whole, error.message());
    }
  }
  // Up to the folder itself, as long as nothing else is in them.
  for (fs::path above = fs::path(model.paths.front()).parent_path();
       above.string().size() > path_.size() && fs::remove(above, error);
       above = above.parent_path()) {
  }
  return Ok{};
}

Result<std::optional<std::string>> ModelFolder::alias(std::string_view name) const {
  if (!is_alias(name)) return std::optional<std::string>();
  Result<std::string> text = read_file(fmt::format("{}/aliases/{}", path_, name), kAliasBytesMax);
  if (!text && text.error().code == ErrorCode::not_found) return std::optional<std::string>();
  if (!text) return text.error();
  std::string target = *text;
  target.resize(std::min(target.find('\n'), target.size()));
  return std::optional(std::move(target));
}

std::vector<std::pair<std::string, std::string>> ModelFolder::aliases() const {
  std::vector<std::pair<std::string, std::string>> all;
  std::error_code error;
  auto entry = fs::directory_iterator(path_ + "/aliases", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    Result<std::optional<std::string>> target = alias(name);
    if (target && *target) all.emplace_back(name, **target);
  }
  std::sort(all.begin(), all.end());
  return all;
}

Status ModelFolder::set_alias(std::string_view name, std::string_view target) const {
  if (!is_alias(name)) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a name of letters, digits, dots, colons and hyphens that is no file "
                "and no reference",
                printable(name));
  }
  const std::string path = fmt::format("{}/aliases/{}", path_, name);
  CAIRN_TRY(make_folders_for(path));
  const std::string text = fmt::format("{}\n", target);
  return write_file(path, std::as_bytes(std::span(text)));
}

Result<bool> ModelFolder::remove_alias(std::string_view name) const {
  if (!is_alias(name)) return false;
  std::error_code error;
  const bool was_there = fs::remove(fmt::format("{}/aliases/{}", path_, name), error);
  if (error) {
    return fail(ErrorCode::io, "{}: cannot remove the alias: {}", name, error.message());
  }
  return was_there;
}

Result<std::optional<Preset>> ModelFolder::preset(std::string_view name) const {
  if (!is_alias(name)) return std::optional<Preset>();
  const std::string path = fmt::format("{}/presets/{}.toml", path_, name);
  Result<std::string> text = read_file(path, kPresetBytesMax);
  if (!text && text.error().code == ErrorCode::not_found) return std::optional<Preset>();
  if (!text) return text.error();
  CAIRN_TRY(Preset preset, parse_preset(path, *text));
  return std::optional(std::move(preset));
}

Result<std::optional<std::string>> ModelFolder::model_of(std::string_view name) const {
  CAIRN_TRY(std::optional<std::string> target, alias(name));
  if (target) return target;
  CAIRN_TRY(std::optional<Preset> preset, this->preset(name));
  if (preset && !preset->model.empty()) target = std::move(preset->model);
  return target;
}

std::vector<std::string> ModelFolder::preset_names() const {
  std::vector<std::string> names;
  std::error_code error;
  auto entry = fs::directory_iterator(path_ + "/presets", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().stem().string();
    if (entry->path().extension() == ".toml" && is_alias(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cairn::hub
