// The table of sampling parameters. Defaults and ranges are those that other local engines have
// made people used to.
#include "sample/params.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "sample/stage.h"

namespace cairn::sample {

namespace {

using P = SamplingParams;

constexpr int32_t kCountMax = 1 << 24;

constexpr SamplingField real(std::string_view option, std::string_view name, std::string_view key,
                             float P::*member, double min, double max, std::string_view doc) {
  return {option, name, key, member, nullptr, nullptr, min, max, doc};
}

constexpr SamplingField count(std::string_view option, std::string_view name, std::string_view key,
                              int32_t P::*member, double min, double max, std::string_view doc) {
  return {option, name, key, nullptr, member, nullptr, min, max, doc};
}

constexpr SamplingField flag(std::string_view option, std::string_view name, bool P::*member,
                             std::string_view doc) {
  return {option, name, {}, nullptr, nullptr, member, 0, 1, doc};
}

constexpr SamplingField kFields[] = {
    real("temp", "temperature", "general.sampling.temp", &P::temperature, 0, 100,
         "temperature: higher values make unlikely tokens likelier; 0 always takes the likeliest"),
    count("top-k", "top_k", "general.sampling.top_k", &P::top_k, -1, kCountMax,
          "keep only the N likeliest tokens; 0 or less: all"),
    real("top-p", "top_p", "general.sampling.top_p", &P::top_p, 0, 1,
         "keep the likeliest tokens whose probabilities add up to X; 1: all"),
    real("min-p", "min_p", "general.sampling.min_p", &P::min_p, 0, 1,
         "drop tokens less likely than X times the likeliest; 0: none"),
    real("typical-p", "typical_p", {}, &P::typical_p, 0, 1,
         "keep the tokens of the most typical information content whose probabilities add up to X; "
         "1: all"),
    real("top-n-sigma", "top_n_sigma", {}, &P::top_n_sigma, -1, 100,
         "drop tokens whose logit is more than X standard deviations below the highest; 0 or less: "
         "none"),
    real("xtc-probability", "xtc_probability", "general.sampling.xtc_probability",
         &P::xtc_probability, 0, 1,
         "XTC: probability of dropping all but the last of the tokens above --xtc-threshold; 0: "
         "never"),
    real("xtc-threshold", "xtc_threshold", "general.sampling.xtc_threshold", &P::xtc_threshold, 0,
         1, "XTC: the probability above which tokens may be dropped; above 0.5: none"),
    real("dynatemp-range", "dynatemp_range", {}, &P::dynatemp_range, 0, 100,
         "dynamic temperature: lower by up to X where the model is sure, higher by up to X where "
         "it is "
         "not; 0: off"),
    real("dynatemp-exp", "dynatemp_exponent", {}, &P::dynatemp_exponent, 0, 100,
         "dynamic temperature: exponent that maps entropy (0 to 1) to the temperature range"),
    count("repeat-last-n", "repeat_last_n", "general.sampling.penalty_last_n",
          &P::repeat_last_count, -1, kCountMax,
          "repeat, presence and frequency penalties look at the last N tokens; 0: none, -1: all"),
    real("repeat-penalty", "repeat_penalty", "general.sampling.penalty_repeat", &P::repeat_penalty,
         0.0001, 100, "divide the logits of tokens that have occurred by X; 1: off"),
    real("presence-penalty", "presence_penalty", {}, &P::presence_penalty, -100, 100,
         "subtract X from the logits of tokens that have occurred; 0: off"),
    real("frequency-penalty", "frequency_penalty", {}, &P::frequency_penalty, -100, 100,
         "subtract X from the logit of a token for each time it has occurred; 0: off"),
    real("dry-multiplier", "dry_multiplier", {}, &P::dry_multiplier, 0, 100,
         "DRY: penalty of tokens that would continue a repeated sequence: multiplier * base ^ "
         "(length - allowed length); 0: off"),
    real("dry-base", "dry_base", {}, &P::dry_base, 0, 100,
         "DRY: base of the penalty; values below 1 mean 1.75"),
    count("dry-allowed-length", "dry_allowed_length", {}, &P::dry_allowed_length, 0, kCountMax,
          "DRY: length up to which repeated sequences are not penalized, in tokens"),
    count("dry-penalty-last-n", "dry_penalty_last_n", {}, &P::dry_last_count, -1, kCountMax,
          "DRY: look for repeated sequences in the last N tokens; 0: none, -1: all"),
    count("mirostat", "mirostat", "general.sampling.mirostat", &P::mirostat, 0, 2,
          "choose tokens by Mirostat, version 1 or 2, which holds the perplexity near a target, "
          "instead of --samplers; 0: off"),
    real("mirostat-ent", "mirostat_tau", "general.sampling.mirostat_tau", &P::mirostat_tau, 0, 100,
         "Mirostat: target of the information content per token, in bits"),
    real("mirostat-lr", "mirostat_eta", "general.sampling.mirostat_eta", &P::mirostat_eta, 0, 100,
         "Mirostat: learning rate"),
    real("adaptive-target", "adaptive_target", {}, &P::adaptive_target, -1, 1,
         "adaptive-p: prefer tokens of a probability near X (needs adaptive_p in --samplers); "
         "negative: off"),
    real("adaptive-decay", "adaptive_decay", {}, &P::adaptive_decay, 0, 0.99,
         "adaptive-p: averages the probabilities of about 1 / (1 - X) tokens"),
    count("min-keep", "min_keep", {}, &P::min_keep, 0, kCountMax,
          "samplers that drop tokens keep at least N"),
    count("n-probs", "n_probs", {}, &P::probability_count, 0, 100,
          "with --json: report the N likeliest tokens at each position"),
    flag("post-sampling-probs", "post_sampling_probs", &P::post_sampling_probs,
         "with --n-probs: report probabilities after sampling, not before"),
    flag("ignore-eos", "ignore_eos", &P::ignore_eos, "never choose the token that ends an answer"),
};

Status set_samplers(SamplingParams& params, std::span<const std::string> values) {
  // One text may name them all; several are one name each.
  if (values.size() == 1) {
    CAIRN_TRY(params.samplers, sampler_order(std::string_view(values[0])));
  } else {
    CAIRN_TRY(params.samplers, sampler_order(values));
  }
  return Ok{};
}

Status set_logit_bias(SamplingParams& params, std::span<const std::string> values) {
  std::vector<LogitBias> biases;
  for (const std::string& value : values) {
    CAIRN_TRY(LogitBias bias, parse_logit_bias(value));
    biases.push_back(std::move(bias));
  }
  params.logit_bias = std::move(biases);
  return Ok{};
}

// "none" alone means that there are no breakers. Escapes, since a shell passes no line break.
Status set_dry_breakers(SamplingParams& params, std::span<const std::string> values) {
  std::vector<std::string> breakers;
  for (const std::string& value : values) {
    if (value == "none") continue;
    if (value.empty()) {
      return fail(ErrorCode::invalid_argument,
                  "dry-sequence-breaker: expected some text, found none");
    }
    std::string breaker;
    for (size_t i = 0; i < value.size(); ++i) {
      const bool is_break = value.compare(i, 2, "\\n") == 0;
      breaker += is_break ? '\n' : value[i];
      i += is_break ? 1 : 0;
    }
    breakers.push_back(std::move(breaker));
  }
  params.dry_breakers = std::move(breakers);
  return Ok{};
}

constexpr SamplingList kLists[] = {
    {"samplers", "samplers", "general.sampling.sequence",
     "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature",
     "the samplers in their order: names separated by \";\", or one letter each (edskypmxt)",
     set_samplers},
    {"logit-bias",
     "logit_bias",
     {},
     "",
     "add to the logit of a token: 15043+1, 15043-inf (never), or text=-2; may be given several "
     "times",
     set_logit_bias},
    {"dry-sequence-breaker",
     "dry_sequence_breakers",
     {},
     "\\n : \" *",
     "DRY: text that ends repeated sequences; none: no such text; may be given several times",
     set_dry_breakers},
};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
}

// "Top-K" and "topk" are "top_k".
bool is_spelling(std::string_view text, std::string_view name) {
  size_t at = 0;
  for (const char c : name) {
    const bool is_gap = c == '_' && (at == text.size() || (text[at] != '_' && text[at] != '-'));
    if (is_gap) continue;
    if (at == text.size()) return false;
    const char found = text[at] == '-' ? '_' : lower(text[at]);
    if (found != c) return false;
    ++at;
  }
  return at == text.size();
}

const SamplerStage* find_stage(std::string_view text) {
  if (is_spelling(text, "nucleus")) text = "top_p";
  if (is_spelling(text, "temp")) text = "temperature";
  if (is_spelling(text, "typ") || is_spelling(text, "typical")) text = "typ_p";
  for (const SamplerStage* stage : all_stages()) {
    if (stage->letter != 0 && is_spelling(text, stage->name)) return stage;
  }
  return nullptr;
}

Error unknown_stage(std::string_view text) {
  std::string names;
  for (const SamplerStage* stage : all_stages()) {
    if (stage->letter == 0) continue;
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", stage->name, stage->letter);
  }
  return fail(ErrorCode::invalid_argument, "samplers: expected some of {}, found \"{}\"", names,
              text);
}

}  // namespace

