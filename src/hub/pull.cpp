// A reference is looked for with the same rules wherever files are listed: here, on disks, and at
// the hub.
#include "hub/pull.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "hub/file_choice.h"
#include "hub/model_folder.h"
#include "hub/other_folders.h"
#include "hub/partial_file.h"
#include "hub/remote_model.h"

namespace cairn::hub {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSourceRecord = "source";

std::vector<KeptModel> kept_by_others(const HubSettings& settings) {
  std::vector<KeptModel> models;
  const auto add = [&](std::vector<KeptModel> more) {
    for (KeptModel& model : more) models.push_back(std::move(model));
  };
  if (!settings.hub_cache.empty()) add(in_hub_cache(settings.hub_cache));
  if (!settings.llama_cache.empty()) add(in_llama_cache(settings.llama_cache));
  for (const std::string& folder : settings.lm_studio_folders) add(in_lm_studio(folder));
  for (const std::string& folder : settings.ollama_folders) add(in_ollama(folder));
  return models;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return out;
}

// Of a model of llama.cpp's without a URL beside it, the file's name as it may be in the
// repository; nothing where it is of another one.
std::optional<std::string> file_within(const KeptModel& model, const std::string& repo) {
  if (!model.repo.empty()) {
    if (lower(model.repo) != lower(repo)) return std::nullopt;
    return model.file;
  }
  if (model.keeper != Keeper::llama_cpp) return std::nullopt;
  std::string prefix = repo + "_";
  std::replace(prefix.begin(), prefix.end(), '/', '_');
  if (!lower(model.file).starts_with(lower(prefix))) return std::nullopt;
  return model.file.substr(prefix.size());
}

// Among models of one keeper. Of other programs only what they have from the main branch.
std::optional<KeptModel> choose_kept(const std::vector<KeptModel>& models,
                                     const ModelReference& reference) {
  std::vector<ListedFile> files;
  std::vector<const KeptModel*> owners;
  for (const KeptModel& model : models) {
    const auto file = file_within(model, reference.repo);
    if (!file || model.is_partial) continue;
    // Parts are looked for by their number; here the model is one.
    for (const std::string& path : model.paths) {
      const size_t folder = file->rfind('/');
      const std::string base = fs::path(path).filename().string();
      const bool is_first = path == model.paths.front();
      files.push_back({.path = is_first               ? *file
                               : folder == file->npos ? base
                                                      : file->substr(0, folder + 1) + base,
                       .bytes = 0,
                       .sha256 = {}});
      owners.push_back(&model);
    }
  }
  Result<FileChoice> choice = choose_gguf(reference.repo, files, reference.pick);
  if (!choice) return std::nullopt;
  return *owners[choice->files.front()];
}

std::optional<KeptModel> find_hub_model(const HubSettings& settings,
                                        const ModelReference& reference) {
  const std::string at =
      reference.revision.empty() ? reference.repo : reference.repo + "@" + reference.revision;
  const std::string prefix = fmt::format("hf:{}:", lower(at));
  std::vector<std::vector<KeptModel>> keepers(1);
  if (!settings.folder.empty()) {
    for (KeptModel& model : ModelFolder(settings.folder).list()) {
      if (lower(model.name).starts_with(prefix)) keepers[0].push_back(std::move(model));
    }
  }
  if (reference.revision.empty()) {
    for (KeptModel& model : kept_by_others(settings)) {
      if (model.keeper == Keeper::ollama) continue;
      if (keepers.size() == 1 || keepers.back().front().keeper != model.keeper) {
        keepers.emplace_back();
      }
      keepers.back().push_back(std::move(model));
    }
  }
  for (const std::vector<KeptModel>& models : keepers) {
    if (auto found = choose_kept(models, reference)) return found;
  }
  return std::nullopt;
}

std::optional<KeptModel> find_by_name(const HubSettings& settings, const std::string& name) {
  for (KeptModel& model : list_models(settings)) {
    if (model.name == name && !model.is_partial) return std::move(model);
  }
  return std::nullopt;
}

// One fetch: what is the same for all of its files.
class Pull {
 public:
  Pull(const HubSettings* settings, const PullOptions* options, Web* web, RemoteModel remote)
      : settings_(*settings),
        options_(*options),
        web_(*web),
        remote_(std::move(remote)),
        folder_(settings->folder) {}

