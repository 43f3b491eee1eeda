// Text of a model has its quotes escaped, so that it cannot look like a member.
#include "route/reply_figures.h"

#include <algorithm>
#include <charconv>

namespace cairn::route {

namespace {

// The number of the first member of this name behind `at`; nothing where there is none.
std::optional<double> number_behind(std::string_view text, size_t at, std::string_view name) {
  at = text.find(name, at);
  if (at == text.npos) return std::nullopt;
  at = text.find_first_not_of(": ", at + name.size());
  if (at == text.npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  return error == std::errc() && value >= 0 && value < 1e15 ? std::optional(value) : std::nullopt;
}

}  // namespace

void ReplyReader::add(std::string_view bytes) {
  begin_ += bytes.substr(0, kBeginBytes - begin_.size());
  end_ += bytes.substr(bytes.size() - std::min(bytes.size(), kEndBytes));
  if (end_.size() > 2 * kEndBytes) end_.erase(0, end_.size() - kEndBytes);
}

std::optional<ReplyFigures> ReplyReader::figures() const {
  const size_t memory = end_.rfind("\"memory\":{");
  if (memory == end_.npos) return std::nullopt;
  const auto reused = number_behind(end_, memory, "\"reused\"");
  const auto computed = number_behind(end_, memory, "\"recomputed\"");
  if (!reused || !computed) return std::nullopt;
  ReplyFigures figures{.reused_tokens = int64_t(*reused), .computed_tokens = int64_t(*computed)};
  if (const size_t timings = end_.rfind("\"timings\":{"); timings != end_.npos) {
    figures.prompt_ms = number_behind(end_, timings, "\"prompt_ms\"");
    figures.answer_ms = number_behind(end_, timings, "\"predicted_ms\"");
  }
  return figures;
}

}  // namespace cairn::route
