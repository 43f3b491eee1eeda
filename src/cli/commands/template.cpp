// Reads, renders, prints.
#include "cli/commands/template.h"

#include <cstdio>
#include <memory>

#include "base/file.h"
#include "chat/chat_input.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "command_line/exit_codes.h"
#include "gguf/gguf.h"
#include "gguf/value.h"
#include "terminal/terminal.h"

namespace cairn::cli {
namespace {

constexpr size_t kFileBytesMax = 32u << 20;
constexpr std::string_view kMagic = "GGUF";

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
  CAIRN_TRY(const std::string magic, read_beginning(path, kMagic.size()));
  if (magic != kMagic) {
    CAIRN_TRY(source.source, read_file(path, kFileBytesMax));
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
  CAIRN_TRY(const std::string json, read_input(options.messages_path, kFileBytesMax));
  CAIRN_TRY(const chat::ChatInput input,
            chat::parse_chat_input(json, source.bos_token, source.eos_token));
  CAIRN_TRY(const chat::RenderedPrompt prompt, chat_template.render(input));
  return options.marks ? with_marks(prompt) : prompt.text;
}

namespace {

Result<int> show_template(const TemplateOptions& options) {
  CAIRN_TRY(std::string text, template_report(options));
  // A terminal gets visible control characters; a file or a pipe gets the exact bytes.
  if (terminal::is_terminal(stdout)) text += "\n";
  terminal::TextOut out(stdout);
  out.write(text);
  CAIRN_TRY(out.finish());
  return command_line::kExitFine;
}

command_line::Action add_template(command_line::Options& command) {
  const auto options = std::make_shared<TemplateOptions>();
  const auto expected = std::make_shared<ExpectedDigests>();
  command
      .add("MODEL,-m,--model", options->path, "a GGUF file, or a text file with a Jinja template")
      .takes("FILE")
      .required();
  command
      .add("--messages", options->messages_path,
           "render these: JSON, a list of messages or an object with messages, tools and variables")
      .takes("FILE");
  command.add_flag("--marks", options->marks, "mark the text that came from messages with ⟦ and ⟧");
  expected->add_to(command);
  return [options, expected]() -> Result<int> {
    CAIRN_TRY(options->path, expected->find(options->path));
    return show_template(*options);
  };
}

}  // namespace

const command_line::Command kTemplateCommand = {
    "template", "show a model's chat template, or render messages with it", add_template};

}  // namespace cairn::cli
