// Choices against what a file has.
#include "models/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace cairn::models {

namespace {

// No model has more (gguf/hyperparameters.cpp).
constexpr int32_t kLayersMax = 1024;

}  // namespace

bool Program::skips(int32_t layer) const {
  return std::binary_search(skipped_layers.begin(), skipped_layers.end(), layer);
}

bool Program::skips_tensor(std::string_view name) const {
  constexpr std::string_view kLayer = "blk.";
  if (skipped_layers.empty() || !name.starts_with(kLayer)) return false;
  int32_t layer = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kLayer.size(), end, layer);
  return error == std::errc() && rest != end && *rest == '.' && skips(layer);
}

std::string Program::text() const {
  std::string text = "all layers";
  if (!skipped_layers.empty()) {
    text = fmt::format("all but layer{} {}", skipped_layers.size() == 1 ? "" : "s",
                       layer_list_text(skipped_layers));
  }
  if (expert_used_count > 0) {
    text += fmt::format("; {} expert{}", expert_used_count, expert_used_count == 1 ? "" : "s");
  }
  return text;
}

std::string layer_list_text(const std::vector<int32_t>& ascending) {
  std::string text;
  for (size_t first = 0; first < ascending.size();) {
    size_t last = first;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ascending[first]);
    if (last > first) text += fmt::format("-{}", ascending[last]);
    first = last + 1;
  }
  return text;
}

Result<std::vector<int32_t>> parse_layer_list(std::string_view option, std::string_view text) {
  const auto refuse = [&] {
    return fail(ErrorCode::invalid_argument,
                "{}: expected layers and ranges of them, such as 4-7,12, found \"{}\"", option,
                text);
  };
  std::vector<int32_t> layers;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](int32_t& value) {
    const auto [rest, error] = std::from_chars(at, end, value);
    at = rest;
    return error == std::errc() && value >= 0 && value < kLayersMax;
  };
  while (true) {
    int32_t first = 0;
    if (!number(first)) return refuse();
    int32_t last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last) || last < first) return refuse();
    }
    for (int32_t layer = first; layer <= last; ++layer) layers.push_back(layer);
    if (at == end) return layers;
    if (*at != ',' || layers.size() > size_t(kLayersMax)) return refuse();
    ++at;
  }
}

Result<int32_t> choose_experts(const ProgramChoice& choice, const gguf::Metadata& meta) {
  if (choice.expert_count == 0) return 0;
  CAIRN_TRY(const int32_t expert_count, meta.count_or("expert_count", 0));
  if (expert_count == 0) {
    return fail(ErrorCode::invalid_argument,
                "experts: expected a model with experts, found {} without", meta.architecture());
  }
  CAIRN_TRY(const int32_t group_count, meta.count_or("expert_group_count", 0));
  int32_t most = expert_count;
  if (group_count > 1) {
    // Groups are chosen as ever, and experts inside them.
    CAIRN_TRY(const int32_t used_groups, meta.count("expert_group_used_count"));
    most = std::min(used_groups, group_count) * (expert_count / group_count);
  }
  if (choice.expert_count < 1 || choice.expert_count > most) {
    return fail(ErrorCode::invalid_argument, "experts: expected 1 to {}{}, found {}", most,
                group_count > 1 ? ", as many as stand in the groups that a token uses" : "",
                choice.expert_count);
  }
  CAIRN_TRY(const int32_t usual_count, meta.count("expert_used_count"));
  return choice.expert_count == usual_count ? 0 : choice.expert_count;
}

Result<std::vector<int32_t>> choose_skipped(const ProgramChoice& choice, int32_t layer_count) {
  if (choice.exit_layer < 0 || choice.exit_layer > layer_count) {
    return fail(ErrorCode::invalid_argument, "exit layer: expected 1 to {} layers, found {}",
                layer_count, choice.exit_layer);
  }
  std::vector<int32_t> skipped = choice.skipped_layers;
  for (const int32_t layer : skipped) {
    if (layer >= 0 && layer < layer_count) continue;
    return fail(ErrorCode::invalid_argument, "skipped layers: expected 0 to {}, found {}",
                layer_count - 1, layer);
  }
  const int32_t exit_layer = choice.exit_layer > 0 ? choice.exit_layer : layer_count;
  for (int32_t layer = exit_layer; layer < layer_count; ++layer) skipped.push_back(layer);
  std::sort(skipped.begin(), skipped.end());
  skipped.erase(std::unique(skipped.begin(), skipped.end()), skipped.end());
  if (int32_t(skipped.size()) < layer_count) return skipped;
  return fail(ErrorCode::invalid_argument,
              "skipped layers: expected at least one of {} layers to run, found none", layer_count);
}

}  // namespace cairn::models
