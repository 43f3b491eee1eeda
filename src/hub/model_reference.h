// How people name a model that may be elsewhere: hf:OWNER/REPO[@REVISION][:PICK],
// ollama:[HOST/][NAMESPACE/]NAME[:TAG], or a URL. Only the form is known here, not what exists.
// Names from here can be parts of paths: no segment is empty, begins with a dot or has a slash.
// Thread-safe: pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cairn::hub {

enum class SourceKind { hugging_face, ollama, url };

struct ModelReference {
  SourceKind kind = SourceKind::hugging_face;
  std::string host = {};      // Of ollama: a registry's; empty: the configured one.
  std::string repo = {};      // OWNER/REPO; of ollama NAMESPACE/NAME; of a URL the URL.
  std::string revision = {};  // Of hugging_face: a branch, tag or commit; empty: the main branch.
  std::string pick = {};      // A file or a quantization; of ollama the tag. Empty: what is usual.
};

// Whether the text is a reference by its first letters ("hf:", "ollama:", "https://"), whatever
// follows. A path of a file never is one.
bool is_reference(std::string_view text);

// Errors: invalid_argument, naming the form that is expected.
Result<ModelReference> parse_reference(std::string_view text);

// The same, and OWNER/REPO[@REVISION][:PICK] without "hf:", as `cairn pull` takes it.
Result<ModelReference> parse_pull_reference(std::string_view text);

// By which it is known from then on: of a URL without its query, which may have a secret.
std::string to_text(const ModelReference& reference);

// Whether it can be one part of a path that a stranger named: printable, not hidden, no slash.
bool is_safe_segment(std::string_view segment);
// All of the parts between slashes.
bool is_safe_path(std::string_view path);

}  // namespace cairn::hub
