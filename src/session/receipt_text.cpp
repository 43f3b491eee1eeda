// One object for each part of a receipt; written and read in the same order.
#include "session/receipt_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/output_file.h"
#include "chat/conversation.h"
#include "json/value.h"

namespace cairn::session {

namespace {

constexpr int32_t kFormat = 1;
constexpr json::Limits kReceiptLimits{
    .bytes = size_t(64) << 20, .depth = 8, .values = size_t(1) << 23};
constexpr int32_t kContextMax = 1 << 24;
constexpr FinishReason kFinishReasons[] = {FinishReason::stop,   FinishReason::tool_calls,
                                           FinishReason::length, FinishReason::context,
                                           FinishReason::memory, FinishReason::interrupted};

// ---- Writing ----

template <class T>
json::Value list_of(const std::vector<T>& items) {
  json::Value list = json::Value::array();
  for (const T& item : items) {
    if constexpr (std::is_same_v<T, Token>) {
      list.push_back(index_of(item));
    } else {
      list.push_back(item);
    }
  }
  return list;
}

json::Value sources_json(const ReceiptSources& sources) {
  json::Value adapters = json::Value::array();
  for (const AdapterSource& source : sources.adapters) {
    adapters.push_back({{"digest", hex_of(source.adapter)}, {"scale", double(source.scale)}});
  }
  json::Value json = {{"digest", sources.fingerprint().text()},
                      {"model", hex_of(sources.model)},
                      {"numerics", std::string(name(sources.numerics))},
                      {"isa", sources.isa},
                      {"keys", std::string(name(sources.key_type))},
                      {"values", std::string(name(sources.value_type))},
                      {"adapters", std::move(adapters)}};
  const models::Program& program = sources.program;
  if (!program.skipped_layers.empty()) json["skipped_layers"] = program.skipped_layers;
  if (program.expert_used_count > 0) json["experts"] = program.expert_used_count;
  return json;
}

json::Value bias_json(const sample::LogitBias& bias) {
  json::Value json;
  if (bias.text.empty()) {
    json["token"] = index_of(bias.token);
  } else {
    json["text"] = bias.text;
  }
  json["bias"] = std::isfinite(bias.bias) ? json::Value(double(bias.bias))
                                          : json::Value(bias.bias < 0 ? "-inf" : "inf");
  return json;
}

json::Value sampling_json(const sample::SamplingParams& params) {
  json::Value json = json::Value::object();
  json["seed"] = fmt::format("{}", params.seed);
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    if (field.flag != nullptr) {
      json[field.name] = params.*field.flag;
    } else if (field.count != nullptr) {
      json[field.name] = params.*field.count;
    } else {
      // As a person would write it, where that is read back as the same f32.
      const double shown = std::stod(show(params, field));
      json[field.name] = float(shown) == params.*field.real ? shown : get(params, field);
    }
  }
  json["samplers"] = params.samplers;
  json["dry_sequence_breakers"] = params.dry_breakers;
  json["logit_bias"] = json::Value::array();
  for (const sample::LogitBias& bias : params.logit_bias) {
    json["logit_bias"].push_back(bias_json(bias));
  }
  return json;
}

json::Value form_json(const Receipt& receipt) {
  const ReceiptForm& form = receipt.form;
  json::Value json = {{"raw", receipt.is_raw},
                      {"prompt_end", receipt.prompt_end},
                      {"stop", receipt.stop},
                      {"reasoning_tokens_max", receipt.reasoning_tokens_max}};
  if (form.constraint.json_schema) json["json_schema"] = *form.constraint.json_schema;
  if (form.constraint.grammar) json["grammar"] = *form.constraint.grammar;
  if (form.constraint.regex) json["regex"] = *form.constraint.regex;
  if (!form.constraint.choices.empty()) json["choices"] = form.constraint.choices;
  if (form.tools.empty()) return json;
  json["tools"] = form.tools;
  json["tool_choice"] = form.tool_choice;
  json["calls_end"] = form.calls_end;
  json["is_to_results"] = form.is_to_results;
  if (form.calls_once) json["calls_once"] = true;
  return json;
}

json::Value sampler_json(const Receipt& receipt) {
  json::Value steps = json::Value::array();
  for (const auto& step : receipt.sampler) {
    steps.push_back({{"position", step.position},
                     {"token", index_of(step.token)},
                     {"first", double(step.memory.first)},
                     {"second", double(step.memory.second)}});
  }
  return steps;
}

json::Value answer_json(const Receipt& receipt) {
  json::Value tokens = json::Value::array(), forced = json::Value::array(),
              rows = json::Value::array();
  for (size_t i = 0; i < receipt.choices.size(); ++i) {
    const Choice& choice = receipt.choices[i];
    tokens.push_back(index_of(choice.token));
    rows.push_back(fmt::format("{:016x}", choice.rows));
    if (choice.is_forced) forced.push_back(i);
  }
  return {{"tokens", std::move(tokens)},
          {"forced", std::move(forced)},
          {"logits", std::move(rows)},
          {"digest", hex_of(receipt.rows)},
          {"finish", std::string(name(receipt.finish))}};
}

// JSON has no other text.
Status check_texts(const Receipt& receipt) {
  std::vector<std::pair<std::string_view, std::string_view>> texts = {
      {"--tools", receipt.form.tools}, {"--tool-choice", receipt.form.tool_choice}};
  const ConstraintChoice& constraint = receipt.form.constraint;
  if (constraint.json_schema) texts.emplace_back("--json-schema", *constraint.json_schema);
  if (constraint.grammar) texts.emplace_back("--grammar", *constraint.grammar);
  if (constraint.regex) texts.emplace_back("--regex", *constraint.regex);
  for (const std::string& text : constraint.choices) texts.emplace_back("--choice", text);
  for (const std::string& text : receipt.stop) texts.emplace_back("--stop", text);
  for (const std::string& text : receipt.sampling.dry_breakers) {
    texts.emplace_back("--dry-sequence-breaker", text);
  }
  for (const auto& bias : receipt.sampling.logit_bias) {
    texts.emplace_back("--logit-bias", bias.text);
  }
  for (const auto& [option, text] : texts) {
    if (chat::as_utf8(text) == text) continue;
    return fail(ErrorCode::invalid_argument, "receipt: expected UTF-8 in {}, found \"{}\"", option,
                chat::as_utf8(text));
  }
  return Ok{};
}

// ---- Reading ----

// An object of the receipt, and where it stands.
class Part {
 public:
  Part(std::string place, const json::Value* value) : place_(std::move(place)), value_(value) {}

