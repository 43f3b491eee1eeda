// Line by line: a name, labels in braces, a value, and a time where one is told.
#include "route/node_metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace cairn::route {

namespace {

// Behind the brace that ends labels; their values are quoted and may have braces too.
std::string_view behind_labels(std::string_view line) {
  bool is_quoted = false;
  for (size_t at = 1; at < line.size(); ++at) {
    if (is_quoted && line[at] == '\\') {
      ++at;
    } else if (line[at] == '"') {
      is_quoted = !is_quoted;
    } else if (line[at] == '}' && !is_quoted) {
      return line.substr(at + 1);
    }
  }
  return {};
}

double requests_of(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  text = text.substr(0, text.find_first_of(" \t\r"));
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && std::isfinite(value) ? std::max(value, 0.0) : 0;
}

}  // namespace

int32_t gauge_sum(std::string_view text, std::string_view name) {
  double sum = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    if (line.starts_with('{')) {
      sum += requests_of(behind_labels(line));
    } else if (line.starts_with(' ') || line.starts_with('\t')) {
      sum += requests_of(line);
    }
  }
  return int32_t(std::min(sum, double(kNodeRequestsMax)));
}

}  // namespace cairn::route
