// From options to tokens, and the report as text and as JSON.
#include "cli/commands/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/output_file.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/load.h"
#include "cli/options/engine_arguments.h"
#include "cli/options/model_argument.h"
#include "command_line/exit_codes.h"
#include "json/value.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

constexpr size_t kCorpusBytesMax = size_t(1) << 30;

Result<std::vector<Token>> tokens_of_text(const Engine& engine, const PerplexityOptions& options) {
  CAIRN_TRY(const std::string text, read_input(options.text_path, kCorpusBytesMax));
  return engine.tokenizer()->encode(text,
                                    {.add_special = true, .parse_special = options.parse_special});
}

// The whole chunks of the text, or those of the saved logits.
Status find_chunks(const PerplexityOptions& options, const Engine& engine,
                   const measure::SavedLogits* base, measure::LogitsShape& shape,
                   std::vector<Token>& tokens) {
  shape = {options.context, engine.size().vocabulary_count, 0};
  if (base != nullptr) {
    shape = base->shape();
    tokens = base->tokens();
    if (shape.vocabulary != engine.size().vocabulary_count) {
      return fail(ErrorCode::invalid_argument, "{}: expected logits of {} tokens, found {}",
                  options.kl_path, engine.size().vocabulary_count, shape.vocabulary);
    }
  } else {
    CAIRN_TRY(tokens, tokens_of_text(engine, options));
    shape.chunk_count = int32_t(tokens.size() / size_t(shape.context));
  }
  if (shape.chunk_count == 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected at least {} tokens (--ctx-size), found {}", options.text_path,
                shape.context, tokens.size());
  }
  if (options.chunk_count_max > 0) {
    shape.chunk_count = std::min(shape.chunk_count, options.chunk_count_max);
  }
  tokens.resize(size_t(shape.context) * size_t(shape.chunk_count));
  return Ok{};
}

Result<OutputFile> open_output(const PerplexityOptions& options, const gguf::File& model) {
  const std::vector<FileIdentity> inputs =
      input_files(model, options.engine, {options.text_path, options.kl_path});
  return OutputFile::open(options.save_path, {.inputs = inputs});
}

// The model itself, beside an engine that runs a program of it.
Result<std::unique_ptr<Engine>> load_whole(const PerplexityOptions& options,
                                           EngineOptions engine_options) {
  engine_options.program = {};
  engine_options.find_skipped_layers = nullptr;
  return load_engine(options.model_path, std::move(engine_options));
}

}  // namespace

Result<PerplexityResult> perplexity(const PerplexityOptions& options) {
  std::optional<measure::SavedLogits> base;
  if (!options.kl_path.empty()) {
    CAIRN_TRY(base, measure::SavedLogits::open(options.kl_path));
  }
  const EngineOptions engine_options =
      measure::fit_for_perplexity(options.engine, base ? base->shape().context : options.context);
  CAIRN_TRY(gguf::File model, open_model(options.model_path));
  std::optional<OutputFile> out;
  if (!options.save_path.empty()) {
    CAIRN_TRY(out, open_output(options, model));
  }
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load_engine(std::move(model), engine_options));
  if (engine->tokenizer() == nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected a vocabulary, found none",
                options.model_path);
  }
  measure::PerplexityWork work{.base = base ? &*base : nullptr};
  std::vector<Token> tokens;
  CAIRN_TRY(find_chunks(options, *engine, work.base, work.shape, tokens));
  work.tokens = tokens;
  std::optional<measure::LogitsWriter> writer;
  if (out) {
    CAIRN_TRY(writer, measure::LogitsWriter::open(*std::move(out), work.shape, tokens));
    work.writer = &*writer;
  }
  terminal::Progress progress("computing", terminal::Progress::Unit::tokens);
  work.on_progress = [&](int64_t done, int64_t total) {
    progress.update(uint64_t(done), uint64_t(total));
  };
  PerplexityResult result{.report = {}, .whole = {}, .program = engine->program().text()};
  if (!engine->program().is_default() && base == std::nullopt && !writer) {
    CAIRN_TRY(const std::unique_ptr<Engine> whole, load_whole(options, engine_options));
    CAIRN_TRY(measure::BothReports both, measure::compare_perplexity(*whole, *engine, work));
    result.report = both.other;
    result.whole = both.base;
    return result;
  }
  CAIRN_TRY(result.report, measure::measure_perplexity(*engine, work));
  if (writer) CAIRN_TRY(writer->commit());
  return result;
}

