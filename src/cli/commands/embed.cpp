// Texts are embedded and printed some at a time; what has to be known of all of them is bounded.
#include "cli/commands/embed.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/printable.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/load.h"
#include "cli/options/engine_arguments.h"
#include "command_line/exit_codes.h"
#include "json/value.h"
#include "unicode/unicode.h"

namespace cairn::cli {

namespace {

constexpr size_t kInputsBytesMax = size_t{1} << 28;
// Texts that are embedded at a time, while they have no more tokens.
constexpr size_t kBatchTexts = 1024, kBatchTokens = 8192;
// A table has a cell for each pair; scores are sorted.
constexpr size_t kTableTextsMax = 4096, kScoredTextsMax = size_t{1} << 20;

// The texts, one after the other: those of the command line, then the lines of a file.
class Texts {
 public:
  Texts(std::span<const std::string> said, std::string lines)
      : said_(said), lines_(std::move(lines)) {}

  // From the first one on again.
  void rewind() { said_count_ = at_ = 0; }

  // Valid as long as the Texts stay where they are; nothing behind the last one.
  std::optional<std::string_view> next() {
    if (said_count_ < said_.size()) return said_[said_count_++];
    while (at_ < lines_.size()) {
      const size_t end = std::min(lines_.find('\n', at_), lines_.size());
      std::string_view line = std::string_view(lines_).substr(at_, end - at_);
      at_ = end + 1;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) return line;
    }
    return std::nullopt;
  }

  size_t count() {
    size_t count = 0;
    for (rewind(); next(); ++count) continue;
    rewind();
    return count;
  }