  Error wrong(std::string_view key, std::string_view expected) const {
    const json::Value* const found = value_->find(key);
    return fail(ErrorCode::invalid_data, "{}{}: expected {}, found {}", place_, key, expected,
                found == nullptr ? "none" : found->describe());
  }
  bool has(std::string_view key) const { return value_->find_set(key) != nullptr; }

  Result<Part> part(std::string_view key) const {
    const json::Value* const found = value_->find(key);
    if (found == nullptr || !found->is_object()) return wrong(key, "an object");
    return Part(fmt::format("{}{}.", place_, key), found);
  }
  // Each of a list of objects.
  Result<std::vector<Part>> parts(std::string_view key) const {
    CAIRN_TRY(const std::vector<json::Value>* const items, list(key));
    std::vector<Part> parts;
    for (const json::Value& item : *items) {
      if (!item.is_object()) return wrong(key, "a list of objects");
      parts.emplace_back(fmt::format("{}{}[{}].", place_, key, parts.size()), &item);
    }
    return parts;
  }
  Result<const std::vector<json::Value>*> list(std::string_view key) const {
    const json::Value* const found = value_->find(key);
    if (found == nullptr || !found->is_array()) return wrong(key, "a list");
    return &found->items();
  }
  Result<std::string> text(std::string_view key) const {
    const auto text = value_->text_at(key);
    if (!text) return wrong(key, "a text");
    return std::string(*text);
  }
  Result<std::vector<std::string>> texts(std::string_view key) const {
    CAIRN_TRY(const std::vector<json::Value>* const items, list(key));
    std::vector<std::string> texts;
    for (const json::Value& item : *items) {
      if (!item.as_text() || item.as_text()->empty()) return wrong(key, "a list of texts");
      texts.emplace_back(*item.as_text());
    }
    return texts;
  }
  Result<bool> flag(std::string_view key) const {
    const json::Value* const found = value_->find(key);
    const auto flag = found == nullptr ? std::nullopt : found->as_boolean();
    if (!flag) return wrong(key, "true or false");
    return *flag;
  }
  Result<int32_t> integer(std::string_view key, int32_t min, int32_t max = INT32_MAX) const {
    const json::Value* const found = value_->find(key);
    const auto number = found == nullptr ? std::nullopt : found->as_integer();
    if (!number || *number < min || *number > max) {
      return wrong(key, fmt::format("a whole number from {} to {}", min, max));
    }
    return int32_t(*number);
  }
  Result<double> real(std::string_view key) const {
    const json::Value* const found = value_->find(key);
    const auto number = found == nullptr ? std::nullopt : found->as_real();
    if (!number) return wrong(key, "a number");
    return *number;
  }
  Result<float> real32(std::string_view key) const {
    CAIRN_TRY(const double number, real(key));
    if (std::fabs(number) > double(std::numeric_limits<float>::max())) {
      return wrong(key, "a number within the range of 32 bits");
    }
    return float(number);
  }
  // Numbers from 0 to `max`, each larger than the one before it if they ascend.
  Result<std::vector<int32_t>> integers(std::string_view key, int64_t max,
                                        bool is_ascending) const {
    CAIRN_TRY(const std::vector<json::Value>* const items, list(key));
    std::vector<int32_t> numbers;
    for (const json::Value& item : *items) {
      const auto number = item.as_integer();
      const int64_t min = is_ascending && !numbers.empty() ? int64_t(numbers.back()) + 1 : 0;
      if (!number || *number < min || *number > max) {
        return fail(ErrorCode::invalid_data,
                    "{}{}[{}]: expected a whole number from {} to {}, found {}", place_, key,
                    numbers.size(), min, max, item.describe());
      }
      numbers.push_back(int32_t(*number));
    }
    return numbers;
  }
  Result<std::vector<Token>> tokens(std::string_view key) const {
    CAIRN_TRY(const std::vector<int32_t> numbers, integers(key, INT32_MAX, false));
    std::vector<Token> tokens;
    for (const int32_t number : numbers) tokens.push_back(Token(number));
    return tokens;
  }
  Result<Sha256Digest> digest(std::string_view key) const {
    CAIRN_TRY(const std::string digits, text(key));
    Sha256Digest digest{};
    for (size_t byte = 0; byte < digest.size(); ++byte) {
      const char* const at = digits.data() + 2 * byte;
      const bool is_there = digits.size() == 2 * digest.size();
      if (!is_there || std::from_chars(at, at + 2, digest[byte], 16).ptr != at + 2) {
        return wrong(key, "64 hexadecimal digits");
      }
    }
    return digest;
  }

