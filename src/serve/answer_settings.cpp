// Field by field.
#include "serve/answer_settings.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "session/sampling_choice.h"

namespace cairn::serve {

namespace {

constexpr size_t kStopBytesMax = 512;
constexpr size_t kBiasesMax = 4096;

Checked<Ok> read_fields(const Body& body, sample::SamplingParams& params) {
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    const json::Value* const found = body.find(field.name);
    if (found == nullptr) continue;
    const double value = field.flag != nullptr ? double(*found->as_boolean()) : *found->as_real();
    if (const Status status = set(params, field, value); !status) {
      return refuse_field(field.name, "{}", status.error().message);
    }
  }
  return Ok{};
}

Checked<Ok> read_lists(const Body& body, sample::SamplingParams& params) {
  for (const sample::SamplingList& list : sample::sampling_lists()) {
    if (list.name == "logit_bias" || body.find(list.name) == nullptr) continue;
    const json::Value& found = *body.find(list.name);
    std::vector<std::string> values;
    if (const auto text = found.as_text()) values.emplace_back(*text);
    for (const json::Value& item : found.items()) {
      if (!item.as_text()) {
        return refuse_field(list.name, "expected strings, found {}", item.describe());
      }
      values.emplace_back(*item.as_text());
    }
    if (!found.as_text() && !found.is_array()) {
      return refuse_field(list.name, "expected a list of strings, found {}", found.describe());
    }
    const bool is_order = list.name == "samplers" && found.is_array();
    if (is_order) {
      Result<std::vector<std::string_view>> order =
          sample::sampler_order(std::span<const std::string>(values));
      if (!order) return refusal_of(order.error(), list.name);
      params.samplers = *order;
      continue;
    }
    if (const Status status = list.set(params, values); !status) {
      return refusal_of(status.error(), list.name);
    }
  }
  return Ok{};
}

// The token or text, and what is added: a number, or false for "never".
Checked<sample::LogitBias> read_bias(const json::Value& key, const json::Value& value) {
  sample::LogitBias bias;
  if (const auto id = key.as_integer(); id && *id >= 0 && *id <= INT32_MAX) {
    bias.token = Token(int32_t(*id));
  } else if (const auto text = key.as_text()) {
    bias.text = *text;
  } else {
    return refuse_field("logit_bias", "expected a token's id or a text, found {}", key.describe());
  }
  if (const auto number = value.as_real()) {
    bias.bias = float(*number);
  } else if (value.as_boolean() == false) {
    bias.bias = -std::numeric_limits<float>::infinity();
  } else {
    return refuse_field("logit_bias", "expected a number or false, found {}", value.describe());
  }
  return bias;
}

std::optional<int64_t> decimal_of(std::string_view text) {
  return json::is_json(text, {}) ? json::integer_of(text) : std::nullopt;
}

Checked<Ok> read_biases(const Body& body, sample::SamplingParams& params) {
  const json::Value* const found = body.find("logit_bias");
  if (found == nullptr) return Ok{};
  if (!found->is_object() && !found->is_array()) {
    return refuse_field("logit_bias", "expected an object or a list, found {}", found->describe());
  }
  if (found->members().size() + found->items().size() > kBiasesMax) {
    return refuse_field("logit_bias", "expected at most {} tokens, found {}", kBiasesMax,
                        found->members().size() + found->items().size());
  }
  params.logit_bias.clear();
  for (const json::Value::Member& member : found->members()) {
    const bool is_id =
        !member.key.empty() && member.key.find_first_not_of("0123456789") == std::string::npos;
    const auto id = is_id ? decimal_of(member.key) : std::nullopt;
    CAIRN_TRY(sample::LogitBias bias,
              read_bias(id ? json::Value(*id) : json::Value(member.key), member.value));
    params.logit_bias.push_back(std::move(bias));
  }
  for (const json::Value& item : found->items()) {
    if (item.items().size() != 2) {
      return refuse_field("logit_bias", "expected pairs, found {}", item.describe());
    }
    CAIRN_TRY(sample::LogitBias bias, read_bias(item.items()[0], item.items()[1]));
    params.logit_bias.push_back(std::move(bias));
  }
  return Ok{};
}

Checked<Ok> read_response_format(const Body& body, session::ConstraintChoice& choice) {
  const json::Value* const format = body.find("response_format");
  if (format == nullptr) return Ok{};
  const std::optional<std::string_view> type = format->text_at("type");
  const json::Value* schema = format->find_set("schema");
  if (type == "text") return Ok{};
  if (type == "json_schema") {
    const json::Value* const named = format->find_set("json_schema");
    schema = named == nullptr ? nullptr : named->find_set("schema");
    if (schema == nullptr) {
      return refuse_field("response_format.json_schema.schema", "expected a schema, found none");
    }
  } else if (type != "json_object") {
    const json::Value* const found = format->find("type");
    return refuse_field("response_format.type",
                        "expected text, json_object or json_schema, found {}",
                        found == nullptr ? "none" : found->describe());
  }
  choice.json_schema = schema == nullptr ? R"({"type": "object"})" : json::to_text(*schema);
  return Ok{};
}

Checked<session::ConstraintChoice> read_constraint(const Body& body) {
  session::ConstraintChoice choice;
  CAIRN_TRY(read_response_format(body, choice));
  if (const json::Value* const schema = body.find("json_schema")) {
    if (choice.json_schema) {
      return refuse_field("json_schema", "expected response_format or this, found both");
    }
    choice.json_schema = json::to_text(*schema);
  }
  // An empty one is none: so /props tells it.
  const std::string_view grammar = body.text("grammar").value_or("");
  if (!grammar.empty()) choice.grammar = std::string(grammar);
  if (const auto regex = body.text("regex")) choice.regex = std::string(*regex);
  choice.choices = body.texts("choices");
  if (choice.count() > 1) {
    return refuse_field(choice.json_schema ? "response_format" : "grammar",
                        "expected one of a schema, grammar, regex and choices, found {}",
                        choice.count());
  }
  return choice;
}

Checked<Ok> read_stop(const Body& body, AnswerSettings& settings) {
  const std::string_view name = body.endpoint() == kMessages ? "stop_sequences" : "stop";
  settings.stop = body.texts(name);
  std::erase(settings.stop, "");
  for (const std::string& text : settings.stop) {
    if (text.size() > kStopBytesMax) {
      return refuse_field(name, "expected texts of at most {} bytes, found {}", kStopBytesMax,
                          text.size());
    }
  }
  return Ok{};
}

Checked<bool> read_tells_usage(const Body& body) {
  const json::Value* const options = body.find("stream_options");
  const json::Value* const found =
      options == nullptr ? nullptr : options->find_set("include_usage");
  if (found == nullptr) return false;
  if (const std::optional<bool> flag = found->as_boolean()) return *flag;
  return refuse_field("stream_options.include_usage", "expected true or false, found {}",
                      found->describe());
}

// OpenAI's `prediction`: a text, or parts of one, that the answer is expected to be like.
Checked<std::string> read_prediction(const json::Value& prediction) {
  if (prediction.text_at("type") != "content") {
    return refuse_field("prediction.type", "expected content, found {}",
                        prediction.text_at("type").value_or("none"));
  }
  const json::Value* const content = prediction.find_set("content");
  if (content == nullptr) {
    return refuse_field("prediction.content", "expected a text, found none");
  }
  if (const auto whole = content->as_text()) return std::string(*whole);
  std::string text;
  for (const json::Value& part : content->items()) {
    const auto piece = part.text_at("text");
    if (!piece) {
      return refuse_field("prediction.content", "expected parts with a text, found {}",
                          part.describe());
    }
    text += *piece;
  }
  if (!content->is_array()) {
    return refuse_field("prediction.content", "expected a text or a list of parts, found {}",
                        content->describe());
  }
  return text;
}

Checked<session::DraftOrder> read_drafts(const Body& body, const ServedModel& model) {
  session::DraftOrder order;
  if (const auto kinds = body.text("draft")) {
    Result<session::DraftChoice> choice = session::parse_draft_choice(*kinds);
    if (!choice) return refusal_of(choice.error(), "draft");
    order.choice = std::move(choice).value();
  }
  if (const auto count = body.integer("speculative.n_max")) order.count_max = int32_t(*count);
  const json::Value* const prediction = body.find("prediction");
  const tokenize::Tokenizer* const tokenizer = model.engine().tokenizer();
  if (prediction != nullptr && tokenizer != nullptr) {
    CAIRN_TRY(const std::string text, read_prediction(*prediction));
    order.prediction = tokenizer->encode(text, {.goes_on = true});
  }
  return order;
}

}  // namespace

