// `cairn template`: shows a model's chat template, or renders messages with it, so that a person
// sees the prompt that the model gets. What comes from files is made harmless for a terminal.
// Thread rule: pure but for the printing.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cairn::cli {

struct TemplateOptions {
  std::string path;           // A GGUF model, or the template's own source (any other file).
  std::string messages_path;  // JSON; empty: the template itself is shown.
  bool marks = false;         // Sets what the user wrote between ⟦ and ⟧.
};

// A chat template's source and the texts of the tokens that it may print.
struct TemplateSource {
  std::string source;
  std::string bos_token;
  std::string eos_token;
};

// Errors: not_found (also: a model without a template), io, invalid_data, no_room.
Result<TemplateSource> read_template(const std::string& path);

// The text to show, not yet made harmless.
Result<std::string> template_report(const TemplateOptions& options);

}  // namespace cairn::cli