std::span<const SamplingField> sampling_fields() {
  return kFields;
}

std::span<const SamplingList> sampling_lists() {
  return kLists;
}

double get(const SamplingParams& params, const SamplingField& field) {
  if (field.flag != nullptr) return params.*field.flag ? 1 : 0;
  return field.real != nullptr ? double(params.*field.real) : double(params.*field.count);
}

Status set(SamplingParams& params, const SamplingField& field, double value) {
  const bool in_range = value >= field.min && value <= field.max;  // False for NaN.
  if (!in_range || (field.real == nullptr && value != std::floor(value))) {
    return fail(ErrorCode::invalid_argument, "{}: expected {} from {} to {}, found {}",
                field.option, field.real == nullptr ? "a whole number" : "a number", field.min,
                field.max, value);
  }
  if (field.real != nullptr) params.*field.real = float(value);
  if (field.count != nullptr) params.*field.count = int32_t(value);
  if (field.flag != nullptr) params.*field.flag = value != 0;
  return Ok{};
}

std::string show(const SamplingParams& params, const SamplingField& field) {
  if (field.flag != nullptr) return params.*field.flag ? "on" : "off";
  if (field.count != nullptr) return fmt::format("{}", params.*field.count);
  return fmt::format("{}", params.*field.real);
}