  Result<Pulled> run();

 private:
  std::string path_of(size_t file) const { return base_ + remote_.paths[file]; }
  Result<bool> is_recorded(const std::optional<ModelRecord>& record) const;
  Result<bool> is_unchanged(const RemoteFile& there, const ModelRecord::File& here) const;
  Result<bool> is_kept(const KeptModel& model) const;
  Result<std::optional<Pulled>> find_there();
  Status check_room() const;
  Status fetch(size_t file, Pulled& pulled, ModelRecord& record);
  void note(const std::string& line) const {
    if (options_.on_note) options_.on_note(line);
  }

  const HubSettings& settings_;
  const PullOptions& options_;
  Web& web_;
  RemoteModel remote_;
  ModelFolder folder_;
  std::string base_;            // The reference's folder, with a slash.
  std::string converted_path_;  // Of a folder's GGUF file.
};

// By the digest that is declared; where none is, by what the server says of it now.
Result<bool> Pull::is_unchanged(const RemoteFile& there, const ModelRecord::File& here) const {
  if (!there.sha256.empty()) return there.sha256 == here.sha256;
  if (here.etag.empty()) return false;
  CAIRN_TRY(const WebUrl url, parse_url(there.url));
  CAIRN_TRY(const FileHead head, ask_head(web_, url, remote_.credential));
  const int status = head.reply.head.status;
  if (status != 200 && status != 206) return remote_.explain(head.reply);
  return head.identity == here.etag && (head.bytes == 0 || head.bytes == here.bytes);
}

// Whether what was fetched then is what the source has now.
Result<bool> Pull::is_recorded(const std::optional<ModelRecord>& record) const {
  if (!record) return false;
  if (record->is_converted) return record->revision == remote_.revision;
  if (record->files.size() != remote_.files.size()) return false;
  for (size_t i = 0; i < remote_.files.size(); ++i) {
    const RemoteFile& there = remote_.files[i];
    const ModelRecord::File& here = record->files[i];
    struct stat status = {};
    const bool is_whole =
        ::stat(path_of(i).c_str(), &status) == 0 && uint64_t(status.st_size) == here.bytes;
    if (!is_whole) return false;
    CAIRN_TRY(const bool is_same, is_unchanged(there, here));
    if (!is_same) return false;
  }
  return true;
}

// Another program's file is believed when its bytes are what the source declares.
Result<bool> Pull::is_kept(const KeptModel& model) const {
  if (model.paths.size() != remote_.files.size()) return false;
  for (size_t i = 0; i < model.paths.size(); ++i) {
    const RemoteFile& there = remote_.files[i];
    struct stat status = {};
    if (there.sha256.empty() || ::stat(model.paths[i].c_str(), &status) != 0 ||
        uint64_t(status.st_size) != there.bytes) {
      return false;
    }
  }
  for (size_t i = 0; i < model.paths.size(); ++i) {
    CAIRN_TRY(const std::string digest,
              sha256_of_file(model.paths[i], [&](uint64_t done, uint64_t total) {
                if (options_.on_check) options_.on_check(model.paths[i], done, total);
              }));
    if (digest != remote_.files[i].sha256) return false;
  }
  return true;
}

Result<std::optional<Pulled>> Pull::find_there() {
  Pulled pulled{.name = to_text(remote_.reference)};
  const std::string first = remote_.is_folder ? converted_path_ : path_of(0);
  std::error_code error;
  CAIRN_TRY(const std::optional<ModelRecord> record, folder_.read_record(first));
  CAIRN_TRY(const bool is_there, is_recorded(record));
  if (is_there && fs::exists(first, error)) {
    pulled.path = first;
    pulled.sha256 = record->is_converted ? "" : record->files.front().sha256;
    pulled.was_kept_by = Keeper::cairn;
    return std::optional(pulled);
  }
  if (remote_.is_folder || !remote_.reference.revision.empty()) return std::optional<Pulled>();
  for (const KeptModel& model : kept_by_others(settings_)) {
    const bool is_ollama = model.keeper == Keeper::ollama;
    const auto file = is_ollama ? std::nullopt : file_within(model, remote_.reference.repo);
    const bool is_meant = is_ollama ? model.sha256 == remote_.files.front().sha256
                                    : file && *file == remote_.paths.front();
    if (!is_meant) continue;
    CAIRN_TRY(const bool is_same, is_kept(model));
    if (!is_same) continue;
    pulled.path = model.paths.front();
    pulled.sha256 = remote_.files.front().sha256;
    pulled.was_kept_by = model.keeper;
    return std::optional(pulled);
  }
  return std::optional<Pulled>();
}

// For all files together, before the first is begun.
Status Pull::check_room() const {
  uint64_t missing = 0;
  for (size_t i = 0; i < remote_.files.size(); ++i) {
    struct stat whole = {}, partial = {};
    const uint64_t bytes = remote_.files[i].bytes;
    if (::stat(path_of(i).c_str(), &whole) == 0 && uint64_t(whole.st_size) == bytes) continue;
    const bool is_begun = ::stat((path_of(i) + ".partial").c_str(), &partial) == 0;
    const uint64_t held = is_begun ? uint64_t(partial.st_blocks) * 512 : 0;
    missing += bytes - std::min(bytes, held);
  }
  CAIRN_TRY(make_folders_for(path_of(0)));
  if (remote_.is_folder) missing *= 2;  // What is written of it is no larger.
  struct statvfs disk = {};
  if (::statvfs(base_.c_str(), &disk) != 0) return Ok{};  // Writing will say why.
  const uint64_t free_bytes = uint64_t(disk.f_bavail) * disk.f_frsize;
  if (missing <= free_bytes) return Ok{};
  return fail(ErrorCode::no_room, "{}: expected {} free on the disk of {}, found {}",
              to_text(remote_.reference), show_bytes(missing), settings_.folder,
              show_bytes(free_bytes));
}

Status Pull::fetch(size_t file, Pulled& pulled, ModelRecord& record) {
  const RemoteFile& there = remote_.files[file];
  const std::string path = path_of(file);
  const std::string shown = remote_.files.size() == 1 ? there.name
                                                      : fmt::format("{} ({} of {})", there.name,
                                                                    file + 1, remote_.files.size());
  const auto check = [&](uint64_t done, uint64_t total) {
    if (options_.on_check) options_.on_check(shown, done, total);
  };
  struct stat status = {};
  std::string digest, etag;
  uint64_t bytes = there.bytes;
  // A run that was killed may have finished some of the files.
  const bool may_be_there = !there.sha256.empty() && ::stat(path.c_str(), &status) == 0 &&
                            uint64_t(status.st_size) == there.bytes;
  if (may_be_there) {
    CAIRN_TRY(digest, sha256_of_file(path, check));
  }
  if (!may_be_there || digest != there.sha256) {
    const DownloadOptions download_options{.connections_max = options_.connections_max,
                                           .chunk_bytes = options_.chunk_bytes,
                                           .wants_gguf = path.ends_with(".gguf"),
                                           .on_progress =
                                               [&](uint64_t done, uint64_t total) {
                                                 if (options_.on_progress)
                                                   options_.on_progress(shown, done, total);
                                               },
                                           .on_check = check};
    CAIRN_TRY(const Downloaded done,
              download(web_, there, remote_.credential, path, download_options, remote_.explain));
    pulled.fetched_bytes += done.bytes - done.resumed_bytes;
    pulled.resumed_bytes += done.resumed_bytes;
    digest = done.sha256;
    if (there.sha256.empty()) etag = done.identity;
    bytes = done.bytes;
  }
  CAIRN_TRY(const WebUrl url, parse_url(there.url));
  record.files.push_back({.path = remote_.paths[file],
                          .url = without_query(url),
                          .bytes = bytes,
                          .sha256 = digest,
                          .etag = etag,
                          .is_declared = !there.sha256.empty()});
  return Ok{};
}

Result<Pulled> Pull::run() {
  for (const std::string& name : remote_.left_out) {
    note(fmt::format("{}: left out, since pictures and the like are not read", printable(name)));
  }
  CAIRN_TRY(base_, folder_.folder_of(remote_.reference));
  if (remote_.is_folder) {
    const std::string& repo = remote_.reference.repo;
    remote_.reference.pick = repo.substr(repo.find('/') + 1) + ".gguf";
    converted_path_ = base_ + "/" + remote_.reference.pick;
    base_ += fmt::format("/{}/{}/", kSourceFolder, repo.substr(repo.find('/') + 1));
  } else {
    base_ += "/";
  }
  CAIRN_TRY(std::optional<Pulled> there, find_there());
  if (there) return std::move(*there);
  CAIRN_TRY(check_room());
  Pulled pulled{.name = to_text(remote_.reference)};
  ModelRecord record{
      .name = pulled.name, .revision = remote_.revision, .is_converted = remote_.is_folder};
  uint64_t bytes = 0;
  for (const RemoteFile& file : remote_.files) bytes += file.bytes;
  note(fmt::format("{}: {}", pulled.name,
                   bytes == 0 ? "fetching" : "fetching " + show_bytes(bytes)));
  for (size_t file = 0; file < remote_.files.size(); ++file) {
    CAIRN_TRY(fetch(file, pulled, record));
  }
  pulled.sha256 = record.files.front().sha256;
  pulled.is_folder = remote_.is_folder;
  pulled.path = remote_.is_folder ? base_ : path_of(0);
  pulled.converted_path = converted_path_;
  // Of a folder it waits beside the files until they are converted.
  CAIRN_TRY(folder_.write_record(
      remote_.is_folder ? base_ + std::string(kSourceRecord) : pulled.path, record));
  return pulled;
}

}  // namespace