 private:
  std::span<const std::string> said_;
  std::string lines_;
  size_t said_count_ = 0, at_ = 0;
};

// What was said on the command line, then the file's lines; standard input where nothing else is.
Result<Texts> all_texts(const EmbedArguments& arguments) {
  const auto empty = std::find(arguments.texts.begin(), arguments.texts.end(), "");
  if (empty != arguments.texts.end()) {
    return fail(ErrorCode::invalid_argument, "TEXT {}: expected at least a character, found none",
                empty - arguments.texts.begin() + 1);
  }
  std::string lines;
  std::string path = arguments.texts_path;
  if (path.empty() && arguments.texts.empty() && !terminal::is_terminal(stdin)) path = "-";
  if (!path.empty()) {
    CAIRN_TRY(lines, read_input(path, kInputsBytesMax));
  }
  return Texts(arguments.texts, std::move(lines));
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
  if (text_count == 0) {
    return fail(ErrorCode::invalid_argument, "embed: expected a text, found none");
  }
  const size_t count_max = arguments.similarity ? kTableTextsMax
                           : is_rank            ? kScoredTextsMax
                                                : text_count;
  if (text_count > count_max) {
    return fail(ErrorCode::no_room, "embed: expected at most {} texts to compare, found {}",
                count_max, text_count);
  }
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
  terminal::Progress progress("loading", terminal::Progress::Unit::bytes);
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

// Prints embeddings as they come, or keeps what a comparison of all needs.
class EmbedPrinter {
 public:
  EmbedPrinter(const EmbedArguments& arguments, Pooling pooling, int32_t width,
               terminal::TextOut* out)
      : form_(arguments.json             ? Form::json
              : arguments.similarity     ? Form::table
              : pooling == Pooling::rank ? Form::scores
                                         : Form::vectors),
        pooling_(pooling),
        width_(size_t(width)),
        out_(out) {}

  void begin(std::string_view model) {
    if (form_ != Form::json) return;
    out_->write(fmt::format("{{\"object\":\"list\",\"model\":{},\"{}\":[",
                            json::to_text(std::string(model)),
                            pooling_ == Pooling::rank ? "results" : "data"));
  }

  // `texts` stay until the end.
  void add(std::span<const std::string_view> texts, std::span<const Embedding> embeddings) {
    std::string part;
    for (size_t i = 0; i < texts.size(); ++i) {
      switch (form_) {
        case Form::vectors:
          add_vectors(embeddings[i], part);
          break;
        case Form::json:
          add_json(embeddings[i], part);
          break;
        case Form::table:
        case Form::scores:
          texts_.push_back(texts[i]);
          values_.insert(values_.end(), embeddings[i].values.begin(), embeddings[i].values.end());
      }
      ++count_;
    }
    out_->write(part);
  }

  void end() {
    if (form_ == Form::table) print_table();
    if (form_ == Form::scores) print_scores();
    if (form_ != Form::json) return;
    const json::Value usage = {{"prompt_tokens", token_count_}, {"total_tokens", token_count_}};
    out_->write(fmt::format("],\"usage\":{}}}\n", json::to_text(usage)));
  }

 private:
  enum class Form { vectors, json, table, scores };

  std::span<const float> values(size_t i) const {
    return std::span(values_).subspan(i * width_, width_);
  }

  void add_vectors(const Embedding& one, std::string& part) const {
    if (count_ > 0 && pooling_ == Pooling::none) part += "\n";
    std::span<const float> left(one.values);
    for (; !left.empty(); left = left.subspan(width_)) {
      part += fmt::format("{}\n", fmt::join(left.first(width_), " "));
    }
  }

  void add_json(const Embedding& one, std::string& part) {
    token_count_ += one.token_count;
    json::Value entry = {{"object", "embedding"}, {"index", count_}};
    if (pooling_ == Pooling::rank) {
      const json::Value scores = json_numbers(one.values);
      entry = {{"index", count_}, {"relevance_score", scores.items()[0]}};
      if (scores.items().size() > 1) entry["scores"] = scores;
    } else if (pooling_ == Pooling::none) {
      entry["embedding"] = json::Value::array();
      for (size_t at = 0; at < one.values.size(); at += width_) {
        entry["embedding"].push_back(json_numbers(std::span(one.values).subspan(at, width_)));
      }
    } else {
      entry["embedding"] = json_numbers(one.values);
    }
    if (count_ > 0) part += ",";
    part += json::to_text(entry);
  }

  void print_scores() const {
    std::vector<size_t> order(texts_.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return values(a)[0] > values(b)[0]; });
    for (const size_t i : order) {
      out_->write(fmt::format("{}\t{}\n", fmt::join(values(i), " "), shortened(texts_[i], 1000)));
    }
  }

  // Cosines of all pairs, shaded by size.
  void print_table() const {
    constexpr std::string_view kShades[] = {" ", "░", "▒", "▓", "█"};
    std::string line = "      ";
    for (size_t i = 0; i < texts_.size(); ++i) line += fmt::format("{:>6} ", i + 1);
    out_->write(line + "\n");
    for (size_t i = 0; i < texts_.size(); ++i) {
      line = fmt::format("{:>5} ", i + 1);
      for (size_t j = 0; j < texts_.size(); ++j) {
        const double value = cosine(values(i), values(j));
        const auto shade = size_t(std::clamp(value * 5, 0.0, 4.0));
        line += fmt::format(" {:5.2f}{}", value, kShades[shade]);
      }
      out_->write(line + fmt::format("  {}\n", shortened(texts_[i], 60)));
    }
  }

  Form form_;
  Pooling pooling_;
  size_t width_;
  terminal::TextOut* out_;
  size_t count_ = 0;
  int64_t token_count_ = 0;
  std::vector<std::string_view> texts_;  // Of a table or of scores, as what follows.
  std::vector<float> values_;            // [texts][width]
};

// Texts as the model reads them: with pooling rank each behind the first one, which is a question.
class TokenSource {
 public:
  TokenSource(Texts* texts, const Embedder* embedder) : texts_(texts), embedder_(embedder) {
    rewind();
  }

