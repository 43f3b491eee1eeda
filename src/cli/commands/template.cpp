// Reads, renders, prints.
#include "cli/commands/template.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "base/printable.h"
#include "chat/chat_input.h"
#include "cli/commands/commands.h"
#include "cli/exit_codes.h"
#include "gguf/gguf.h"
#include "gguf/value.h"

namespace cairn::cli {
namespace {

constexpr size_t kFileBytesMax = 32u << 20;

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::not_found, "{}: expected a file that can be read", path);
  std::string text;
  char buffer[65536];
  while (file.read(buffer, sizeof buffer) || file.gcount() > 0) {
    text.append(buffer, size_t(file.gcount()));
    if (text.size() > kFileBytesMax) {
      return fail(ErrorCode::no_room, "{}: expected at most {} bytes, found more", path,
                  kFileBytesMax);
    }
  }
  return text;
}

bool is_gguf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "GGUF";
}

std::string string_field(const gguf::File& file, std::string_view key) {
  const gguf::Value* field = file.fields().find(key);
  if (field == nullptr) return {};
  return std::string(gguf::string_in(*field).value_or(std::string_view()));
}

// The text of the token whose id stands under the key.
std::string token_text(const gguf::File& file, std::string_view key) {
  const gguf::Value* id = file.fields().find(key);
  const gguf::Value* tokens = file.fields().find("tokenizer.ggml.tokens");
  if (id == nullptr || tokens == nullptr || !tokens->is_array() ||
      tokens->element != gguf::ValueType::string) {
    return {};
  }
  const auto wanted = gguf::unsigned_in(*id);
  uint64_t index = 0;
  for (const std::string_view token : gguf::Strings(*tokens)) {
    if (wanted == index++) return std::string(token);
  }
  return {};
}

std::string with_marks(const chat::RenderedPrompt& prompt) {
  std::string text;
  for (const jinja::OriginSpan& span : prompt.spans) {
    const std::string part = prompt.text.substr(span.begin, span.end - span.begin);
    text += span.trusted ? part : "⟦" + part + "⟧";
  }
  return text;
}

}  // namespace

Result<TemplateSource> read_template(const std::string& path) {
  TemplateSource source;
  if (!is_gguf(path)) {
    CAIRN_TRY(source.source, read_file(path));
    return source;
  }
  CAIRN_TRY(const gguf::File file, gguf::File::open(path, gguf::OpenMode::inspect));
  source.source = string_field(file, "tokenizer.chat_template");
  if (source.source.empty()) {
    return fail(ErrorCode::not_found, "{}: expected tokenizer.chat_template, found none", path);
  }
  source.bos_token = token_text(file, "tokenizer.ggml.bos_token_id");
  source.eos_token = token_text(file, "tokenizer.ggml.eos_token_id");
  return source;
}

Result<std::string> template_report(const TemplateOptions& options) {
  CAIRN_TRY(const TemplateSource source, read_template(options.path));
  if (options.messages_path.empty()) return source.source;
  CAIRN_TRY(const chat::ChatTemplate chat_template, chat::ChatTemplate::parse(source.source));
  CAIRN_TRY(const std::string json, read_file(options.messages_path));
  CAIRN_TRY(const chat::ChatInput input,
            chat::parse_chat_input(json, source.bos_token, source.eos_token));
  CAIRN_TRY(const chat::RenderedPrompt prompt, chat_template.render(input));
  return options.marks ? with_marks(prompt) : prompt.text;
}

namespace {

// Prints the report. Returns the exit code: 0, or 1 with a message on standard error.
int show_template(const TemplateOptions& options) {
  auto report = template_report(options);
  if (!report) {
    std::fprintf(stderr, "cairn template: %s\n", printable(report.error().message).c_str());
    return kExitError;
  }
  std::string text = std::move(report).value();
  // A terminal gets visible control characters; a file or a pipe gets the exact bytes.
  if (isatty(STDOUT_FILENO) != 0) text = printable(text) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitFine;
}

Action add_template(Options& command) {
  const auto options = std::make_shared<TemplateOptions>();
  command
      .add("MODEL,-m,--model", options->path, "a GGUF file, or a text file with a Jinja template")
      .takes("FILE")
      .required();
  command
      .add("--messages", options->messages_path,
           "render these: JSON, a list of messages or an object with messages, tools and variables")
      .takes("FILE");
  command.add_flag("--marks", options->marks, "mark the text that came from messages with ⟦ and ⟧");
  return [options]() -> Result<int> { return show_template(*options); };
}

}  // namespace

const Command kTemplateCommand = {
    "template", "show a model's chat template, or render messages with it", add_template};

}  // namespace cairn::cli