std::vector<KeptModel> list_models(const HubSettings& settings) {
  std::vector<KeptModel> models;
  if (!settings.folder.empty()) models = ModelFolder(settings.folder).list();
  for (KeptModel& model : kept_by_others(settings)) models.push_back(std::move(model));
  return models;
}

std::optional<KeptModel> find_kept(const HubSettings& settings, const ModelReference& reference) {
  if (reference.kind == SourceKind::hugging_face) return find_hub_model(settings, reference);
  return find_by_name(settings, to_text(reference));
}

Result<Pulled> pull(const HubSettings& settings, const ModelReference& reference,
                    const PullOptions& options) {
  if (settings.folder.empty()) {
    return fail(ErrorCode::not_found,
                "CAIRN_MODELS: expected a folder for models, found neither it nor HOME set");
  }
  WebOptions web_options = options.web;
  web_options.transfer.authority_path = settings.authority_path;
  CAIRN_TRY(const std::unique_ptr<Web> web, Web::make(web_options));
  CAIRN_TRY(RemoteModel remote,
            find_model(*web, settings, reference, {.takes_folder = options.takes_folder}));
  return Pull(&settings, &options, web.get(), std::move(remote)).run();
}

Status finish_conversion(const HubSettings& settings, const Pulled& pulled, bool keeps_source) {
  const ModelFolder folder(settings.folder);
  const std::string source = pulled.path + std::string(kSourceRecord);
  CAIRN_TRY(const std::optional<ModelRecord> record, folder.read_record(source));
  if (!record) return fail(ErrorCode::not_found, "{}.json: expected a record, found none", source);
  CAIRN_TRY(folder.write_record(pulled.converted_path, *record));
  std::error_code error;
  if (!keeps_source) {
    fs::remove_all(pulled.path, error);
    std::error_code others;  // Of another revision, perhaps.
    fs::remove(fs::path(pulled.path).parent_path().parent_path(), others);
  }
  if (!error) return Ok{};
  return fail(ErrorCode::io, "{}: cannot remove: {}", pulled.path, error.message());
}

}  // namespace cairn::hub