  void rewind() {
    texts_->rewind();
    if (embedder_->pooling() == Pooling::rank) question_ = texts_->next();
  }

  // False behind the last text.
  Result<bool> next(std::string_view& text, std::vector<Token>& tokens) {
    const std::optional<std::string_view> found = texts_->next();
    if (!found) return false;
    text = *found;
    CAIRN_TRY(tokens,
              question_ ? embedder_->tokens_of_pair(*question_, text) : embedder_->tokens_of(text));
    return true;
  }

 private:
  Texts* texts_;
  const Embedder* embedder_;
  std::optional<std::string_view> question_;
};

// Before anything is printed.
Status check_texts(TokenSource& source, const Embedder& embedder) {
  std::string_view text;
  std::vector<Token> tokens;
  for (size_t index = 0;; ++index) {
    CAIRN_TRY(const bool is_there, source.next(text, tokens));
    if (!is_there) break;
    CAIRN_TRY(embedder.check(tokens, index));
  }
  source.rewind();
  return Ok{};
}

Status print_texts(TokenSource& source, Embedder& embedder, EmbedPrinter& printer) {
  size_t done_count = 0;
  for (bool is_there = true; is_there;) {
    std::vector<std::string_view> texts;
    std::vector<std::vector<Token>> batch;
    size_t token_count = 0;
    while (batch.size() < kBatchTexts && token_count < kBatchTokens) {
      std::string_view text;
      std::vector<Token> tokens;
      CAIRN_TRY(is_there, source.next(text, tokens));
      if (!is_there) break;
      token_count += tokens.size();
      texts.push_back(text);
      batch.push_back(std::move(tokens));
    }
    CAIRN_TRY(const std::vector<Embedding> embeddings, embedder.embed(batch, done_count));
    printer.add(texts, embeddings);
    done_count += batch.size();
  }
  return Ok{};
}

}  // namespace

Status print_embeddings(const EmbedArguments& arguments, terminal::TextOut& out) {
  if (arguments.json && arguments.similarity) {
    return fail(ErrorCode::invalid_argument, "embed: expected --json or --similarity, found both");
  }
  CAIRN_TRY(Texts texts, all_texts(arguments));
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load(arguments, texts.count()));
  Embedder embedder(engine.get(),
                    {.normalizes = arguments.normalizes, .truncates = arguments.truncates});
  TokenSource source(&texts, &embedder);
  CAIRN_TRY(check_texts(source, embedder));
  EmbedPrinter printer(arguments, embedder.pooling(), embedder.width(), &out);
  printer.begin(engine->file().name());
  CAIRN_TRY(print_texts(source, embedder, printer));
  printer.end();
  return out.finish();
}

namespace {

command_line::Action add_embed(command_line::Options& command) {
  struct EmbedCommandArguments {
    ExpectedDigests expected;
    EmbedArguments embed;
    EngineArguments engine;
    bool normalizes = false, does_not = false;
  };
  const auto a = std::make_shared<EmbedCommandArguments>();
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
  const command_line::Option yes =
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
  a->expected.add_to(command);
  command.set_notes("The KV cache is f32 by default here.\n");
  command.add_example("cairn embed MODEL.gguf --similarity \"a cat\" \"a dog\" \"a car\"",
                      "how similar texts are");
  return [a]() -> Result<int> {
    if (a->normalizes || a->does_not) a->embed.normalizes = a->normalizes;
    CAIRN_TRY(a->embed.engine, a->engine.read("f32"));
    CAIRN_TRY(a->embed.model_path, a->expected.find(a->embed.model_path));
    terminal::TextOut out(stdout);
    CAIRN_TRY(print_embeddings(a->embed, out));
    return command_line::kExitFine;
  };
}

}  // namespace

const command_line::Command kEmbedCommand = {
    "embed", "compute embeddings of texts, or rerank passages for a question", add_embed};

}  // namespace cairn::cli
