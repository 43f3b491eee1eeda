// Where a model comes from: its names, its files, and what is known of them without loading it.
// Thread-safe: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/default_context.h"
#include "gguf/gguf.h"

namespace cairn::serve {

// What a model's file says. Of a file that cannot be read, nothing.
struct ModelCard {
  std::string architecture, quantization;  // The latter: the type of most of its bytes.
  int64_t parameter_count = 0;
  uint64_t file_bytes = 0;     // Of all parts.
  int32_t context_tokens = 0;  // That it was trained for.
  int32_t vocabulary_count = 0, width = 0;
  bool makes_text = true;  // Else vectors, or scores.

  static ModelCard of(const gguf::File& file);
};

struct ModelSource {
  std::string name;                  // By which clients know it.
  std::string path;                  // Of its file or of the first part; empty: the built-in model.
  std::vector<std::string> parts;    // Paths: one, or those of a split model in their order.
  std::vector<std::string> digests;  // The SHA-256 that a part must have, in hex; empty: any.
  std::vector<std::string> aliases = {};  // Further names.
  int64_t modified = 0;                   // The file's time of change, in seconds since 1970.
  ModelCard card = {};
  // Of its context, once it is loaded: as the engine's, or what the server was told.
  int32_t context_tokens_max = kDefaultContextMax;
};

// The model of this file, of which nothing is read.
ModelSource plain_source(std::string name, const std::string& path);
// The model of this file. One that cannot be read has an empty card, and a warning is written.
ModelSource source_of(std::string name, const std::string& path);

// The models of a folder and of the folders in it: files NAME.gguf, those of a split model as one,
// named NAME or FOLDER/NAME, in the order of their names. Files of adapters and of what belongs to
// another model (mmproj) are left out. Errors: io; not_found, where there is none.
Result<std::vector<ModelSource>> models_in(const std::string& folder);

// "HEX" for the only model, else "NAME=HEX", by a model's name or the name of a file: notes that
// this is its digest. Errors: invalid_argument: no such file, no SHA-256, a model of several files
// where one of them is not named.
Status expect_digest(const std::string& text, std::vector<ModelSource>& models);

// "NAME=TARGET": another name for a model, by name, or for the model of a file, which is added.
// Errors: invalid_argument: a name twice; neither a model nor a file.
Status add_alias(const std::string& text, std::vector<ModelSource>& models);

}  // namespace cairn::serve
