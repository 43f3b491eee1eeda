// Checks every number, and finds options by their names.
#include "capi/engine_options.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/nearest_name.h"
#include "engine/fingerprint.h"
#include "engine/pooling.h"
#include "json/value.h"
#include "session/drafts/drafting.h"
#include "session/program/skip_file.h"

namespace cairn::capi {

namespace {

constexpr uint32_t kThreadsMax = 1024, kParallelMax = 4096;

Status check_most(std::string_view name, uint32_t value, uint32_t most) {
  if (value <= most) return Ok{};
  return fail(ErrorCode::invalid_argument, "{}: expected at most {}, found {}", name, most, value);
}

// 0 is the usual one; else a number of KvType and 1.
Result<KvType> kv_type_of(std::string_view name, int32_t value) {
  if (value == CAIRN_KV_DEFAULT) return KvType::f16;
  if (value > 0 && size_t(value) <= std::size(kKvTypeNames)) return KvType(value - 1);
  return fail(ErrorCode::invalid_argument, "{}: expected CAIRN_KV_…, found {}", name, value);
}

Error only_built_in(std::string_view name) {
  return fail(ErrorCode::unsupported, "{} is an option of the backend cairn alone", name);
}

Result<std::string> text_of(const json::Value::Member& option) {
  if (const auto text = option.value.as_text()) return std::string(*text);
  return fail(ErrorCode::invalid_argument, "options_json: {}: expected a string, found {}",
              option.key, option.value.describe());
}

Status set_pooling(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(const std::string text, text_of(option));
  CAIRN_TRY(terms.engine.pooling, parse_pooling("options_json: pooling", text));
  return Ok{};
}

Status set_numerics(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(const std::string text, text_of(option));
  for (const Numerics numerics : {Numerics::exact_1, Numerics::fast_1}) {
    if (text != name(numerics)) continue;
    terms.engine.numerics = numerics;
    return Ok{};
  }
  return fail(ErrorCode::invalid_argument,
              "options_json: numerics: expected \"exact-1\" or \"fast-1\", found {}",
              option.value.describe());
}

Status set_isa(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(terms.engine.isa, text_of(option));
  return Ok{};
}

Status set_pack_cache(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(terms.engine.pack_cache, text_of(option));
  return Ok{};
}

Error no_adapter(const json::Value& item) {
  return fail(ErrorCode::invalid_argument,
              "options_json: adapters: expected paths or objects of path and scale, found {}",
              item.describe());
}

// A path, or {"path", "scale"}.
Result<AdapterChoice> read_adapter(const json::Value& item) {
  AdapterChoice choice;
  if (const auto path = item.as_text()) choice.path = *path;
  for (const json::Value::Member& member : item.members()) {
    const std::optional<std::string_view> path = member.value.as_text();
    const std::optional<double> scale = member.value.as_real();
    if (member.key == "path" && path) {
      choice.path = *path;
    } else if (member.key == "scale" && scale) {
      choice.scale = float(*scale);
    } else {
      return no_adapter(item);
    }
  }
  if (choice.path.empty()) return no_adapter(item);
  return choice;
}

Status set_adapters(const json::Value::Member& option, EngineTerms& terms) {
  if (!option.value.is_array()) {
    return fail(ErrorCode::invalid_argument, "options_json: adapters: expected a list, found {}",
                option.value.describe());
  }
  for (const json::Value& item : option.value.items()) {
    CAIRN_TRY(terms.engine.adapters.emplace_back(), read_adapter(item));
  }
  return Ok{};
}

Status set_unpacked(const json::Value::Member& option, EngineTerms& terms) {
  const std::optional<bool> value = option.value.as_boolean();
  if (!value) {
    return fail(ErrorCode::invalid_argument, "options_json: unpacked: expected a boolean, found {}",
                option.value.describe());
  }
  terms.engine.is_unpacked = *value;
  return Ok{};
}

Status set_backend(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(terms.backend, text_of(option));
  return Ok{};
}

Result<int32_t> count_of(const json::Value::Member& option) {
  const std::optional<int64_t> value = option.value.as_integer();
  if (value && *value > 0 && *value <= INT32_MAX) return int32_t(*value);
  return fail(ErrorCode::invalid_argument,
              "options_json: {}: expected a whole number from 1 on, found {}", option.key,
              option.value.describe());
}

Status set_exit_layer(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(terms.engine.program.exit_layer, count_of(option));
  return Ok{};
}

Status set_experts(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(terms.engine.program.expert_count, count_of(option));
  return Ok{};
}

Status set_skip_layers(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(const std::string text, text_of(option));
  return session::set_skipped_layers("options_json: skip_layers", text, terms.engine);
}

Status set_draft(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(const std::string text, text_of(option));
  return session::set_drafts(text, terms.engine);
}

Status set_draft_max(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(terms.engine.draft_tokens_max, count_of(option));
  return Ok{};
}

Status set_draft_model(const json::Value::Member& option, EngineTerms& terms) {
  CAIRN_TRY(terms.engine.draft_model.path, text_of(option));
  return Ok{};
}

struct NamedOption {
  std::string_view name;
  Status (*set)(const json::Value::Member& option, EngineTerms& terms);
};
constexpr NamedOption kNamedOptions[] = {{"pooling", set_pooling},
                                         {"numerics", set_numerics},
                                         {"isa", set_isa},
                                         {"pack_cache", set_pack_cache},
                                         {"adapters", set_adapters},
                                         {"unpacked", set_unpacked},
                                         {"exit_layer", set_exit_layer},
                                         {"skip_layers", set_skip_layers},
                                         {"experts", set_experts},
                                         {"draft", set_draft},
                                         {"draft_max", set_draft_max},
                                         {"draft_model", set_draft_model},
                                         {"backend", set_backend}};

Error unknown_option(std::string_view key) {
  std::vector<std::string> names;
  std::string all;
  for (const NamedOption& known : kNamedOptions) {
    names.emplace_back(known.name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  const std::string nearest = nearest_name(key, names);
  if (nearest.empty()) {
    return fail(ErrorCode::invalid_argument, "options_json: expected {}, found {}", all, key);
  }
  return fail(ErrorCode::invalid_argument, "options_json: expected {}, found {}: did you mean {}?",
              all, key, nearest);
}

// Of all options only "backend" is one of other backends too.
Status set_options(const char* text, EngineTerms& terms) {
  CAIRN_TRY(const json::Value json, json::read_value("options_json", text, {}));
  if (!json.is_object()) {
    return fail(ErrorCode::invalid_argument, "options_json: expected an object, found {}",
                json.describe());
  }
  for (const json::Value::Member& option : json.members()) {
    const auto* const known =
        std::find_if(std::begin(kNamedOptions), std::end(kNamedOptions),
                     [&](const NamedOption& each) { return each.name == option.key; });
    if (known == std::end(kNamedOptions)) return unknown_option(option.key);
    CAIRN_TRY(known->set(option, terms));
    if (known->set != set_backend && terms.others_fit)
      terms.others_fit = only_built_in(known->name);
  }
  return Ok{};
}

// The members that other backends have not.
Status check_others(const cairn_engine_params& params) {
  if (params.memory_budget_bytes != 0) return only_built_in("memory_budget_bytes");
  if (params.type_k != CAIRN_KV_DEFAULT) return only_built_in("type_k");
  if (params.type_v != CAIRN_KV_DEFAULT) return only_built_in("type_v");
  return params.store_path != nullptr ? Status(only_built_in("store_path")) : Status(Ok{});
}

}  // namespace

Result<EngineTerms> engine_terms_of(const cairn_engine_params& params) {
  EngineTerms terms;
  CAIRN_TRY(check_most("thread_count", params.thread_count, kThreadsMax));
  CAIRN_TRY(check_most("parallel", params.parallel, kParallelMax));
  CAIRN_TRY(check_most("context_tokens", params.context_tokens, INT32_MAX));
  terms.engine.thread_count = int32_t(params.thread_count);
  terms.engine.context_tokens = int32_t(params.context_tokens);
  terms.engine.memory_budget = params.memory_budget_bytes;
  CAIRN_TRY(terms.engine.key_type, kv_type_of("type_k", params.type_k));
  CAIRN_TRY(terms.engine.value_type, kv_type_of("type_v", params.type_v));
  if (params.store_path != nullptr) terms.engine.cache_dir = params.store_path;
  terms.others_fit = check_others(params);
  if (params.options_json != nullptr) {
    CAIRN_TRY(set_options(params.options_json, terms));
  }
  if (params.parallel > 0) terms.scheduler.running_max = int32_t(params.parallel);
  return terms;
}

}  // namespace cairn::capi
