// The report is made whole before it is printed: a text of some MB at most.
#include "cli/commands/tokenize.h"

#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <iterator>
#include <memory>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/commands/commands.h"
#include "cli/exit_codes.h"
#include "engine/vocabulary_source.h"
#include "json/value.h"
#include "unicode/unicode.h"

namespace cairn::cli {
namespace {

constexpr size_t kTextBytesMax = size_t{1} << 30;

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

json::Value json_piece(std::string_view piece) {
  if (unicode::valid_utf8_bytes(piece) == piece.size()) return std::string(piece);
  json::Value bytes = json::Value::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

Result<std::string> read_input() {
  std::string text;
  std::array<char, 65536> part;
  while (const size_t count = std::fread(part.data(), 1, part.size(), stdin)) {
    if (text.size() + count > kTextBytesMax) {
      return fail(ErrorCode::no_room, "standard input: expected at most {} bytes, found more",
                  kTextBytesMax);
    }
    text.append(part.data(), count);
  }
  if (std::ferror(stdin) != 0) return fail(ErrorCode::io, "standard input cannot be read");
  return text;
}

}  // namespace

std::string tokenize_report(const tokenize::Tokenizer& tokenizer, std::string_view text,
                            const TokenizeOptions& options) {
  const std::vector<Token> tokens = tokenizer.encode(
      text, {.add_special = options.add_special, .parse_special = options.parse_special});
  if (options.json) {
    json::Value list = json::Value::array();
    for (const Token token : tokens) {
      list.push_back({{"id", index_of(token)}, {"piece", json_piece(tokenizer.piece(token))}});
    }
    return json::to_text(list, {.is_ascii = true}) + "\n";
  }
  std::string report;
  const int width = int(fmt::formatted_size("{}", tokenizer.token_count() - 1));
  for (const Token token : tokens) {
    fmt::format_to(std::back_inserter(report), "{:>{}}  {}\n", index_of(token), width,
                   on_one_line(tokenizer.piece(token)));
  }
  return report;
}

namespace {

Result<std::string> report_of(const TokenizeOptions& options) {
  CAIRN_TRY(const auto file, gguf::File::open(options.model));
  CAIRN_TRY(const auto source, vocabulary_source(file));
  CAIRN_TRY(const auto tokenizer, tokenize::Tokenizer::build(source));
  for (const std::string& warning : tokenizer->warnings()) {
    log::warning("{}: {}", options.model, warning);
  }
  CAIRN_TRY(const std::string text,
            options.text ? read_file(*options.text, kTextBytesMax) : read_input());
  return tokenize_report(*tokenizer, text, options);
}

// Returns the exit code: 0, or 1 with a message on standard error. What is odd about the vocabulary
// goes to the log.
int tokenize(const TokenizeOptions& options) {
  auto report = report_of(options);
  if (!report) {
    fmt::print(stderr, "cairn: {}\n", on_one_line(report.error().message));
    return kExitError;
  }
  const bool is_written = std::fwrite(report->data(), 1, report->size(), stdout) == report->size();
  return is_written ? kExitFine : kExitError;
}

Action add_tokenize(Options& command) {
  const auto options = std::make_shared<TokenizeOptions>();
  command.add("MODEL,-m,--model", options->model, "a GGUF file; of a split model, its first part")
      .takes("FILE")
      .required();
  command.add("FILE", options->text, "the text; default: stdin");
  command.add_flag("--special", options->add_special,
                   "add the tokens that the model expects around a text (BOS, EOS)");
  command.add_flag("--parse-special", options->parse_special,
                   "parse special tokens (such as <|im_start|>) in the text");
  command.add_flag("--json", options->json, "print a JSON list");
  return [options]() -> Result<int> { return tokenize(*options); };
}

}  // namespace

const Command kTokenizeCommand = {"tokenize", "show the tokens of a text", add_tokenize};

}  // namespace cairn::cli
