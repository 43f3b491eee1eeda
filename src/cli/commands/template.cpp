// Reads, renders, prints.
#include "cli/commands/template.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "base/printable.h"
#include "cli/commands/commands.h"
#include "cli/exit_codes.h"
#include "gguf/gguf.h"
#include "gguf/value.h"
#include "jinja/values/json_value.h"

namespace cairn::cli {
namespace {

using jinja::Kind;
using jinja::Value;

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

Status set_member(chat::ChatInput& input, std::string_view name, const Value& value) {
  const auto wrong = [&](std::string_view expected) {
    return fail(ErrorCode::invalid_data, "{}: expected {}, found {}", name, expected,
                jinja::name_of(value.kind()));
  };
  if (name == "messages") {
    input.messages = value;
  } else if (name == "tools") {
    input.tools = value;
  } else if (name == "documents") {
    input.documents = value;
  } else if (name == "add_generation_prompt") {
    if (!value.is(Kind::boolean)) return wrong("true or false");
    input.add_generation_prompt = value.as_boolean();
  } else if (name == "bos_token" || name == "eos_token") {
    if (!value.is(Kind::string)) return wrong("a string");
    (name == "bos_token" ? input.bos_token : input.eos_token) = value.text();
  } else if (name == "now") {
    if (!value.is(Kind::string)) return wrong("a string");
    input.clock = jinja::parse_civil_time(value.text());
    if (!input.clock) return wrong("a time such as 2026-03-14T09:26:53");
  } else {
    input.variables.emplace_back(std::string(name), value);
  }
  return Ok{};
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

Result<chat::ChatInput> chat_input(std::string_view json, const TemplateSource& source) {
  CAIRN_TRY(const Value value, jinja::parse_json(json));
  chat::ChatInput input;
  input.bos_token = source.bos_token;
  input.eos_token = source.eos_token;
  input.clock = jinja::local_time_now();
  if (value.is(Kind::list)) {
    input.messages = value;
    return input;
  }
  if (!value.is(Kind::dict)) {
    return fail(ErrorCode::invalid_data, "messages: expected a list or an object, found {}",
                jinja::name_of(value.kind()));
  }
  for (const auto& [key, member] : value.as<jinja::DictObject>().entries) {
    CAIRN_TRY(set_member(input, key.text(), member));
  }
  if (!input.messages.is(Kind::list)) {
    return fail(ErrorCode::invalid_data, "messages: expected a list, found {}",
                jinja::name_of(input.messages.kind()));
  }
  return input;
}

Result<std::string> template_report(const TemplateOptions& options) {
  CAIRN_TRY(const TemplateSource source, read_template(options.path));
  if (options.messages_path.empty()) return source.source;
  CAIRN_TRY(const chat::ChatTemplate chat_template, chat::ChatTemplate::parse(source.source));
  CAIRN_TRY(const std::string json, read_file(options.messages_path));
  CAIRN_TRY(const chat::ChatInput input, chat_input(json, source));
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
  command.add("MODEL", options->path, "a GGUF file, or a file with a template");
  command.add("--messages", options->messages_path,
              "JSON: a list of messages, or an object with them, tools and variables");
  command.add_flag("--marks", options->marks, "set what the user wrote between ⟦ and ⟧");
  return [options]() -> Result<int> {
    CAIRN_TRY(require("MODEL", options->path));
    return show_template(*options);
  };
}

}  // namespace

const Command kTemplateCommand = {"template", "show a chat template, or messages in it",
                                  add_template};

}  // namespace cairn::cli
