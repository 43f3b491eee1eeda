// Numbers of seconds, and durations with units.
#include "serve/ollama/keep_alive.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

namespace cairn::serve::ollama {

using std::chrono::milliseconds;

namespace {

// More is as good as for ever.
constexpr double kSecondsMax = 100.0 * 365 * 24 * 3600;

milliseconds time_of(double seconds) {
  if (seconds < 0) return milliseconds(-1);
  return milliseconds(int64_t(std::min(seconds, kSecondsMax) * 1000));
}

// "1h30m": numbers with units, the first of which may have a sign; a number alone is of seconds.
std::optional<double> parse_seconds(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1e-3}, {"us", 1e-6}, {"µs", 1e-6}, {"ns", 1e-9}, {"h", 3600}, {"m", 60}, {"s", 1}};
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  for (bool is_first = true; !text.empty(); is_first = false) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (error != std::errc() || number < 0 || !std::isfinite(number)) return std::nullopt;
    if (is_first && rest == end) return is_negative ? -number : number;
    text.remove_prefix(size_t(rest - text.data()));
    const auto* const unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                          [&](const auto& u) { return text.starts_with(u.first); });
    if (unit == std::end(kUnits)) return std::nullopt;
    seconds += number * unit->second;
    text.remove_prefix(unit->first.size());
  }
  return is_negative ? -seconds : seconds;
}

}  // namespace

Checked<std::optional<milliseconds>> read_keep_alive(const Body& body) {
  const json::Value* const keep = body.find("keep_alive");
  if (keep == nullptr) return std::optional<milliseconds>();
  std::optional<double> seconds = keep->as_real();
  if (const auto text = keep->as_text()) seconds = parse_seconds(*text);
  if (seconds && std::isfinite(*seconds)) return std::optional(time_of(*seconds));
  return refuse_field("keep_alive", "expected seconds or a duration such as \"5m\", found {}",
                      keep->describe());
}

bool has_question(const Body& body) {
  if (body.endpoint() == kOllamaEmbed) return true;
  if (body.endpoint() == kOllamaChat) {
    const json::Value* const messages = body.find("messages");
    return messages != nullptr && !messages->items().empty();
  }
  return !body.text("prompt").value_or("").empty() || !body.text("suffix").value_or("").empty();
}

}  // namespace cairn::serve::ollama