 private:
  std::string place_;
  const json::Value* value_;
};

Result<KvType> read_kv_type(const Part& part, std::string_view key) {
  CAIRN_TRY(const std::string text, part.text(key));
  for (size_t type = 0; type < std::size(kKvTypeNames); ++type) {
    if (kKvTypeNames[type] == text) return KvType(type);
  }
  return part.wrong(key, fmt::format("one of {}", fmt::join(kKvTypeNames, ", ")));
}

// Both members are left out by the model itself.
Result<models::Program> read_program(const Part& part) {
  models::Program program;
  if (part.has("skipped_layers")) {
    CAIRN_TRY(program.skipped_layers, part.integers("skipped_layers", INT32_MAX, true));
  }
  if (part.has("experts")) {
    CAIRN_TRY(program.expert_used_count, part.integer("experts", 1));
  }
  return program;
}

Result<ReceiptSources> read_sources(const Part& part) {
  ReceiptSources sources;
  CAIRN_TRY(sources.model, part.digest("model"));
  CAIRN_TRY(const std::string numerics, part.text("numerics"));
  if (numerics == name(Numerics::fast_1)) {
    sources.numerics = Numerics::fast_1;
  } else if (numerics != name(Numerics::exact_1)) {
    return part.wrong("numerics",
                      fmt::format("{} or {}", name(Numerics::exact_1), name(Numerics::fast_1)));
  }
  CAIRN_TRY(sources.isa, part.text("isa"));
  CAIRN_TRY(sources.key_type, read_kv_type(part, "keys"));
  CAIRN_TRY(sources.value_type, read_kv_type(part, "values"));
  CAIRN_TRY(const std::vector<Part> adapters, part.parts("adapters"));
  for (const Part& adapter : adapters) {
    CAIRN_TRY(const Sha256Digest digest, adapter.digest("digest"));
    CAIRN_TRY(const float scale, adapter.real32("scale"));
    sources.adapters.push_back({.adapter = digest, .scale = scale});
  }
  CAIRN_TRY(sources.program, read_program(part));
  CAIRN_TRY(const Sha256Digest digest, part.digest("digest"));
  if (digest != sources.fingerprint().digest()) {
    return part.wrong(
        "digest", fmt::format("that of the fields beside it, {}", sources.fingerprint().text()));
  }
  return sources;
}

Result<sample::LogitBias> read_bias(const Part& part) {
  sample::LogitBias bias;
  if (part.has("text")) {
    CAIRN_TRY(bias.text, part.text("text"));
    if (bias.text.empty()) return part.wrong("text", "at least a character");
  } else {
    CAIRN_TRY(const int32_t token, part.integer("token", 0));
    bias.token = Token(token);
  }
  auto named = part.text("bias");
  if (named && (*named == "-inf" || *named == "inf")) {
    const float infinity = std::numeric_limits<float>::infinity();
    bias.bias = *named == "inf" ? infinity : -infinity;
    return bias;
  }
  CAIRN_TRY(bias.bias, part.real32("bias"));
  return bias;
}

Status read_sampling(const Part& part, sample::SamplingParams& params) {
  CAIRN_TRY(const std::string seed, part.text("seed"));
  const char* const end = seed.data() + seed.size();
  const auto read = std::from_chars(seed.data(), end, params.seed);
  if (seed.empty() || read.ec != std::errc() || read.ptr != end) {
    return part.wrong("seed", "a whole number of 64 bits as a text");
  }
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    double value = 0;
    if (field.flag != nullptr) {
      CAIRN_TRY(const bool flag, part.flag(field.name));
      value = flag ? 1 : 0;
    } else {
      CAIRN_TRY(value, part.real(field.name));
    }
    if (!set(params, field, value)) {
      return part.wrong(field.name, fmt::format("a number from {} to {}", field.min, field.max));
    }
  }
  CAIRN_TRY(const std::vector<std::string> samplers, part.texts("samplers"));
  auto order = sample::sampler_order(samplers);
  if (!order) return part.wrong("samplers", "names of stages");
  params.samplers = std::move(order).value();
  CAIRN_TRY(params.dry_breakers, part.texts("dry_sequence_breakers"));
  CAIRN_TRY(const std::vector<Part> biases, part.parts("logit_bias"));
  for (const Part& bias : biases) {
    CAIRN_TRY(sample::LogitBias one, read_bias(bias));
    params.logit_bias.push_back(std::move(one));
  }
  return Ok{};
}

