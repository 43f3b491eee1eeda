// Ranks, names and reasons.
#include "runtimes/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/env.h"
#include "base/text/nearest_name.h"

namespace cairn::runtimes {

namespace {

std::vector<std::string> names_of(std::span<const RuntimeType* const> types) {
  std::vector<std::string> names;
  for (const Listed& each : list(types)) names.emplace_back(each.name);
  return names;
}

Status check_fit(const RuntimeType& type, const ModelProbe& probe, const Status& others_fit) {
  CAIRN_TRY(type.available());
  if (!others_fit) return others_fit;
  return type.can_serve(probe);
}

Result<const RuntimeType*> find(std::span<const RuntimeType* const> types,
                                const std::string& wanted, std::string_view source,
                                const ModelProbe& probe, const Status& others_fit) {
  if (wanted == kBuiltIn) return nullptr;
  const std::vector<std::string> names = names_of(types);
  const auto found = std::ranges::find(types, wanted, &RuntimeType::name);
  if (found == types.end()) {
    const std::string nearest = nearest_name(wanted, names);
    return fail(ErrorCode::invalid_argument, "{}: expected {}, found {}{}", source,
                fmt::join(names, ", "), wanted,
                nearest.empty() ? "" : ": did you mean " + nearest + "?");
  }
  if (Status fits = check_fit(**found, probe, others_fit); !fits) {
    return fail(ErrorCode::unsupported, "{}: {} cannot be used: {}; there are {}", source, wanted,
                fits.error().message, fmt::join(names, ", "));
  }
  return *found;
}

}  // namespace

Result<const RuntimeType*> choose(std::span<const RuntimeType* const> types,
                                  const std::optional<std::string>& wanted, const ModelProbe& probe,
                                  const Status& others_fit) {
  if (wanted) return find(types, *wanted, "backend", probe, others_fit);
  if (const std::optional<std::string> set = env("CAIRN_BACKEND"); set && !set->empty()) {
    return find(types, *set, "CAIRN_BACKEND", probe, others_fit);
  }
  const RuntimeType* best = nullptr;
  int32_t best_rank = 0;
  for (const RuntimeType* const type : types) {
    if (type->rank <= best_rank || !check_fit(*type, probe, others_fit)) continue;
    best = type;
    best_rank = type->rank;
  }
  return best;
}

std::vector<Listed> list(std::span<const RuntimeType* const> types) {
  std::vector<Listed> all = {{.name = kBuiltIn, .rank = 0, .why_not = {}, .type = nullptr}};
  for (const RuntimeType* const type : types) {
    const Status available = type->available();
    all.push_back({.name = type->name,
                   .rank = type->rank,
                   .why_not = available ? std::string() : available.error().message,
                   .type = type});
  }
  std::ranges::stable_sort(all, std::greater<>(), &Listed::rank);
  return all;
}

}  // namespace cairn::runtimes