namespace {

std::string report_text(const PerplexityResult& result) {
  const measure::PerplexityReport& report = result.report;
  std::string text =
      fmt::format("perplexity            {:.4f} ± {:.4f} ({} tokens, {} chunks)\n",
                  report.perplexity, report.error, report.token_count, report.chunk_count);
  if (result.whole) {
    text = fmt::format("program               {}\n", result.program) + text;
    text += fmt::format("perplexity of all     {:.4f} ± {:.4f}\n", result.whole->perplexity,
                        result.whole->error);
    text += fmt::format("tokens per second     {:.1f}, of all {:.1f}\n", report.tokens_per_second,
                        result.whole->tokens_per_second);
  } else {
    text += fmt::format("tokens per second     {:.1f}\n", report.tokens_per_second);
  }
  if (!report.has_comparison) return text;
  const measure::Comparison& c = report.comparison;
  text += fmt::format("base perplexity       {:.4f}\n", c.base_perplexity);
  text +=
      fmt::format("log of their ratio    {:.5f} ± {:.5f}\n", c.log_ratio.mean, c.log_ratio.error);
  text +=
      fmt::format("KL divergence         {:.6f} ± {:.6f}\n", c.divergence.mean, c.divergence.error);
  text += fmt::format("  median, 99 %, most  {:.6f}, {:.6f}, {:.6f}\n", c.divergence_median,
                      c.divergence_99, c.divergence_max);
  text += fmt::format("same favourite        {:.3f} ± {:.3f} %\n", 100 * c.same_top.mean,
                      100 * c.same_top.error);
  text += fmt::format("RMS change of p       {:.3f} %\n", 100 * c.probability_rms);
  return text;
}

std::string report_json(const PerplexityResult& result) {
  const measure::PerplexityReport& report = result.report;
  json::Value json;
  json["program"] = result.program;
  json["perplexity"] = report.perplexity;
  json["perplexity_error"] = report.error;
  json["tokens"] = report.token_count;
  json["chunks"] = report.chunk_count;
  json["tokens_per_second"] = report.tokens_per_second;
  if (result.whole) {
    json["whole_perplexity"] = result.whole->perplexity;
    json["whole_perplexity_error"] = result.whole->error;
    json["whole_tokens_per_second"] = result.whole->tokens_per_second;
  }
  if (report.has_comparison) {
    const measure::Comparison& c = report.comparison;
    json["base_perplexity"] = c.base_perplexity;
    json["log_ratio"] = c.log_ratio.mean;
    json["log_ratio_error"] = c.log_ratio.error;
    json["kl_divergence"] = c.divergence.mean;
    json["kl_divergence_error"] = c.divergence.error;
    json["kl_divergence_median"] = c.divergence_median;
    json["kl_divergence_99"] = c.divergence_99;
    json["kl_divergence_max"] = c.divergence_max;
    json["same_top"] = c.same_top.mean;
    json["same_top_error"] = c.same_top.error;
    json["probability_rms"] = c.probability_rms;
  }
  return json::to_text(json);
}

command_line::Action add_perplexity(command_line::Options& command) {
  struct PerplexityArguments {
    ExpectedDigests expected;
    PerplexityOptions perplexity;
    EngineArguments engine;
  };
  const auto a = std::make_shared<PerplexityArguments>();
  add_model(command, a->perplexity.model_path);
  const command_line::Option text =
      command.add("-f,--file", a->perplexity.text_path, "the text to measure").takes("FILE");
  command.add_flag("--parse-special", a->perplexity.parse_special,
                   "parse special tokens (such as <|im_start|>) in the text");
  command.add("-c,--ctx-size", a->perplexity.context, "tokens per chunk")
      .in_range(4, 1 << 24)
      .shows_default();
  command.add("--chunks", a->perplexity.chunk_count_max, "use only the first N chunks; 0: all")
      .in_range(0, 1 << 24);
  command
      .add("--save-logits", a->perplexity.save_path,
           "write all log-probabilities to this file, in llama.cpp's format, for a later --kl")
      .takes("FILE");
  command
      .add("--kl", a->perplexity.kl_path,
           "compare with a file from --save-logits: KL divergence over the text it was made from")
      .takes("FILE")
      .excludes(text);
  command.add_flag("--json", a->perplexity.json, "print JSON");
  a->engine.add_to(command);
  a->engine.add_program_to(command);
  a->expected.add_to(command);
  return [a]() -> Result<int> {
    if (a->perplexity.kl_path.empty() && a->perplexity.text_path.empty()) {
      return fail(ErrorCode::invalid_argument, "--file: expected a value, found none");
    }
    CAIRN_TRY(a->perplexity.engine, a->engine.read("f16"));
    CAIRN_TRY(a->perplexity.model_path, a->expected.find(a->perplexity.model_path));
    CAIRN_TRY(const PerplexityResult result, perplexity(a->perplexity));
    terminal::TextOut out(stdout);
    out.write(a->perplexity.json ? report_json(result) + "\n" : report_text(result));
    CAIRN_TRY(out.finish());
    return command_line::kExitFine;
  };
}

}  // namespace

const command_line::Command kPerplexityCommand = {
    "perplexity", "measure perplexity on a text, or KL divergence from another model",
    add_perplexity};

}  // namespace cairn::cli