Result<std::optional<std::string>> optional_text(const Part& part, std::string_view key) {
  if (!part.has(key)) return std::optional<std::string>();
  CAIRN_TRY(std::string text, part.text(key));
  return std::optional(std::move(text));
}

Status read_form(const Part& part, Receipt& receipt) {
  CAIRN_TRY(receipt.is_raw, part.flag("raw"));
  CAIRN_TRY(receipt.prompt_end, part.text("prompt_end"));
  CAIRN_TRY(receipt.stop, part.texts("stop"));
  CAIRN_TRY(receipt.reasoning_tokens_max, part.integer("reasoning_tokens_max", -1));
  ReceiptForm& form = receipt.form;
  CAIRN_TRY(form.constraint.json_schema, optional_text(part, "json_schema"));
  CAIRN_TRY(form.constraint.grammar, optional_text(part, "grammar"));
  CAIRN_TRY(form.constraint.regex, optional_text(part, "regex"));
  if (part.has("choices")) {
    CAIRN_TRY(form.constraint.choices, part.texts("choices"));
  }
  if (!part.has("tools")) return Ok{};
  CAIRN_TRY(form.tools, part.text("tools"));
  CAIRN_TRY(form.tool_choice, part.text("tool_choice"));
  CAIRN_TRY(form.calls_end, part.text("calls_end"));
  CAIRN_TRY(form.is_to_results, part.flag("is_to_results"));
  if (part.has("calls_once")) {
    CAIRN_TRY(form.calls_once, part.flag("calls_once"));
  }
  return Ok{};
}