Result<std::vector<std::string_view>> sampler_order(std::span<const std::string> names) {
  std::vector<std::string_view> order;
  for (const std::string& name : names) {
    const SamplerStage* stage = find_stage(name);
    if (stage == nullptr) return unknown_stage(name);
    order.push_back(stage->name);
  }
  return order;
}

Result<std::vector<std::string_view>> sampler_order(std::string_view text) {
  std::vector<std::string> names;
  if (text.find_first_of(";,") == text.npos && find_stage(text) == nullptr) {
    std::vector<std::string_view> order;
    for (const char letter : text) {
      const auto stages = all_stages();
      const auto at = std::find_if(stages.begin(), stages.end(), [letter](const SamplerStage* s) {
        return s->letter != 0 && s->letter == letter;
      });
      if (at == stages.end()) return unknown_stage(text);
      order.push_back((*at)->name);
    }
    return order;
  }
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(";,"), text.size());
    if (end > 0) names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return sampler_order(names);
}

Result<LogitBias> parse_logit_bias(std::string_view text) {
  LogitBias bias;
  int32_t token = -1;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, token);
  std::string_view value(after, size_t(end - after));
  if (error == std::errc() && token >= 0 && !value.empty() &&
      (value[0] == '+' || value[0] == '-' || value[0] == '=')) {
    bias.token = Token(token);
    if (value[0] != '-') value.remove_prefix(1);
  } else {
    const size_t sign = text.rfind('=');
    if (sign == text.npos || sign == 0) {
      return fail(ErrorCode::invalid_argument,
                  "logit-bias: expected TOKEN+BIAS, TOKEN-BIAS or TEXT=BIAS, found \"{}\"", text);
    }
    bias.text = text.substr(0, sign);
    value = text.substr(sign + 1);
  }
  if (value == "false") {
    bias.bias = -std::numeric_limits<float>::infinity();
    return bias;
  }
  const char* const value_end = value.data() + value.size();
  const auto [rest, wrong] = std::from_chars(value.data(), value_end, bias.bias);
  if (value.empty() || wrong != std::errc() || rest != value_end || std::isnan(bias.bias)) {
    return fail(ErrorCode::invalid_argument,
                "logit-bias: expected a number or \"false\" behind the token, found \"{}\"", value);
  }
  return bias;
}

Status check_logit_bias(const SamplingParams& params, int32_t vocabulary_count) {
  for (const LogitBias& bias : params.logit_bias) {
    if (!bias.text.empty() || index_of(bias.token) < vocabulary_count) continue;
    return fail(ErrorCode::invalid_argument, "logit-bias: expected a token below {}, found {}",
                vocabulary_count, index_of(bias.token));
  }
  return Ok{};
}

}  // namespace cairn::sample
