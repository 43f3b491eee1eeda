// `cairn tune skip`: which layers a model can do without best, written beside it for `--skip-layers
// tuned` (session/program/skip_file.h). Each set is measured as it would run: by an engine of its
// own.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/output_file.h"
#include "base/sha256.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/load.h"
#include "cli/options/engine_arguments.h"
#include "cli/options/model_argument.h"
#include "command_line/exit_codes.h"
#include "json/value.h"
#include "measure/own_text.h"
#include "measure/perplexity.h"
#include "measure/skip_search.h"
#include "session/program/skip_file.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

constexpr size_t kTunedTextBytesMax = size_t(1) << 30;

struct TuneArguments {
  ExpectedDigests expected;
  std::string action, model_path, text_path;
  int32_t context = 256, chunk_count = 4;
  int32_t skipped_max = 0;  // 0: half of the layers.
  int32_t try_count = 8;
  int32_t agreement = 90;  // Percent.
  uint64_t seed = 1;
  bool json = false;
  EngineArguments engine;
};

// All of the model on the text: what every set is compared with.
struct Base {
  std::vector<Token> tokens;
  measure::PerplexityWork work;
  measure::KeptLogits logits;
  int32_t layer_count;
};

Result<std::vector<Token>> tokens_of(const TuneArguments& a, Engine& engine) {
  if (!a.text_path.empty()) {
    CAIRN_TRY(const std::string text, read_input(a.text_path, kTunedTextBytesMax));
    return engine.tokenizer()->encode(text, {.add_special = true});
  }
  terminal::Progress progress("writing a text", terminal::Progress::Unit::tokens);
  return measure::write_own_text(engine,
                                 {.length = a.context, .count = a.chunk_count, .seed = a.seed},
                                 [&](int64_t done, int64_t total) {
                                   progress.update(uint64_t(done), uint64_t(total));
                                   return !terminal::interrupted();
                                 });
}

Result<Base> measure_base(const TuneArguments& a, const EngineOptions& options) {
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load_engine(a.model_path, options));
  if (engine->tokenizer() == nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected a vocabulary, found none", a.model_path);
  }
  Base base{.tokens = {},
            .work = {},
            .logits = measure::KeptLogits(engine->size().vocabulary_count),
            .layer_count = engine->size().layer_count};
  if (base.layer_count < 2) {
    return fail(ErrorCode::unsupported, "{}: expected at least 2 layers, found 1", a.model_path);
  }
  CAIRN_TRY(base.tokens, tokens_of(a, *engine));
  const int32_t chunk_count = std::min(a.chunk_count, int32_t(base.tokens.size()) / a.context);
  if (chunk_count == 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected at least {} tokens (--ctx-size), found {}", a.text_path, a.context,
                base.tokens.size());
  }
  base.work.shape = {a.context, engine->size().vocabulary_count, chunk_count};
  base.tokens.resize(size_t(a.context) * size_t(chunk_count));
  base.work.tokens = base.tokens;
  CAIRN_TRY(base.logits, measure::keep_logits(*engine, base.work));
  return base;
}

Result<measure::SkipScore> measure_set(const TuneArguments& a, const Base& base,
                                       EngineOptions options, const std::vector<int32_t>& layers) {
  options.program.skipped_layers = layers;
  CAIRN_TRY(gguf::File file, open_model(a.model_path));
  CAIRN_TRY(const std::unique_ptr<Engine> engine, Engine::load(std::move(file), options));
  CAIRN_TRY(const measure::PerplexityReport report,
            measure::measure_against(*engine, base.work, base.logits));
  return measure::SkipScore{report.comparison.divergence.mean, report.comparison.same_top.mean};
}

std::string line_of(const measure::SkipSet& set) {
  const bool is_first = set.layers.size() == 1;
  return fmt::format("{}{:>6}  {:>12.5f}  {:>9.2f} %  {}\n",
                     is_first ? "layers  KL divergence  same favourite  which\n" : "",
                     set.layers.size(), set.score.divergence, 100 * set.score.same_top,
                     models::layer_list_text(set.layers));
}

session::SkipFile file_of(const TuneArguments& a, const gguf::File& model, const Base& base,
                          const std::vector<measure::SkipSet>& found) {
  const measure::LogitsShape& shape = base.work.shape;
  session::SkipFile file{.model = hex_of(model.identity()),
                         .token_count = int64_t(shape.row_count()) * shape.chunk_count,
                         .steps = {},
                         .layers = {}};
  for (const measure::SkipSet& set : found) {
    file.steps.push_back({set.layers, set.score.divergence, set.score.same_top});
    if (100 * set.score.same_top >= a.agreement) file.layers = set.layers;
  }
  return file;
}