Status read_request(const Part& whole, Receipt& receipt) {
  CAIRN_TRY(const Part prompt, whole.part("prompt"));
  CAIRN_TRY(receipt.prompt, prompt.tokens("tokens"));
  if (receipt.prompt.empty()) return prompt.wrong("tokens", "at least one");
  const int32_t count = int32_t(receipt.prompt.size());
  CAIRN_TRY(receipt.answer_prefix, prompt.integer("answer_prefix", 0, count));
  CAIRN_TRY(receipt.message_starts, prompt.integers("message_starts", count - 1, true));
  CAIRN_TRY(const Part context, whole.part("context"));
  CAIRN_TRY(receipt.context_tokens, context.integer("tokens", 1, kContextMax));
  CAIRN_TRY(const std::string policy, context.text("policy"));
  if (policy != "stop" && policy != "shift") return context.wrong("policy", "stop or shift");
  if (policy == "shift") receipt.context_policy = ContextPolicy::shift;
  CAIRN_TRY(receipt.shift_keep, context.integer("keep", 0, kContextMax));
  CAIRN_TRY(const Part form, whole.part("form"));
  CAIRN_TRY(read_form(form, receipt));
  CAIRN_TRY(const Part sampling, whole.part("sampling"));
  CAIRN_TRY(read_sampling(sampling, receipt.sampling));
  CAIRN_TRY(const std::vector<Part> steps, whole.parts("sampler_state"));
  for (const Part& step : steps) {
    const int32_t min = receipt.sampler.empty() ? 0 : receipt.sampler.back().position + 1;
    CAIRN_TRY(const int32_t position, step.integer("position", min, INT32_MAX - 1));
    CAIRN_TRY(const int32_t token, step.integer("token", 0));
    CAIRN_TRY(const float first, step.real32("first"));
    CAIRN_TRY(const float second, step.real32("second"));
    receipt.sampler.push_back({position, Token(token), {first, second}});
  }
  return Ok{};
}

Result<FinishReason> read_finish(const Part& part) {
  CAIRN_TRY(const std::string text, part.text("finish"));
  for (const FinishReason reason : kFinishReasons) {
    if (name(reason) == text) return reason;
  }
  return part.wrong("finish", "how an answer ends, such as stop or length");
}

