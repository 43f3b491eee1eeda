// Folders, names of files, digests and aliases.
#include "serve/models/model_source.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "engine/pooling.h"
#include "gguf/split.h"
#include "gguf/summary.h"

namespace cairn::serve {

namespace {

namespace fs = std::filesystem;

constexpr size_t kModelsMax = 4096;

std::string stem_of(const std::string& path) {
  const auto split = gguf::parse_split_name(path);
  return split ? fs::path(split->stem).filename().string() : fs::path(path).stem().string();
}

int64_t modified_of(const std::string& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return 0;
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

bool is_later_part(const std::string& path) {
  const auto split = gguf::parse_split_name(path);
  return split && split->part != 1;
}

// No adapter, projector or the like.
bool is_model(const gguf::File& file) {
  auto type = file.fields().get_or<std::string_view>("general.type", "model");
  auto architecture = file.fields().get_or<std::string_view>("general.architecture", "");
  if (type && *type != "model") return false;
  return !architecture || *architecture != "clip";
}

// Without a card.

// What cannot be read is listed nevertheless: whoever asks for it is told why.
void add_file(std::string name, const std::string& path, std::vector<ModelSource>& models) {
  ModelSource source = plain_source(std::move(name), path);
  if (Result<gguf::File> file = gguf::File::open(path)) {
    if (!is_model(*file)) return;
    source.card = ModelCard::of(*file);
  } else {
    log::warning("{}", file.error().message);
  }
  models.push_back(std::move(source));
}

// The files of one folder; `prefix`: before their names.
Status add_folder(const fs::path& folder, const std::string& prefix,
                  std::vector<ModelSource>& models) {
  std::error_code error;
  fs::directory_iterator files(folder, fs::directory_options::skip_permission_denied, error);
  if (error) return fail(ErrorCode::io, "{}: {}", folder.string(), error.message());
  for (; files != fs::directory_iterator(); files.increment(error)) {
    const std::string name = files->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code missing;
    if (files->is_directory(missing) && prefix.empty()) {
      // What lies in it and cannot be listed is somebody else's.
      const Status added = add_folder(files->path(), name + "/", models);
      if (!added && added.error().code != ErrorCode::io) return added.error();
    }
    const std::string path = files->path().string();
    const bool is_file = name.ends_with(".gguf") && files->is_regular_file(missing);
    if (!is_file || is_later_part(path)) continue;
    if (models.size() == kModelsMax) {
      return fail(ErrorCode::no_room, "{}: expected at most {} models, found more", folder.string(),
                  kModelsMax);
    }
    add_file(prefix + stem_of(path), path, models);
  }
  return Ok{};
}

ModelSource* find_model(std::string_view name, std::vector<ModelSource>& models) {
  for (ModelSource& model : models) {
    const auto& aliases = model.aliases;
    if (model.name == name) return &model;
    if (std::find(aliases.begin(), aliases.end(), name) != aliases.end()) return &model;
  }
  return nullptr;
}

}  // namespace

ModelSource plain_source(std::string name, const std::string& path) {
  ModelSource source{.name = std::move(name), .path = path, .parts = {path}, .digests = {}};
  if (const auto split = gguf::parse_split_name(path)) {
    source.parts.clear();
    for (uint32_t part = 1; part <= split->part_count; ++part) {
      source.parts.push_back(gguf::split_path(split->stem, part, split->part_count));
    }
  }
  source.digests.resize(source.parts.size());
  source.modified = modified_of(path);
  return source;
}

ModelCard ModelCard::of(const gguf::File& file) {
  const gguf::Summary summary = gguf::summarise(file);
  ModelCard card{.architecture = summary.architecture,
                 .parameter_count = int64_t(summary.weight_count),
                 .file_bytes = file.file_bytes()};
  if (summary.tokenizer) card.vocabulary_count = int32_t(summary.tokenizer->token_count);
  const auto most = std::max_element(
      summary.types.begin(), summary.types.end(),
      [](const gguf::TypeShare& a, const gguf::TypeShare& b) { return a.bytes < b.bytes; });
  if (most != summary.types.end()) card.quantization = gguf::type_name(most->type_id);
  if (Result<gguf::Metadata> meta = file.metadata()) {
    if (auto context = meta->count_or("context_length", 0)) {
      card.context_tokens = *context;
    }
    if (auto width = meta->count_or("embedding_length", 0)) card.width = *width;
  }
  Result<std::optional<Pooling>> pooling = pooling_of(file);
  card.makes_text = !pooling || !*pooling;
  return card;
}

ModelSource source_of(std::string name, const std::string& path) {
  ModelSource source = plain_source(std::move(name), path);
  Result<gguf::File> file = gguf::File::open(path);
  if (file) {
    source.card = ModelCard::of(*file);
  } else {
    log::warning("{}", file.error().message);
  }
  return source;
}

Result<std::vector<ModelSource>> models_in(const std::string& folder) {
  std::vector<ModelSource> models;
  CAIRN_TRY(add_folder(folder, "", models));
  if (models.empty()) {
    return fail(ErrorCode::not_found,
                "{}: expected GGUF files in it or in its folders, found none; `cairn convert DIR "
                "-o FILE` makes one of a folder of safetensors",
                folder);
  }
  std::sort(models.begin(), models.end(),
            [](const ModelSource& a, const ModelSource& b) { return a.name < b.name; });
  return models;
}

Status expect_digest(const std::string& text, std::vector<ModelSource>& models) {
  const size_t equals = text.rfind('=');
  const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
  std::string hex = equals == std::string::npos ? text : text.substr(equals + 1);
  for (char& c : hex) c = c >= 'A' && c <= 'F' ? char(c + 'a' - 'A') : c;
  if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return fail(ErrorCode::invalid_argument,
                "--expect-sha256: expected 64 digits of a SHA-256, found \"{}\"", hex);
  }
  std::vector<std::string*> meant;
  for (ModelSource& model : models) {
    const bool is_named = name.empty() ? models.size() == 1 : find_model(name, models) == &model;
    for (size_t part = 0; part < model.parts.size(); ++part) {
      const std::string file = fs::path(model.parts[part]).filename().string();
      if (is_named || (!name.empty() && file == name)) meant.push_back(&model.digests[part]);
    }
  }
  if (meant.size() != 1) {
    return fail(
        ErrorCode::invalid_argument,
        "--expect-sha256: expected NAME=HEX with the name of a model of one file, or of one "
        "file, found \"{}\", which is that of {} files",
        name, meant.size());
  }
  *meant.front() = hex;
  return Ok{};
}

Status add_alias(const std::string& text, std::vector<ModelSource>& models) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    return fail(ErrorCode::invalid_argument,
                "--alias: expected NAME=MODEL where there are several models, found \"{}\"", text);
  }
  const std::string name = text.substr(0, equals), target = text.substr(equals + 1);
  if (find_model(name, models) != nullptr) {
    return fail(ErrorCode::invalid_argument,
                "--alias: expected a new name, found \"{}\", which is "
                "that of a model",
                name);
  }
  if (ModelSource* const model = find_model(target, models)) {
    model->aliases.push_back(name);
    return Ok{};
  }
  std::error_code error;
  if (fs::is_regular_file(target, error)) {
    models.push_back(source_of(name, target));
    return Ok{};
  }
  return fail(ErrorCode::invalid_argument,
              "--alias: expected the name of a model or of a file behind \"{}=\", found \"{}\"",
              name, target);
}

}  // namespace cairn::serve