// In the words of each dialect.
Checked<Ok> read_probabilities(const Body& body, AnswerSettings& settings) {
  settings.top_count = settings.sampling.probability_count;
  settings.tells_probabilities = settings.top_count > 0;
  const json::Value* const found = body.find("logprobs");
  if (found == nullptr) return Ok{};
  const std::optional<bool> flag = found->as_boolean();
  if (body.endpoint() != kCompletion) {
    if (!flag) {
      return refuse_field("logprobs", "expected true or false, found {}", found->describe());
    }
    settings.tells_probabilities = *flag;
    settings.top_count = int32_t(body.integer("top_logprobs").value_or(0));
  } else if (flag != false) {
    const std::optional<int64_t> count = found->is_number() ? found->as_integer() : std::nullopt;
    if (!count || *count < 0 || *count > 100) {
      return refuse_field("logprobs", "expected a whole number from 0 to 100, found {}",
                          found->describe());
    }
    settings.tells_probabilities = true;
    settings.top_count = int32_t(*count);
  }
  // The chosen token's comes with those of others.
  if (settings.tells_probabilities) {
    settings.sampling.probability_count = std::max(settings.top_count, 1);
  }
  return Ok{};
}

Checked<AnswerSettings> read_answer_settings(const Body& body, const ServedModel& model) {
  AnswerSettings settings;
  settings.sampling = model.sampling;
  settings.sampling.probability_count = 0;
  if (!model.has_seed) settings.sampling.seed = session::new_seed();
  if (const auto seed = body.integer("seed"); seed && *seed >= 0) {
    settings.sampling.seed = uint64_t(*seed);
  }
  CAIRN_TRY(read_fields(body, settings.sampling));
  CAIRN_TRY(read_lists(body, settings.sampling));
  CAIRN_TRY(read_biases(body, settings.sampling));
  const Status known =
      sample::check_logit_bias(settings.sampling, model.engine().size().vocabulary_count);
  if (!known) return refusal_of(known.error(), "logit_bias");
  CAIRN_TRY(read_probabilities(body, settings));
  CAIRN_TRY(settings.constraint, read_constraint(body));
  CAIRN_TRY(settings.drafts, read_drafts(body, model));
  for (const std::string_view name :
       {"max_tokens", "max_completion_tokens", "n_predict", "num_predict", "max_output_tokens"}) {
    if (const auto count = body.integer(name)) {
      settings.token_count_max = int32_t(std::max<int64_t>(*count, -1));
    }
  }
  settings.answer_count = int32_t(body.integer("n").value_or(1));
  CAIRN_TRY(read_stop(body, settings));
  settings.is_stream = body.is_true("stream");
  CAIRN_TRY(settings.tells_usage, read_tells_usage(body));
  return settings;
}

}  // namespace cairn::serve
