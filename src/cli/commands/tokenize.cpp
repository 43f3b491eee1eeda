// Tokens are few bytes each; what is printed of them is many, so it is printed as it is made.
#include "cli/commands/tokenize.h"

#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/options/model_argument.h"
#include "command_line/exit_codes.h"
#include "engine/vocabulary_source.h"
#include "json/value.h"
#include "unicode/unicode.h"

namespace cairn::cli {
namespace {

constexpr size_t kTextBytesMax = size_t{1} << 30;
constexpr size_t kPartBytes = 1 << 16;  // Printed at a time.

// On one line: printable() lets line feeds and tabs pass.
std::string on_one_line(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return out;
}

// A list's entry.
std::string json_entry(Token token, std::string_view piece) {
  json::Value shown = std::string(piece);
  if (unicode::valid_utf8_bytes(piece) != piece.size()) {
    shown = json::Value::array();
    for (const char c : piece) shown.push_back(static_cast<unsigned char>(c));
  }
  return json::to_text({{"id", index_of(token)}, {"piece", std::move(shown)}}, {.is_ascii = true});
}

}  // namespace

void report_tokens(const tokenize::Tokenizer& tokenizer, std::string_view text,
                   const TokenizeOptions& options, FunctionRef<void(std::string_view)> write) {
  const std::vector<Token> tokens = tokenizer.encode(
      text, {.add_special = options.add_special, .parse_special = options.parse_special});
  const int width = int(fmt::formatted_size("{}", tokenizer.token_count() - 1));
  std::string part = options.json ? "[" : "";
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view piece = tokenizer.piece(tokens[i]);
    if (options.json) {
      if (i > 0) part += ',';
      part += json_entry(tokens[i], piece);
    } else {
      part += fmt::format("{:>{}}  {}\n", index_of(tokens[i]), width, on_one_line(piece));
    }
    if (part.size() < kPartBytes) continue;
    write(part);
    part.clear();
  }
  if (options.json) part += "]\n";
  write(part);
}

namespace {

Result<int> tokenize(const TokenizeOptions& options) {
  CAIRN_TRY(const auto file, gguf::File::open(options.model));
  CAIRN_TRY(const auto source, vocabulary_source(file));
  CAIRN_TRY(const auto tokenizer, tokenize::Tokenizer::build(source));
  for (const std::string& warning : tokenizer->warnings()) {
    log::warning("{}: {}", options.model, warning);
  }
  CAIRN_TRY(const std::string text, read_input(options.text.value_or("-"), kTextBytesMax));
  report_tokens(*tokenizer, text, options,
                [](std::string_view part) { std::fwrite(part.data(), 1, part.size(), stdout); });
  return command_line::kExitFine;
}

command_line::Action add_tokenize(command_line::Options& command) {
  const auto options = std::make_shared<TokenizeOptions>();
  const auto expected = std::make_shared<ExpectedDigests>();
  add_required_model(command, options->model);
  command.add("FILE", options->text, "the text; default: stdin").takes("FILE");
  command.add_flag("--special", options->add_special,
                   "add the tokens that the model expects around a text (BOS, EOS)");
  command.add_flag("--parse-special", options->parse_special,
                   "parse special tokens (such as <|im_start|>) in the text");
  command.add_flag("--json", options->json, "print a JSON list");
  expected->add_to(command);
  return [options, expected]() -> Result<int> {
    CAIRN_TRY(options->model, expected->find(options->model));
    return tokenize(*options);
  };
}

}  // namespace

const command_line::Command kTokenizeCommand = {"tokenize", "show the tokens of a text",
                                                add_tokenize};

}  // namespace cairn::cli
