// Splitting names from scales.
#include "terminal_chat/adapter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace cairn::terminal_chat {

namespace {

// Scale 1 unless one is said.
Result<AdapterUse> split(std::string_view text, std::string_view expected) {
  const size_t colon = text.rfind(':');
  const std::string_view name = text.substr(0, colon);
  float scale = 1;
  if (colon != text.npos) {
    const std::string_view number = text.substr(colon + 1);
    const char* const number_end = number.data() + number.size();
    const auto [end, error] = std::from_chars(number.data(), number_end, scale);
    if (error != std::errc() || end != number_end) scale = NAN;
  }
  if (!name.empty() && std::isfinite(scale)) return AdapterUse{std::string(name), scale};
  return fail(ErrorCode::invalid_argument, "{}, found \"{}\"", expected, text);
}

}  // namespace

Result<AdapterChoice> parse_adapter(std::string_view text) {
  CAIRN_TRY(AdapterUse use, split(text, "--lora: expected FILE or FILE:SCALE"));
  return AdapterChoice{.path = std::move(use.name), .scale = use.scale};
}

Result<std::vector<AdapterUse>> parse_adapter_uses(std::string_view list) {
  std::vector<AdapterUse> uses;
  if (list == "off") return uses;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (end > 0) {
      CAIRN_TRY(AdapterUse use, split(list.substr(0, end), "/lora: expected NAME or NAME:SCALE"));
      uses.push_back(std::move(use));
    }
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return uses;
}

std::string show_adapters(std::span<const AdapterUse> loaded, const Selection& selection) {
  if (loaded.empty()) return "no adapters are loaded; --lora FILE loads one";
  size_t width = 0;
  for (const AdapterUse& adapter : loaded) width = std::max(width, adapter.name.size());
  std::string lines;
  for (const AdapterUse& adapter : loaded) {
    const auto uses = selection.uses();
    const auto use = std::find_if(uses.begin(), uses.end(),
                                  [&](const AdapterUse& one) { return one.name == adapter.name; });
    const std::string state = use == uses.end() ? "off" : fmt::format("on, scale {}", use->scale);
    lines += fmt::format("{}{:<{}}  {}", lines.empty() ? "" : "\n", adapter.name, width, state);
  }
  return lines;
}

}  // namespace cairn::terminal_chat
