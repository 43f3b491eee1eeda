// Sequences from a file through the engine's steps into a file of rows.
#include "cli/commands/logits.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "base/output_file.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/load.h"
#include "cli/options/engine_arguments.h"
#include "cli/options/model_argument.h"
#include "command_line/exit_codes.h"
#include "measure/sequence_logits.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

constexpr size_t kTokensBytesMax = size_t(1) << 30;
constexpr std::string_view kSeparators = " ,\t\r";

Result<std::vector<Token>> parse_line(std::string_view line, int64_t line_number,
                                      int32_t vocabulary_count) {
  std::vector<Token> tokens;
  while (true) {
    const size_t begin = line.find_first_not_of(kSeparators);
    if (begin == std::string_view::npos) return tokens;
    const size_t end = std::min(line.find_first_of(kSeparators, begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    int32_t id = -1;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    const bool is_number = error == std::errc() && stop == word.data() + word.size();
    if (!is_number || id < 0 || id >= vocabulary_count) {
      return fail(ErrorCode::invalid_data, "tokens, line {}: expected ids below {}, found \"{}\"",
                  line_number, vocabulary_count, word.substr(0, 40));
    }
    tokens.push_back(Token(id));
    line.remove_prefix(end);
  }
}

}  // namespace

Result<std::vector<std::vector<Token>>> parse_sequences(std::string_view text,
                                                        int32_t vocabulary_count) {
  std::vector<std::vector<Token>> sequences;
  for (int64_t line_number = 1; !text.empty(); ++line_number) {
    const size_t end = std::min(text.find('\n'), text.size());
    CAIRN_TRY(std::vector<Token> tokens,
              parse_line(text.substr(0, end), line_number, vocabulary_count));
    if (!tokens.empty()) sequences.push_back(std::move(tokens));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (sequences.empty()) {
    return fail(ErrorCode::invalid_data, "tokens: expected at least one sequence, found none");
  }
  return sequences;
}

Result<int64_t> write_logits(const LogitsOptions& options) {
  if (options.batch < 1) {
    return fail(ErrorCode::invalid_argument, "--batch: expected at least 1, found {}",
                options.batch);
  }
  CAIRN_TRY(const std::string text, read_input(options.tokens_path, kTokensBytesMax));
  EngineOptions engine_options = options.engine;
  engine_options.row_count_max = options.batch;
  CAIRN_TRY(gguf::File model, open_model(options.model_path));
  const std::vector<FileIdentity> inputs =
      input_files(model, options.engine, {options.tokens_path});
  CAIRN_TRY(OutputFile out, OutputFile::open(options.out_path, {.inputs = inputs}));
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load_engine(std::move(model), engine_options));
  CAIRN_TRY(const auto sequences, parse_sequences(text, engine->size().vocabulary_count));
  int64_t total_tokens = 0;
  for (const auto& sequence : sequences) {
    total_tokens += int64_t(sequence.size());
    if (sequence.size() > size_t(engine->options().context_tokens)) {
      return fail(ErrorCode::no_room, "tokens: expected sequences of at most {}, found one of {}",
                  engine->options().context_tokens, sequence.size());
    }
  }
  terminal::Progress progress("computing", terminal::Progress::Unit::tokens);
  int64_t done_tokens = 0;
  for (const auto& sequence : sequences) {
    CAIRN_TRY(measure::append_logits(*engine, sequence, out));
    done_tokens += int64_t(sequence.size());
    progress.update(uint64_t(done_tokens), uint64_t(total_tokens));
  }
  CAIRN_TRY(out.commit());
  return total_tokens;
}

namespace {

command_line::Action add_logits(command_line::Options& command) {
  struct LogitsArguments {
    ExpectedDigests expected;
    LogitsOptions logits;
    EngineArguments engine;
  };
  const auto a = std::make_shared<LogitsArguments>();
  add_required_model(command, a->logits.model_path);
  command
      .add("--tokens", a->logits.tokens_path,
           "token ids: one sequence per line, separated by spaces or commas")
      .takes("FILE")
      .required();
  command.add("--batch", a->logits.batch, "tokens per step").in_range(1, 1 << 16);
  command
      .add("-o,--output", a->logits.out_path,
           "where to write the logits: rows of f32, one per token")
      .takes("FILE")
      .required();
  a->engine.add_to(command);
  a->engine.add_program_to(command);
  a->expected.add_to(command);
  command.set_notes("The KV cache is f32 by default here.\n");
  return [a]() -> Result<int> {
    CAIRN_TRY(a->logits.engine, a->engine.read("f32"));
    CAIRN_TRY(a->logits.model_path, a->expected.find(a->logits.model_path));
    CAIRN_TRY(const int64_t row_count, write_logits(a->logits));
    std::fprintf(stderr, "%lld rows\n", static_cast<long long>(row_count));
    return command_line::kExitFine;
  };
}

}  // namespace

const command_line::Command kLogitsCommand = {
    "logits", "write the logits of given token sequences to a file", add_logits};

}  // namespace cairn::cli
