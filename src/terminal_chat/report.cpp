// Statistics of answers.
#include "terminal_chat/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/quantities.h"
#include "json/value.h"

namespace cairn::terminal_chat {

namespace {

double rate(size_t count, double seconds) {
  return seconds > 0 ? double(count) / seconds : 0;
}

json::Value sampling_json(const sample::SamplingParams& params) {
  json::Value json;
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    const std::string key(field.name);
    if (field.flag != nullptr) json[key] = params.*field.flag;
    if (field.count != nullptr) json[key] = params.*field.count;
    // The shortest digits that read back as the same f32: 0.8, not 0.800000012.
    if (field.real != nullptr) json[key] = std::stod(show(params, field));
  }
  json["samplers"] = params.samplers;
  json["dry_sequence_breakers"] = params.dry_breakers;
  json["seed"] = params.seed;
  return json;
}

json::Value probability_json(const sample::TokenProbability& one,
                             const tokenize::Tokenizer& tokenizer) {
  const std::string_view piece = tokenizer.piece(one.token);
  json::Value bytes = json::Value::array();
  for (const char byte : piece) bytes.push_back(unsigned(uint8_t(byte)));
  // JSON has no infinity; nobody asks how impossible.
  const double value = std::max(double(one.log_probability), -9999.0);
  return {{"token", std::string(piece)}, {"logprob", value}, {"bytes", std::move(bytes)}};
}

json::Value finish_json(const session::Answer& answer) {
  json::Value json = {{"reason", std::string(name(answer.finish))},
                      {"is_cut", !answer.cut_by.empty()},
                      {"fits_form", answer.fits_form}};
  if (const std::string line = cut_line(answer); !line.empty()) json["message"] = line;
  return json;
}

json::Value context_json(const AnswerContext& context) {
  json::Value json = {{"used_tokens", context.used_tokens}, {"free_tokens", context.free_tokens}};
  if (context.next_shift) {
    json["next_shift"] = {{"left_out_turns", context.next_shift->left_out_turns},
                          {"left_out_tokens", context.next_shift->left_out_tokens},
                          {"read_tokens", context.next_shift->read_tokens}};
  }
  return json;
}

}  // namespace

std::string memory_line(const memory::Usage& usage) {
  std::string kinds;
  const std::pair<std::string_view, size_t> all[] = {{"keys and values", usage.page_bytes},
                                                     {"states", usage.state_bytes},
                                                     {"logs", usage.log_bytes},
                                                     {"rows", usage.hidden_bytes}};
  for (const auto& [kind, bytes] : all) {
    if (bytes > 0)
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", kind, show_bytes(bytes));
  }
  return fmt::format("{} of {}{}", show_bytes(usage.used_bytes()), show_bytes(usage.budget_bytes),
                     kinds.empty() ? "" : " (" + kinds + ")");
}

std::string store_line(const SequenceStore& store) {
  const store::StoreStats stats = store.stats();
  std::string line = fmt::format("{}: {} sequences, {} of {}; {} found, {} not found", store.path(),
                                 stats.entries, show_bytes(stats.bytes),
                                 show_bytes(stats.budget_bytes), stats.hits, stats.misses);
  if (stats.refused > 0) line += fmt::format(", {} not written", stats.refused);
  if (stats.damaged > 0) line += fmt::format(", {} damaged records put away", stats.damaged);
  const SequenceStore::Counts counts = store.counts();
  if (stats.scrubbed > 0) line += fmt::format(", {} files looked through", stats.scrubbed);
  if (counts.audited > 0) line += fmt::format(", {} computed again", counts.audited);
  if (counts.differing > 0) line += fmt::format(", {} of them wrongly kept", counts.differing);
  return line;
}

uint64_t weight_bytes(const gguf::File& file) {
  uint64_t bytes = 0;
  for (const gguf::Tensor& tensor : file.tensors()) bytes += tensor.bytes.size();
  return bytes;
}

std::string plan_line(const memory::ResumePlan& plan) {
  std::string line = fmt::format("{} tokens stay, {} to compute", plan.resume, plan.forward_tokens);
  if (plan.recurrence_steps > 0) {
    line += fmt::format(", {} recurrence steps", plan.recurrence_steps);
  }
  if (!plan.limited_by.empty()) line += fmt::format(" ({})", plan.reason);
  return line;
}

std::string brief_line(const session::Answer& answer, const memory::Usage& usage) {
  constexpr size_t kColumnsMax = 80;
  constexpr std::string_view kBetween = " · ";
  const size_t count = answer.tokens.size();
  std::vector<std::string> parts = {fmt::format("{} {}", count, count == 1 ? "token" : "tokens")};
  const double speed = rate(count, answer.generation_seconds);
  if (count > 0) parts.push_back(fmt::format("{:.{}f}/s", speed, speed < 10 ? 1 : 0));
  if (answer.prompt.reused_tokens > 0) {
    parts.push_back(fmt::format("{} reused", answer.prompt.reused_tokens));
  }
  parts.push_back(show_bytes(usage.used_bytes()));
  if (answer.left_out_tokens > 0) {
    parts.push_back(fmt::format("{} left out", answer.left_out_tokens));
  }
  if (answer.finish == session::FinishReason::interrupted) parts.emplace_back("interrupted");
  std::string line;
  size_t columns = 0;
  for (const std::string& part : parts) {
    // All that stands between parts is three columns wide.
    const size_t width = part.size() + (line.empty() ? 0 : 3);
    if (columns + width > kColumnsMax) break;
    line += line.empty() ? "" : kBetween;
    line += part;
    columns += width;
  }
  return line;
}

