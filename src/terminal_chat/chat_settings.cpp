// The sampling table, and the few settings beside it.
#include "terminal_chat/chat_settings.h"

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/text/nearest_name.h"
#include "sample/params.h"
#include "session/sampling_choice.h"

namespace cairn::terminal_chat {

namespace {

// Common names of what the table calls otherwise.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"temperature", "temp"},
    {"n-predict", "max-tokens"},
    {"n", "max-tokens"},
    {"num-predict", "max-tokens"}};

// What is chosen when the program starts, by the names that people have for it.
constexpr std::pair<std::string_view, std::string_view> kStartOptions[] = {
    {"num-ctx", "--ctx-size"},  {"ctx-size", "--ctx-size"},  {"num-thread", "--threads"},
    {"threads", "--threads"},   {"format", "--json-schema"}, {"json-schema", "--json-schema"},
    {"grammar", "--grammar"},   {"verbose", "--verbose"},    {"quiet", "--quiet"},
    {"history", "--no-history"}};

std::string table_name(std::string_view name) {
  std::string known(name);
  for (char& letter : known) {
    if (letter == '_') letter = '-';
  }
  for (const auto& [other, kept] : kOtherNames) {
    if (known == other) known = kept;
  }
  return known;
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (text.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

Error not_a_number(std::string_view name, std::string_view value) {
  return fail(ErrorCode::invalid_argument, "{}: expected a number, found \"{}\"", name, value);
}

Error unknown_setting(const std::string& name) {
  for (const auto& [known, option] : kStartOptions) {
    if (name != known) continue;
    return fail(ErrorCode::invalid_argument,
                "settings: expected one that a conversation can change, found \"{}\"; {} is given "
                "when cairn starts",
                name, option);
  }
  std::vector<std::string> names = {"reasoning", "seed", "max-tokens"};
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    names.emplace_back(field.option);
  }
  const std::string nearest = nearest_name(name, names);
  return fail(ErrorCode::invalid_argument,
              "settings: expected a name that /show lists, found \"{}\"{}", name,
              nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest));
}

std::string shown_reasoning(const session::ChatOptions& options) {
  if (options.reasoning_tokens_max >= 0) return std::to_string(options.reasoning_tokens_max);
  switch (options.reasoning) {
    case chat::ReasoningMode::automatic:
      return "as the template has it";
    case chat::ReasoningMode::on:
      return "on";
    case chat::ReasoningMode::off:
      return "off";
  }
  return "";
}

}  // namespace

Status set_reasoning_option(session::ChatOptions& options, std::string_view value) {
  const std::optional<int32_t> tokens = number_in<int32_t>(value);
  if (value != "on" && value != "off" && (!tokens || *tokens < 0)) {
    return fail(ErrorCode::invalid_argument,
                "reasoning: expected on, off or a number of tokens, found \"{}\"", value);
  }
  options.reasoning = value == "off" ? chat::ReasoningMode::off : chat::ReasoningMode::on;
  options.reasoning_tokens_max = tokens.value_or(-1);
  return Ok{};
}

Status set_setting(session::ChatOptions& options, std::string_view name, std::string_view value) {
  const std::string known = table_name(name);
  if (known == "reasoning") return set_reasoning_option(options, value);
  if (known == "seed") {
    const std::optional<uint64_t> seed = number_in<uint64_t>(value);
    if (!seed && value != "-1") return not_a_number(known, value);
    options.sampling.seed = seed ? *seed : session::new_seed();
    options.keeps_seed = true;
    return Ok{};
  }
  if (known == "max-tokens") {
    const std::optional<int32_t> count = number_in<int32_t>(value);
    if (!count || *count < -1) return not_a_number(known, value);
    options.token_count_max = *count;
    return Ok{};
  }
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    if (field.option != known) continue;
    std::optional<double> number = number_in<double>(value);
    if (field.flag != nullptr && (value == "on" || value == "off")) number = value == "on";
    if (!number) return not_a_number(known, value);
    return sample::set(options.sampling, field, *number);
  }
  return unknown_setting(known);
}

Status set_settings(session::ChatOptions& options, std::string_view list) {
  session::ChatOptions changed = options;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    const std::string_view one = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (one.empty()) continue;
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos) {
      return fail(ErrorCode::invalid_argument, "settings: expected NAME=VALUE, found \"{}\"", one);
    }
    CAIRN_TRY(set_setting(changed, one.substr(0, equals), one.substr(equals + 1)));
  }
  options = changed;
  return Ok{};
}

std::string show_settings(const session::ChatOptions& options) {
  std::string lines;
  const auto add = [&](std::string_view name, std::string_view value) {
    lines += fmt::format("{:<20}{}\n", name, value);
  };
  for (const sample::SamplingField& field : sample::sampling_fields()) {
    add(field.option, sample::show(options.sampling, field));
  }
  add("seed", std::to_string(options.sampling.seed));
  add("max-tokens",
      options.token_count_max < 0 ? "no limit" : std::to_string(options.token_count_max));
  add("reasoning", shown_reasoning(options));
  for (const std::string& text : options.stop) add("stop", text);
  if (!options.system.empty()) add("system", options.system);
  lines.pop_back();
  return lines;
}

}  // namespace cairn::terminal_chat
