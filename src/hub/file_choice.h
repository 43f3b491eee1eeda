// Which files of a repository or a folder are the model that was meant: by a file's name, by a
// quantization, or the usual one where nothing is said. Projectors for images ("mmproj") and other
// files that are no models are left out, by their names. Knows no network. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cairn::hub {

// A file as a hub, or a folder, lists it.
struct ListedFile {
  std::string path;    // Within the repository, with slashes.
  uint64_t bytes = 0;  // 0: not said.
  std::string sha256;  // In hex; empty: not said.
};

struct FileChoice {
  std::vector<size_t> files;          // Of a split model all parts, the first one first.
  std::vector<std::string> left_out;  // Projectors: pictures are not read.
};

// `name`: of the repository, for errors. `pick`: see ModelReference; empty: the only model, else
// its Q4_K_M, else its Q8_0. Errors: not_found, with the nearest names; invalid_argument where
// several are meant or the pick is no model; invalid_data where parts are missing.
Result<FileChoice> choose_gguf(std::string_view name, std::span<const ListedFile> files,
                               std::string_view pick);

// Whether any file is a model in GGUF.
bool has_gguf(std::span<const ListedFile> files);

// Of a repository without a GGUF file, what `cairn convert` reads; empty where it has no
// safetensors or no config.json.
std::vector<size_t> choose_folder(std::span<const ListedFile> files);

}  // namespace cairn::hub