Status read_answer(const Part& part, Receipt& receipt) {
  CAIRN_TRY(const std::vector<Token> tokens, part.tokens("tokens"));
  CAIRN_TRY(const std::vector<std::string> rows, part.texts("logits"));
  if (rows.size() != tokens.size()) {
    return part.wrong("logits", fmt::format("one text for each of {} tokens", tokens.size()));
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    Choice choice{.token = tokens[i]};
    const char* const end = rows[i].data() + rows[i].size();
    const auto read = std::from_chars(rows[i].data(), end, choice.rows, 16);
    if (rows[i].size() != 16 || read.ec != std::errc() || read.ptr != end) {
      return part.wrong("logits", fmt::format("16 hexadecimal digits each, and at {} not \"{}\"", i,
                                              rows[i].substr(0, 40)));
    }
    receipt.choices.push_back(choice);
  }
  CAIRN_TRY(const std::vector<int32_t> forced,
            part.integers("forced", int64_t(tokens.size()) - 1, true));
  for (const int32_t index : forced) receipt.choices[size_t(index)].is_forced = true;
  CAIRN_TRY(receipt.rows, part.digest("digest"));
  CAIRN_TRY(receipt.finish, read_finish(part));
  return Ok{};
}

}  // namespace

Result<json::Value> receipt_json(const Receipt& receipt) {
  CAIRN_TRY(check_texts(receipt));
  const bool shifts = receipt.context_policy == ContextPolicy::shift;
  json::Value json;
  json["receipt"] = kFormat;
  json["program"] = receipt.program;
  json["fingerprint"] = sources_json(receipt.sources);
  json["prompt"] = {{"tokens", list_of(receipt.prompt)},
                    {"answer_prefix", receipt.answer_prefix},
                    {"message_starts", list_of(receipt.message_starts)}};
  json["context"] = {{"tokens", receipt.context_tokens},
                     {"policy", shifts ? "shift" : "stop"},
                     {"keep", receipt.shift_keep}};
  json["form"] = form_json(receipt);
  json["sampling"] = sampling_json(receipt.sampling);
  json["sampler_state"] = sampler_json(receipt);
  json["answer"] = answer_json(receipt);
  return json;
}

Result<std::string> receipt_text(const Receipt& receipt) {
  CAIRN_TRY(const json::Value json, receipt_json(receipt));
  return json::to_text(json) + "\n";
}

json::Value comparison_json(const Receipt& receipt,
                            const std::optional<ReceiptDifference>& difference) {
  json::Value json = {{"equal", !difference.has_value()},
                      {"tokens", receipt.choices.size()},
                      {"fingerprint", receipt.sources.fingerprint().text()}};
  if (difference) {
    json["field"] = difference->field;
    if (difference->token >= 0) json["token"] = difference->token;
    json["expected"] = difference->expected;
    json["found"] = difference->found;
  }
  return json;
}

Result<Receipt> read_receipt(std::string_view name, std::string_view text) {
  CAIRN_TRY(const json::Value json, json::read_value(name, text, kReceiptLimits));
  if (!json.is_object()) {
    return fail(ErrorCode::invalid_data, "{}: expected a receipt, an object, found {}", name,
                json.describe());
  }
  const Part whole(fmt::format("{}: ", name), &json);
  CAIRN_TRY(const int32_t format, whole.integer("receipt", 0));
  if (format != kFormat) return whole.wrong("receipt", fmt::format("the format {}", kFormat));
  Receipt receipt;
  CAIRN_TRY(receipt.program, whole.text("program"));
  CAIRN_TRY(const Part sources, whole.part("fingerprint"));
  CAIRN_TRY(receipt.sources, read_sources(sources));
  CAIRN_TRY(read_request(whole, receipt));
  CAIRN_TRY(const Part answer, whole.part("answer"));
  CAIRN_TRY(read_answer(answer, receipt));
  return receipt;
}

Status write_receipt(const std::string& path, const Receipt& receipt) {
  CAIRN_TRY(const std::string text, receipt_text(receipt));
  return write_file(path, std::as_bytes(std::span(text)), {.is_private = true});
}

Result<Receipt> load_receipt(const std::string& path) {
  CAIRN_TRY(const std::string text, read_file(path, kReceiptLimits.bytes));
  return read_receipt(path, text);
}

}  // namespace cairn::session
