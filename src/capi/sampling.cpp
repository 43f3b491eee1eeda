// One table for both directions.
#include "capi/sampling.h"

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/value.h"
#include "sample/params.h"
#include "session/constraint.h"
#include "session/sampling_choice.h"

namespace cairn::capi {

namespace {

using sample::SamplingParams;

struct RealMember {
  float cairn_sampling::*ours;
  float SamplingParams::*theirs;
};
constexpr RealMember kReals[] = {
    {&cairn_sampling::temperature, &SamplingParams::temperature},
    {&cairn_sampling::top_p, &SamplingParams::top_p},
    {&cairn_sampling::min_p, &SamplingParams::min_p},
    {&cairn_sampling::typical_p, &SamplingParams::typical_p},
    {&cairn_sampling::top_n_sigma, &SamplingParams::top_n_sigma},
    {&cairn_sampling::xtc_probability, &SamplingParams::xtc_probability},
    {&cairn_sampling::xtc_threshold, &SamplingParams::xtc_threshold},
    {&cairn_sampling::repeat_penalty, &SamplingParams::repeat_penalty},
    {&cairn_sampling::presence_penalty, &SamplingParams::presence_penalty},
    {&cairn_sampling::frequency_penalty, &SamplingParams::frequency_penalty},
    {&cairn_sampling::dry_multiplier, &SamplingParams::dry_multiplier},
    {&cairn_sampling::dry_base, &SamplingParams::dry_base},
    {&cairn_sampling::dynatemp_range, &SamplingParams::dynatemp_range},
    {&cairn_sampling::dynatemp_exponent, &SamplingParams::dynatemp_exponent},
    {&cairn_sampling::mirostat_tau, &SamplingParams::mirostat_tau},
    {&cairn_sampling::mirostat_eta, &SamplingParams::mirostat_eta},
};

struct CountMember {
  int32_t cairn_sampling::*ours;
  int32_t SamplingParams::*theirs;
};
constexpr CountMember kCounts[] = {
    {&cairn_sampling::top_k, &SamplingParams::top_k},
    {&cairn_sampling::repeat_last_count, &SamplingParams::repeat_last_count},
    {&cairn_sampling::dry_allowed_length, &SamplingParams::dry_allowed_length},
    {&cairn_sampling::dry_last_count, &SamplingParams::dry_last_count},
    {&cairn_sampling::mirostat, &SamplingParams::mirostat},
};

constexpr uint32_t kFlags = CAIRN_SAMPLING_SEED | CAIRN_SAMPLING_IGNORE_END |
                            CAIRN_SAMPLING_LOGPROBS | CAIRN_SAMPLING_RECEIPT;

// The fields of the library's table know what is in range.
Status set_numbers(const cairn_sampling& sampling, SamplingParams& params) {
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    for (const RealMember& member : kReals) {
      if (field.real != member.theirs) continue;
      CAIRN_TRY(set(params, field, double(sampling.*member.ours)));
    }
    for (const CountMember& member : kCounts) {
      if (field.count != member.theirs) continue;
      CAIRN_TRY(set(params, field, double(sampling.*member.ours)));
    }
  }
  return Ok{};
}

Result<json::Value> read_list(std::string_view name, const char* text) {
  CAIRN_TRY(json::Value list, json::read_value(name, text, {}));
  if (list.is_array()) return list;
  return fail(ErrorCode::invalid_argument, "{}: expected a list, found {}", name, list.describe());
}

Result<std::vector<std::string>> read_stop(const char* text) {
  CAIRN_TRY(const json::Value list, read_list("stop_json", text));
  std::vector<std::string> stop;
  for (const json::Value& item : list.items()) {
    const std::optional<std::string_view> found = item.as_text();
    if (!found || found->empty()) {
      return fail(ErrorCode::invalid_argument, "stop_json: expected texts, found {}",
                  item.describe());
    }
    stop.emplace_back(*found);
  }
  return stop;
}

// [token or text, number or false]
Result<sample::LogitBias> read_bias(const json::Value& item) {
  const std::vector<json::Value>& pair = item.items();
  sample::LogitBias bias;
  bool is_right = pair.size() == 2;
  if (is_right) {
    const std::optional<int64_t> token = pair[0].as_integer();
    const std::optional<std::string_view> text = pair[0].as_text();
    const std::optional<double> number = pair[1].as_real();
    const bool is_ban = pair[1].as_boolean() == false;
    const bool is_token = token && *token >= 0 && *token <= INT32_MAX;
    is_right = (is_token || (text && !text->empty())) && (is_ban || number);
    if (is_token) bias.token = Token(*token);
    if (text) bias.text = *text;
    bias.bias = number ? float(*number) : -std::numeric_limits<float>::infinity();
  }
  if (is_right) return bias;
  return fail(ErrorCode::invalid_argument,
              "logit_bias_json: expected pairs of a token or a text and a number or false, found "
              "{}",
              item.describe());
}

Status set_texts(const cairn_sampling& sampling, AnswerTerms& terms) {
  if (sampling.stop_json != nullptr) {
    CAIRN_TRY(terms.stop, read_stop(sampling.stop_json));
  }
  if (sampling.samplers != nullptr) {
    CAIRN_TRY(terms.sampling.samplers, sample::sampler_order(std::string_view(sampling.samplers)));
  }
  if (sampling.logit_bias_json == nullptr) return Ok{};
  CAIRN_TRY(const json::Value list, read_list("logit_bias_json", sampling.logit_bias_json));
  for (const json::Value& item : list.items()) {
    CAIRN_TRY(sample::LogitBias bias, read_bias(item));
    terms.sampling.logit_bias.push_back(std::move(bias));
  }
  return Ok{};
}

Status set_form(const cairn_sampling& sampling, EngineObject& engine, AnswerTerms& terms) {
  session::ConstraintChoice& choice = terms.form;
  if (sampling.grammar != nullptr) choice.grammar = sampling.grammar;
  if (sampling.json_schema != nullptr) choice.json_schema = sampling.json_schema;
  if (choice.count() == 0) return Ok{};
  if (engine.tokenizer() == nullptr) {
    return fail(ErrorCode::unsupported, "grammar: expected a model with a vocabulary, found none");
  }
  CAIRN_TRY(terms.matcher, session::make_matcher(choice, *engine.traits().text, engine.grammars()));
  return Ok{};
}

}  // namespace

