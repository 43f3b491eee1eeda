// Figures of answers.
#include "serve/answer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

namespace cairn::serve {

namespace {

// To a thousandth: more would be noise.
double rounded(double value) {
  return std::round(value * 1e3) / 1e3;
}

double milliseconds(double seconds) {
  return rounded(seconds * 1e3);
}

double rate(int64_t count, double seconds) {
  return seconds > 0 ? rounded(double(count) / seconds) : 0;
}

double share(double seconds, int64_t count) {
  return count > 0 ? milliseconds(seconds / double(count)) : 0;
}

// Over several answers, of which `per_prompt` have one prompt each time. They run side by side, so
// of times the longest counts.
struct Totals {
  int64_t prompt_tokens = 0, reused_tokens = 0, computed_tokens = 0;
  int64_t answer_tokens = 0, reasoning_tokens = 0;
  double prompt_seconds = 0, answer_seconds = 0;
};

Totals total(std::span<const session::Answer> answers, size_t per_prompt) {
  Totals totals;
  for (size_t choice = 0; choice < answers.size(); ++choice) {
    const session::Answer& answer = answers[choice];
    totals.answer_tokens += int64_t(answer.tokens.size());
    totals.reasoning_tokens += answer.reasoning_tokens;
    totals.answer_seconds = std::max(totals.answer_seconds, answer.generation_seconds);
    if (choice % per_prompt != 0) continue;
    totals.prompt_tokens += answer.prompt.prompt_tokens;
    totals.reused_tokens += answer.prompt.reused_tokens;
    totals.computed_tokens += answer.prompt.computed_tokens;
    totals.prompt_seconds = std::max(totals.prompt_seconds, answer.prompt_seconds);
  }
  return totals;
}

// Without its end: "{…".
void append_probability(const sample::TokenProbability& one, const tokenize::Tokenizer& tokenizer,
                        bool as_share, std::string& out) {
  const std::string_view piece = tokenizer.piece(one.token);
  const std::vector<unsigned> bytes(reinterpret_cast<const uint8_t*>(piece.data()),
                                    reinterpret_cast<const uint8_t*>(piece.data() + piece.size()));
  const double value =
      as_share ? std::exp(double(one.log_probability)) : finite(one.log_probability);
  out += fmt::format(R"({{"id":{},"token":{},"bytes":[{}],"{}":{})", index_of(one.token),
                     json::to_text(piece), fmt::join(bytes, ","), as_share ? "prob" : "logprob",
                     json::to_text(value));
}

}  // namespace

double finite(float log_probability) {
  return std::max(double(log_probability), -9999.0);
}

ObjectHead make_object_head(std::string_view prefix, std::string_view model) {
  std::random_device device;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = fmt::format("{}{:08x}{:08x}{:08x}", prefix, device(), device(), device()),
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
          .model = std::string(model)};
}

