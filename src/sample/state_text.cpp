// "12 345 40a00000 00000000; 13 …".
#include "sample/state_text.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>

namespace cairn::sample {

namespace {

Error damaged(std::string_view text) {
  return fail(
      ErrorCode::invalid_data,
      "sampler: expected a position, a token and two numbers of 8 hexadecimal digits, found "
      "\"{}\"",
      text.substr(0, 40));
}

// Takes a number and what follows it from the beginning of `text`.
template <class Number>
bool take(std::string_view& text, int base, Number& number) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number, base);
  if (read.ec != std::errc()) return false;
  text.remove_prefix(size_t(read.ptr - text.data()));
  return true;
}

bool take(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

bool take_step(std::string_view& text, SamplerState::Step& step) {
  int32_t id = 0;
  uint32_t first = 0, second = 0;
  const bool is_whole = take(text, 10, step.position) && take(text, ' ') && take(text, 10, id) &&
                        take(text, ' ') && take(text, 16, first) && take(text, ' ') &&
                        take(text, 16, second);
  step.token = Token(id);
  step.memory = {std::bit_cast<float>(first), std::bit_cast<float>(second)};
  return is_whole && step.position >= 0 && id >= 0 && std::isfinite(step.memory.first) &&
         std::isfinite(step.memory.second);
}

}  // namespace

std::string to_text(const SamplerState& state) {
  std::string text;
  for (const SamplerState::Step& step : state.steps()) {
    text += fmt::format("{}{} {} {:08x} {:08x}", text.empty() ? "" : ";", step.position,
                        index_of(step.token), std::bit_cast<uint32_t>(step.memory.first),
                        std::bit_cast<uint32_t>(step.memory.second));
  }
  return text;
}

Result<SamplerState> read_sampler_state(std::string_view text) {
  std::vector<SamplerState::Step> steps;
  while (!text.empty()) {
    const std::string_view whole = text;
    SamplerState::Step step{};
    if (!steps.empty() && !take(text, ';')) return damaged(whole);
    const bool is_good =
        take_step(text, step) && (steps.empty() || step.position > steps.back().position);
    if (!is_good) return damaged(whole);
    steps.push_back(step);
  }
  return SamplerState(std::move(steps));
}

}  // namespace cairn::sample
