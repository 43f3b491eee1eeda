// toml++ reads, without exceptions; each value becomes the words of a command line.
#include "hub/preset.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/env.h"
#include "base/printable.h"

namespace cairn::hub {

namespace {

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

Error wrong(std::string_view path, const toml::node& node, std::string_view key,
            std::string_view expected) {
  return fail(ErrorCode::invalid_argument, "{}:{}: {}: expected {}, found another kind of value",
              printable(path), node.source().begin.line, printable(key), expected);
}

Result<std::vector<std::string>> texts_of(std::string_view path, std::string_view key,
                                          const toml::node& node) {
  std::vector<std::string> texts;
  const toml::array* list = node.as_array();
  const auto add = [&](const toml::node& one) -> Status {
    std::optional<std::string> text = text_of(one);
    if (!text) return wrong(path, node, key, "a text, a number, true, false, or a list of these");
    texts.push_back(std::move(*text));
    return Ok{};
  };
  if (list == nullptr) {
    CAIRN_TRY(add(node));
    return texts;
  }
  for (const toml::node& one : *list) CAIRN_TRY(add(one));
  return texts;
}

}  // namespace

Result<Preset> parse_preset(std::string_view path, std::string_view text) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(ErrorCode::invalid_argument, "{}:{}: {}", printable(path),
                error.source().begin.line, printable(std::string(error.description())));
  }
  Preset preset{.path = std::string(path), .model = {}, .values = {}};
  for (const auto& [name, node] : parsed.table()) {
    const std::string key(name.str());
    CAIRN_TRY(std::vector<std::string> texts, texts_of(path, key, node));
    if (key != "model") {
      preset.values.push_back({key, std::move(texts), int(node.source().begin.line)});
      continue;
    }
    if (!node.is_string()) return wrong(path, node, key, "a text");
    preset.model = with_home(std::move(texts.front()));
  }
  // In the order of the file, not of the names: so that the first mistake is told first.
  std::stable_sort(preset.values.begin(), preset.values.end(),
                   [](const PresetValue& a, const PresetValue& b) { return a.line < b.line; });
  return preset;
}

}  // namespace cairn::hub