// Written with what was found where a person ends it before its end.
Result<int> tune(const TuneArguments& a) {
  CAIRN_TRY(EngineOptions options, a.engine.read("f16"));
  options = measure::fit_for_perplexity(std::move(options), a.context);
  CAIRN_TRY(const gguf::File model, open_model(a.model_path));
  const std::string path = session::skip_file_path(model.name());
  CAIRN_TRY(OutputFile out, OutputFile::open(path, {.inputs = model.identities()}));
  const terminal::InterruptGuard guard;
  CAIRN_TRY(const Base base, measure_base(a, options));
  const int32_t most = std::min(a.skipped_max > 0 ? a.skipped_max : (base.layer_count + 1) / 2,
                                base.layer_count - 1);
  terminal::TextOut text(stdout);
  std::optional<terminal::Progress> progress;
  progress.emplace("measuring", terminal::Progress::Unit::operations);
  CAIRN_TRY(const std::vector<measure::SkipSet> found,
            measure::search_skips({.layer_count = base.layer_count,
                                   .skipped_max = most,
                                   .try_count = a.try_count,
                                   .measure =
                                       [&](const std::vector<int32_t>& layers) {
                                         return measure_set(a, base, options, layers);
                                       },
                                   .on_progress =
                                       [&](int64_t done, int64_t total) {
                                         progress->update(uint64_t(done), uint64_t(total));
                                         return !terminal::interrupted();
                                       },
                                   .on_found =
                                       [&](const measure::SkipSet& set) {
                                         progress.reset();
                                         if (!a.json) text.write(line_of(set));
                                         progress.emplace("measuring",
                                                          terminal::Progress::Unit::operations);
                                       }}));
  progress.reset();
  if (found.empty()) {
    return fail(ErrorCode::cancelled, "tune: ended before the first layer was found");
  }
  const session::SkipFile file = file_of(a, model, base, found);
  const std::string json = session::skip_file_text(file);
  CAIRN_TRY(out.append(std::as_bytes(std::span(json))));
  CAIRN_TRY(out.commit());
  if (a.json) {
    text.write(json);
  } else {
    text.write(fmt::format("{}: --skip-layers tuned skips {}\n", path,
                           file.layers.empty() ? "none: no set agrees with the model so often"
                                               : models::layer_list_text(file.layers)));
  }
  CAIRN_TRY(text.finish());
  return command_line::kExitFine;
}

command_line::Action add_tune(command_line::Options& command) {
  const auto a = std::make_shared<TuneArguments>();
  command.add("WHAT", a->action, "skip: which layers the model can do without best")
      .takes("skip")
      .one_of({"skip"})
      .required();
  add_required_model(command, a->model_path);
  command
      .add("-f,--file", a->text_path, "the text to measure on; default: one that the model writes")
      .takes("FILE");
  command.add("-c,--ctx-size", a->context, "tokens per chunk").in_range(8, 1 << 20).shows_default();
  command.add("--chunks", a->chunk_count, "use only the first N chunks of the text")
      .in_range(1, 1 << 16)
      .shows_default();
  command.add("--most", a->skipped_max, "the most layers to skip; 0: half of them")
      .in_range(0, 1023);
  command
      .add("--tries", a->try_count,
           "how many layers are tried for each further one, the most promising first")
      .in_range(1, 1024)
      .shows_default();
  command
      .add("--agreement", a->agreement,
           "tuned means the most layers without which this share of tokens, in percent, still has "
           "the same favourite")
      .in_range(0, 100)
      .shows_default();
  command.add("--seed", a->seed, "of the text that the model writes").shows_default();
  command.add_flag("--json", a->json, "print what is written");
  a->engine.add_to(command);
  a->expected.add_to(command);
  command.set_notes(
      "Writes NAME.skip.json beside NAME.gguf. Ctrl-C ends the search and keeps what was found.\n");
  command.add_example("cairn tune skip MODEL.gguf", "on a text of the model's own");
  command.add_example("cairn tune skip MODEL.gguf -f notes.txt --most 8", "on your own");
  return [a]() -> Result<int> {
    CAIRN_TRY(a->model_path, a->expected.find(a->model_path));
    return tune(*a);
  };
}

}  // namespace

const command_line::Command kTuneCommand = {
    "tune", "find out which layers a model can do without best", add_tune};

}  // namespace cairn::cli
