// The folder of models that cairn has fetched, and the only code that changes it. Below it:
//   hf/OWNER/REPO[@REVISION]/FILE, ollama/HOST/NAMESPACE/NAME/TAG.gguf, url/HOST/PATH,
//   the record of each model beside its first file (FILE.json), aliases/NAME, and
//   presets/NAME.toml, which people write.
// Other programs may read it, and people may put files in it. Thread rule: one thread; processes
// may share it: whatever appears, appears whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "hub/kept_model.h"
#include "hub/model_reference.h"
#include "hub/preset.h"

namespace cairn::hub {

// Beside what is converted from it: a folder for safetensors, in which one of the model's name has
// the files.
constexpr std::string_view kSourceFolder = "safetensors";

// Where a model came from, and what its files were when they were checked.
struct ModelRecord {
  std::string name;           // Its reference.
  std::string revision;       // As RemoteModel's.
  bool is_converted = false;  // The files are the source's, not those that are here.
  struct File {
    std::string path;  // Within the reference's folder.
    std::string url;
    uint64_t bytes = 0;
    std::string sha256;
    std::string etag;          // Of what has no declared digest; empty: the source gave none.
    bool is_declared = false;  // The source had said the digest before.
  };
  std::vector<File> files;
};

std::string to_text(const ModelRecord& record);
Result<ModelRecord> parse_record(std::string_view name, std::string_view text);

class ModelFolder {
 public:
  // REQUIRES of what follows: the path is not empty. Makes nothing yet.
  explicit ModelFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Of the files of a reference. Errors: invalid_argument, for URLs that are none.
  Result<std::string> folder_of(const ModelReference& reference) const;

  // With those that are only begun; of safetensors that are not converted yet the folder is named.
  std::vector<KeptModel> list() const;

  // Of the model whose first file has this path; nothing where there is none.
  Result<std::optional<ModelRecord>> read_record(const std::string& first_path) const;
  Status write_record(const std::string& first_path, const ModelRecord& record) const;
  // With its record, its unfinished files, and folders that are empty then. Errors: io;
  // invalid_argument: it is not in this folder; cancelled: another process is fetching it.
  Status remove(const KeptModel& model) const;

  // What an alias stands for: a reference or an absolute path; nothing where there is none.
  Result<std::optional<std::string>> alias(std::string_view name) const;
  std::vector<std::pair<std::string, std::string>> aliases() const;
  // Errors: invalid_argument: not a name for one.
  Status set_alias(std::string_view name, std::string_view target) const;
  // Whether there was one.
  Result<bool> remove_alias(std::string_view name) const;
  // The preset of this name; nothing where there is none. Errors: those of parse_preset(); io.
  Result<std::optional<Preset>> preset(std::string_view name) const;
  std::vector<std::string> preset_names() const;  // Ascending.
  // The model that a name means: what an alias stands for, else the model of a preset; nothing
  // where neither is there. Errors: those of both.
  Result<std::optional<std::string>> model_of(std::string_view name) const;

 private:
  std::string path_;
};

// A plain word, such as "llama3.2:1b": no slash, no ".gguf" at its end, no reference.
bool is_alias(std::string_view name);

// Size and date of the files; those that are not there count nothing.
void measure(KeptModel& model);

}  // namespace cairn::hub