json::Value object_json(const ObjectHead& head, std::string_view kind) {
  return {{"id", head.id},
          {"object", kind},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", "cairn-" CAIRN_VERSION}};
}

// Clients know no other reasons.
std::string_view finish_reason(const session::Answer& answer) {
  switch (answer.finish) {
    case session::FinishReason::tool_calls:
      return "tool_calls";
    case session::FinishReason::length:
    case session::FinishReason::context:
    case session::FinishReason::memory:
      return "length";
    case session::FinishReason::stop:
    case session::FinishReason::interrupted:
      break;
  }
  return "stop";
}

namespace {

// Of drafts of several answers; by who proposed them.
struct DraftCounts {
  int64_t drafted = 0, accepted = 0;
};

DraftCounts count_drafts(std::span<const session::Answer> answers, std::string_view drafter) {
  DraftCounts counts;
  for (const session::Answer& answer : answers) {
    if (!answer.drafts) continue;
    for (const draft::Report::Source& source : answer.drafts->sources) {
      if (!drafter.empty() && source.drafter != drafter) continue;
      counts.drafted += source.drafted;
      counts.accepted += source.accepted;
    }
  }
  return counts;
}

json::Value drafts_json(const draft::Report& report) {
  json::Value by = json::Value::object();
  for (const draft::Report::Source& source : report.sources) {
    json::Value& one = by[source.drafter];
    one = {{"drafted", source.drafted}, {"accepted", source.accepted}};
    if (!source.off_reason.empty()) one["off_reason"] = source.off_reason;
  }
  json::Value json = {{"steps", report.steps}, {"saved_ms", milliseconds(report.saved_seconds)}};
  if (!report.off_reason.empty()) json["off_reason"] = report.off_reason;
  json["by"] = std::move(by);
  return json;
}

// In llama.cpp's names the sums; and of one answer all there is to say.
void add_drafts(std::span<const session::Answer> answers, json::Value& json) {
  const DraftCounts all = count_drafts(answers, {});
  if (all.drafted > 0) {
    json["draft_n"] = all.drafted;
    json["draft_n_accepted"] = all.accepted;
  }
  if (answers.size() == 1 && answers.front().drafts) {
    json["drafts"] = drafts_json(*answers.front().drafts);
  }
}

}  // namespace

json::Value usage_json(std::span<const session::Answer> answers, size_t per_prompt) {
  const Totals totals = total(answers, per_prompt);
  json::Value details = {{"reasoning_tokens", totals.reasoning_tokens}};
  const DraftCounts predicted = count_drafts(answers, "prediction");
  if (predicted.drafted > 0) {
    details["accepted_prediction_tokens"] = predicted.accepted;
    details["rejected_prediction_tokens"] = predicted.drafted - predicted.accepted;
  }
  return {{"prompt_tokens", totals.prompt_tokens},
          {"completion_tokens", totals.answer_tokens},
          {"total_tokens", totals.prompt_tokens + totals.answer_tokens},
          {"prompt_tokens_details", {{"cached_tokens", totals.reused_tokens}}},
          {"completion_tokens_details", std::move(details)}};
}

json::Value timings_json(std::span<const session::Answer> answers, size_t per_prompt) {
  const Totals totals = total(answers, per_prompt);
  json::Value json = {
      {"cache_n", totals.reused_tokens},
      {"prompt_n", totals.computed_tokens},
      {"prompt_ms", milliseconds(totals.prompt_seconds)},
      {"prompt_per_token_ms", share(totals.prompt_seconds, totals.computed_tokens)},
      {"prompt_per_second", rate(totals.computed_tokens, totals.prompt_seconds)},
      {"predicted_n", totals.answer_tokens},
      {"predicted_ms", milliseconds(totals.answer_seconds)},
      {"predicted_per_token_ms", share(totals.answer_seconds, totals.answer_tokens)},
      {"predicted_per_second", rate(totals.answer_tokens, totals.answer_seconds)}};
  add_drafts(answers, json);
  return json;
}

json::Value memory_json(const session::Answer& answer) {
  const PromptReport& prompt = answer.prompt;
  const std::string_view source = prompt.from_peer           ? "peer"
                                  : prompt.from_tier         ? "tier"
                                  : prompt.from_store        ? "disk"
                                  : prompt.reused_tokens > 0 ? "cache"
                                                             : "none";
  json::Value json = {{"reused", prompt.reused_tokens},
                      {"recomputed", prompt.computed_tokens},
                      {"replayed", prompt.plan.recurrence_steps},
                      {"left_out", answer.left_out_tokens},
                      {"source", source}};
  if (answer.pinned_tokens > 0) json["pinned"] = answer.pinned_tokens;
  if (!prompt.plan.reason.empty()) json["reason"] = prompt.plan.reason;
  if (!prompt.tier.empty()) json["tier"] = prompt.tier;
  if (!answer.program.empty()) json["program"] = answer.program;
  return json;
}

void begin_member(std::string_view key, std::string& object_text) {
  object_text.pop_back();
  if (object_text.back() != '{') object_text += ',';
  object_text += json::quoted(key) + ":";
}

void TextList::add(std::string_view item) {
  if (!ends_.empty()) text_ += ',';
  text_ += item;
  ends_.push_back(text_.size());
}

void TextList::cut(size_t count) {
  if (count >= ends_.size()) return;
  ends_.resize(count);
  text_.resize(ends_.empty() ? 0 : ends_.back());
}

void ProbabilityTexts::add(std::span<const sample::LogProbabilities> more) {
  std::string item;
  for (const sample::LogProbabilities& one : more) {
    item.clear();
    append_probability(one.chosen, *tokenizer_, style_.as_shares, item);
    item += style_.as_shares ? R"(,"top_probs":[)" : R"(,"top_logprobs":[)";
    const size_t count = std::min(one.top.size(), size_t(style_.top_count));
    for (size_t other = 0; other < count; ++other) {
      if (other > 0) item += ',';
      append_probability(one.top[other], *tokenizer_, style_.as_shares, item);
      item += '}';
    }
    item += "]}";
    list_.add(item);
  }
}

void ProbabilityTexts::complete(std::span<const sample::LogProbabilities> all) {
  list_.cut(all.size());
  add(all.subspan(list_.size()));
}

void ProbabilityTexts::take(std::string& out) {
  out += '[';
  out += list_.text();
  out += ']';
  list_ = {};
}

}  // namespace cairn::serve