std::string cut_line(const session::Answer& answer) {
  std::string line;
  if (!answer.cut_by.empty()) line = "the answer was cut off: " + answer.cut_by;
  if (answer.fits_form || answer.finish == session::FinishReason::interrupted) return line;
  if (line.empty()) line = "the answer ended early";
  return line + "; it does not have the requested form";
}

std::string shift_line(const ContextShift& shift) {
  return fmt::format("leaving out {} {} ({} tokens), reading {} tokens again", shift.left_out_turns,
                     shift.left_out_turns == 1 ? "turn" : "turns", shift.left_out_tokens,
                     shift.read_tokens);
}

std::string statistics_line(const session::Answer& answer, const memory::Usage& usage,
                            const ContextUse& context) {
  std::string line = fmt::format("{} tokens", answer.tokens.size());
  if (answer.tokens.size() > 0) {
    line += fmt::format(", {:.1f} a second", rate(answer.tokens.size(), answer.generation_seconds));
  }
  if (answer.reasoning_tokens > 0) {
    line += fmt::format(", {} of them reasoning", answer.reasoning_tokens);
  }
  if (answer.drafts && answer.drafts->drafted() > 0) {
    line += fmt::format(", {} of {} drafted ones right", answer.drafts->accepted(),
                        answer.drafts->drafted());
  }
  line += fmt::format("; prompt of {} tokens, {} reused", answer.prompt.prompt_tokens,
                      answer.prompt.reused_tokens);
  if (answer.prompt.from_store) {
    line += " from the disk";
  } else if (answer.prompt.from_cache) {
    line += " from the cache";
  }
  if (answer.prompt.plan.limited_by == "adapters") line += ", the rest read again: other adapters";
  if (answer.prompt.computed_tokens > 0) {
    line += fmt::format(", {:.1f} a second",
                        rate(size_t(answer.prompt.computed_tokens), answer.prompt_seconds));
  }
  if (answer.prompt.plan.recurrence_steps > 0) {
    line += fmt::format(", {} recurrence steps", answer.prompt.plan.recurrence_steps);
  }
  if (answer.left_out_tokens > 0) line += fmt::format("; {} left out", answer.left_out_tokens);
  if (answer.first_token_seconds > 0) {
    line += fmt::format("; first token after {}", show_seconds(answer.first_token_seconds));
  }
  if (answer.finish != session::FinishReason::stop)
    line += fmt::format("; end: {}", name(answer.finish));
  if (context.free_tokens >= 0) {
    line += fmt::format("; context {} of {}", context.used_tokens,
                        int64_t(context.used_tokens) + context.free_tokens);
  }
  line += "; memory " + memory_line(usage);
  if (context.weight_bytes > 0) line += ", weights " + show_bytes(context.weight_bytes);
  return line;
}

std::string answer_json(const session::Answer& answer, const AnswerContext& context,
                        const tokenize::Tokenizer& tokenizer) {
  json::Value json;
  json["text"] = answer.text;
  if (!answer.message.reasoning.empty()) json["reasoning"] = answer.message.reasoning;
  for (const chat::ToolCall& call : answer.message.calls) {
    json["tool_calls"].push_back(
        {{"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  json["tokens"] = answer.tokens.size();
  json["reasoning_tokens"] = answer.reasoning_tokens;
  json["prompt_tokens"] = answer.prompt.prompt_tokens;
  json["reused_tokens"] = answer.prompt.reused_tokens;
  json["recurrence_steps"] = answer.prompt.plan.recurrence_steps;
  json["limited_by"] = std::string(answer.prompt.plan.limited_by);
  json["from_cache"] = answer.prompt.from_cache;
  json["from_store"] = answer.prompt.from_store;
  json["left_out_tokens"] = answer.left_out_tokens;
  json["left_out_turns"] = answer.left_out_turns;
  for (const sample::LogProbabilities& one : answer.probabilities) {
    json::Value token = probability_json(one.chosen, tokenizer);
    for (const sample::TokenProbability& other : one.top) {
      token["top_logprobs"].push_back(probability_json(other, tokenizer));
    }
    json["logprobs"]["content"].push_back(std::move(token));
  }
  json["finish_reason"] = std::string(name(answer.finish));
  json["finish"] = finish_json(answer);
  json["context"] = context_json(context);
  json["timings"] = {
      {"prompt_ms", answer.prompt_seconds * 1e3},
      {"first_token_ms", answer.first_token_seconds * 1e3},
      {"generation_ms", answer.generation_seconds * 1e3},
      {"prompt_tokens_per_second",
       rate(size_t(answer.prompt.computed_tokens), answer.prompt_seconds)},
      {"tokens_per_second", rate(answer.tokens.size(), answer.generation_seconds)},
  };
  json["memory"] = {{"page_bytes", context.memory.page_bytes},
                    {"state_bytes", context.memory.state_bytes},
                    {"budget_bytes", context.memory.budget_bytes}};
  json["sampling"] = sampling_json(context.sampling);
  json["model"] = std::string(context.model);
  json["architecture"] = std::string(context.architecture);
  return json::to_text(json);
}

}  // namespace cairn::terminal_chat