Result<cairn_sampling> suggested_sampling(const ModelObject& model) {
  CAIRN_TRY(const SamplingParams params,
            session::effective_sampling(model.file.fields(), false, {}));
  cairn_sampling sampling{};
  sampling.seed = params.seed;
  for (const RealMember& member : kReals) sampling.*member.ours = params.*member.theirs;
  for (const CountMember& member : kCounts) sampling.*member.ours = params.*member.theirs;
  sampling.max_tokens = -1;
  return sampling;
}

Result<std::shared_ptr<const AnswerTerms>> terms_of(const cairn_sampling& sampling,
                                                    EngineObject& engine) {
  if ((sampling.flags & ~kFlags) != 0) {
    return fail(ErrorCode::invalid_argument, "sampling.flags: expected CAIRN_SAMPLING_…, found {}",
                sampling.flags);
  }
  if (sampling.max_tokens < -1) {
    return fail(ErrorCode::invalid_argument, "sampling.max_tokens: expected -1 or more, found {}",
                sampling.max_tokens);
  }
  if ((sampling.flags & CAIRN_SAMPLING_RECEIPT) != 0 && !engine.traits().keeps_receipts) {
    return fail(ErrorCode::unsupported,
                "sampling.flags: receipts are of the backend cairn, found {}",
                engine.traits().backend);
  }
  const auto terms = std::make_shared<AnswerTerms>();
  CAIRN_TRY(terms->sampling, session::effective_sampling(*engine.traits().fields, false, {}));
  CAIRN_TRY(set_numbers(sampling, terms->sampling));
  if ((sampling.flags & CAIRN_SAMPLING_SEED) != 0) terms->sampling.seed = sampling.seed;
  terms->sampling.ignore_eos = (sampling.flags & CAIRN_SAMPLING_IGNORE_END) != 0;
  terms->sampling.probability_count = (sampling.flags & CAIRN_SAMPLING_LOGPROBS) != 0 ? 1 : 0;
  terms->token_count_max = sampling.max_tokens;
  terms->wants_receipt = (sampling.flags & CAIRN_SAMPLING_RECEIPT) != 0;
  if (sampling.draft != nullptr) {
    if (engine.traits().backend != "cairn") {
      return fail(ErrorCode::unsupported,
                  "sampling.draft: drafts are of the backend cairn, found {}",
                  engine.traits().backend);
    }
    CAIRN_TRY(terms->drafts.choice, session::parse_draft_choice(sampling.draft));
  }
  CAIRN_TRY(set_texts(sampling, *terms));
  CAIRN_TRY(sample::check_logit_bias(terms->sampling, engine.traits().vocabulary_count));
  CAIRN_TRY(set_form(sampling, engine, *terms));
  return std::shared_ptr<const AnswerTerms>(terms);
}

}  // namespace cairn::capi
