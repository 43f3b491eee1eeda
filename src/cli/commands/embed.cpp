// The texts are read whole and embedded at once: the engine makes steps of them.
#include "cli/commands/embed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>
#include <numeric>

#include "base/file.h"
#include "base/printable.h"
#include "cli/commands/commands.h"
#include "cli/commands/load.h"
#include "cli/exit_codes.h"
#include "cli/options/engine_arguments.h"
#include "cli/terminal/terminal.h"
#include "json/value.h"
#include "unicode/unicode.h"

namespace cairn::cli {

namespace {

constexpr size_t kTextBytesMax = size_t{1} << 28;

Result<std::string> read_standard_input() {
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

void add_lines(std::string_view text, std::vector<std::string>& lines) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// What was said on the command line, then the file's lines; standard input where nothing else is.
Result<std::vector<std::string>> all_texts(const EmbedArguments& arguments) {
  std::vector<std::string> texts = arguments.texts;
  const auto empty = std::find(texts.begin(), texts.end(), "");
  if (empty != texts.end()) {
    return fail(ErrorCode::invalid_argument, "TEXT {}: expected at least a character, found none",
                empty - texts.begin() + 1);
  }
  const bool reads_input = arguments.texts_path == "-" ||
                           (arguments.texts_path.empty() && texts.empty() && !is_terminal(stdin));
  if (reads_input) {
    CAIRN_TRY(const std::string text, read_standard_input());
    add_lines(text, texts);
  } else if (!arguments.texts_path.empty()) {
    CAIRN_TRY(const std::string text, read_file(arguments.texts_path, kTextBytesMax));
    add_lines(text, texts);
  }
  if (!texts.empty()) return texts;
  return fail(ErrorCode::invalid_argument, "embed: expected a text, found none");
}

Result<Pooling> pooling_for(const EmbedArguments& arguments, const gguf::File& file) {
  if (!arguments.pooling.empty()) return parse_pooling("--pooling", arguments.pooling);
  CAIRN_TRY(const std::optional<Pooling> said, pooling_of(file));
  if (said) return *said;
  return fail(ErrorCode::invalid_argument,
              "--pooling: expected one of none, mean, cls, last, rank, since {} does not say it",
              file.name());
}

// That what was asked for has a meaning with this pooling.
Status check_request(const EmbedArguments& arguments, Pooling pooling, size_t text_count) {
  const bool is_rank = pooling == Pooling::rank;
  if (arguments.similarity && (is_rank || pooling == Pooling::none)) {
    return fail(ErrorCode::invalid_argument,
                "--similarity: expected one vector a text, found pooling {}", name(pooling));
  }
  if (is_rank && arguments.normalizes.value_or(false)) {
    return fail(ErrorCode::invalid_argument, "--normalize: expected vectors, found pooling rank");
  }
  if (is_rank && text_count < 2) {
    return fail(ErrorCode::invalid_argument,
                "embed: expected a question and a text for a model that scores, found one text");
  }
  return Ok{};
}

Result<std::unique_ptr<Engine>> load(const EmbedArguments& arguments, size_t text_count) {
  CAIRN_TRY(gguf::File file, open_model(arguments.model_path));
  EngineOptions options = arguments.engine;
  CAIRN_TRY(options.pooling, pooling_for(arguments, file));
  CAIRN_TRY(check_request(arguments, *options.pooling, text_count));
  Progress progress("loading", Progress::Unit::bytes);
  options.on_progress = [&progress](size_t done, size_t total) { progress.update(done, total); };
  return Engine::load(std::move(file), options);
}

// The number with a float's shortest digits, so that JSON does not show those of its neighbours.
json::Value json_numbers(std::span<const float> values) {
  json::Value numbers = json::Value::array();
  for (const float value : values) {
    const std::string digits = fmt::format("{}", value);
    double number = double(value);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    numbers.push_back(number);
  }
  return numbers;
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum = std::fma(double(a[i]), double(b[i]), sum);
  return sum;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  const double lengths = std::sqrt(dot(a, a) * dot(b, b));
  return lengths > 0 ? dot(a, b) / lengths : 0;
}

// On one line and of at most so many characters, so that columns stay where they are.
std::string shortened(std::string_view text, size_t length_max) {
  std::string line = printable(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\t', ' ');
  size_t end = 0, length = 0;
  for (; end < line.size(); ++end) {
    const bool begins = (uint8_t(line[end]) & 0xc0) != 0x80;  // Not within a character.
    if (begins && ++length > length_max) break;
  }
  return end == line.size() ? line : line.substr(0, end) + "…";
}

std::string score_lines(const EmbedReport& report) {
  std::vector<size_t> order(report.texts.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return report.embeddings[a].values[0] > report.embeddings[b].values[0];
  });
  std::string out;
  for (const size_t i : order) {
    fmt::format_to(std::back_inserter(out), "{}\t{}\n", fmt::join(report.embeddings[i].values, " "),
                   shortened(report.texts[i], 1000));
  }
  return out;
}

}  // namespace

std::string embed_text(const EmbedReport& report) {
  if (report.pooling == Pooling::rank) return score_lines(report);
  std::string out;
  for (size_t i = 0; i < report.embeddings.size(); ++i) {
    if (i > 0 && report.pooling == Pooling::none) out += "\n";
    std::span<const float> left(report.embeddings[i].values);
    for (; !left.empty(); left = left.subspan(size_t(report.width))) {
      fmt::format_to(std::back_inserter(out), "{}\n",
                     fmt::join(left.first(size_t(report.width)), " "));
    }
  }
  return out;
}

std::string embed_json(const EmbedReport& report) {
  json::Value data = json::Value::array();
  int64_t token_count = 0;
  for (size_t i = 0; i < report.embeddings.size(); ++i) {
    const Embedding& each = report.embeddings[i];
    token_count += each.token_count;
    json::Value entry = {{"object", "embedding"}, {"index", i}};
    if (report.pooling == Pooling::rank) {
      const json::Value scores = json_numbers(each.values);
      entry = {{"index", i}, {"relevance_score", scores.items()[0]}};
      if (scores.items().size() > 1) entry["scores"] = scores;
    } else if (report.pooling == Pooling::none) {
      entry["embedding"] = json::Value::array();
      for (size_t at = 0; at < each.values.size(); at += size_t(report.width)) {
        const auto row = std::span(each.values).subspan(at, size_t(report.width));
        entry["embedding"].push_back(json_numbers(row));
      }
    } else {
      entry["embedding"] = json_numbers(each.values);
    }
    data.push_back(std::move(entry));
  }
  const bool is_rank = report.pooling == Pooling::rank;
  const json::Value all = {
      {"object", "list"},
      {"model", report.model},
      {is_rank ? "results" : "data", std::move(data)},
      {"usage", {{"prompt_tokens", token_count}, {"total_tokens", token_count}}}};
  return json::to_text(all) + "\n";
}

std::string similarity_text(const EmbedReport& report) {
  constexpr std::string_view kShades[] = {" ", "░", "▒", "▓", "█"};
  std::string out = "      ";
  for (size_t i = 0; i < report.texts.size(); ++i) out += fmt::format("{:>6} ", i + 1);
  out += "\n";
  for (size_t i = 0; i < report.texts.size(); ++i) {
    out += fmt::format("{:>5} ", i + 1);
    for (size_t j = 0; j < report.texts.size(); ++j) {
      const double value = cosine(report.embeddings[i].values, report.embeddings[j].values);
      const auto shade = size_t(std::clamp(value * 5, 0.0, 4.0));
      out += fmt::format(" {:5.2f}{}", value, kShades[shade]);
    }
    out += fmt::format("  {}\n", shortened(report.texts[i], 60));
  }
  return out;
}

Result<EmbedReport> embed(const EmbedArguments& arguments) {
  CAIRN_TRY(std::vector<std::string> texts, all_texts(arguments));
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load(arguments, texts.size()));
  Embedder embedder(engine.get(),
                    {.normalizes = arguments.normalizes, .truncates = arguments.truncates});
  EmbedReport report{.model = engine->file().name(),
                     .pooling = embedder.pooling(),
                     .width = embedder.width(),
                     .texts = {},
                     .embeddings = {}};
  const bool is_rank = report.pooling == Pooling::rank;
  std::vector<std::vector<Token>> tokens;
  for (size_t i = is_rank ? 1 : 0; i < texts.size(); ++i) {
    CAIRN_TRY(std::vector<Token> each,
              is_rank ? embedder.tokens_of_pair(texts[0], texts[i]) : embedder.tokens_of(texts[i]));
    tokens.push_back(std::move(each));
  }
  CAIRN_TRY(report.embeddings, embedder.embed(tokens));
  if (is_rank) texts.erase(texts.begin());
  report.texts = std::move(texts);
  return report;
}

namespace {

Result<int> print_embeddings(const EmbedArguments& arguments) {
  if (arguments.json && arguments.similarity) {
    return fail(ErrorCode::invalid_argument, "embed: expected --json or --similarity, found both");
  }
  CAIRN_TRY(const EmbedReport report, embed(arguments));
  TextOut out(stdout);
  out.write(arguments.json         ? embed_json(report)
            : arguments.similarity ? similarity_text(report)
                                   : embed_text(report));
  CAIRN_TRY(out.finish());
  return kExitFine;
}

Action add_embed(Options& command) {
  struct Arguments {
    EmbedArguments embed;
    EngineArguments engine;
    bool normalizes = false, does_not = false;
  };
  const auto a = std::make_shared<Arguments>();
  command
      .add("MODEL,-m,--model", a->embed.model_path, "a GGUF file of an embedding model or reranker")
      .takes("FILE")
      .required();
  command.add("TEXT", a->embed.texts,
              "the texts; for a reranker: a question, then the passages to score");
  command
      .add("-f,--file", a->embed.texts_path, "read texts from this file, one per line; - is stdin")
      .takes("FILE");
  command
      .add("--pooling", a->embed.pooling,
           "how token vectors become one: none, mean, cls, last or rank; default: what the model "
           "file says")
      .takes("TYPE")
      .suggests({"none", "mean", "cls", "last", "rank"});
  const Option yes =
      command.add_flag("--normalize", a->normalizes,
                       "scale vectors to length 1 (the default, except with --pooling none)");
  command.add_flag("--no-normalize", a->does_not, "do not scale vectors").excludes(yes);
  command.add_flag("--truncate", a->embed.truncates,
                   "cut texts that are longer than the context, instead of refusing them");
  command.add_flag("--similarity", a->embed.similarity,
                   "print the cosine similarity of each pair of texts");
  command.add_flag("--json", a->embed.json, "print JSON in the form of OpenAI's embeddings API");
  a->engine.add_to(command);
  a->engine.add_memory_to(command);
  command.set_notes("The KV cache is f32 by default here.\n");
  command.add_example("cairn embed MODEL.gguf --similarity \"a cat\" \"a dog\" \"a car\"",
                      "how similar texts are");
  return [a]() -> Result<int> {
    if (a->normalizes || a->does_not) a->embed.normalizes = a->normalizes;
    CAIRN_TRY(a->embed.engine, a->engine.read("f32"));
    return print_embeddings(a->embed);
  };
}

}  // namespace

const Command kEmbedCommand = {
    "embed", "compute embeddings of texts, or rerank passages for a question", add_embed};

}  // namespace cairn::cli
