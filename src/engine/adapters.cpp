// Names of adapters to indices, and selections to digests.
#include "engine/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cairn {

Result<Adapters> Adapters::load(std::span<const AdapterChoice> choices,
                                std::string_view architecture, std::span<Weight* const> matrices,
                                const models::Program& program, Backend& backend) {
  Adapters adapters;
  for (const AdapterChoice& choice : choices) {
    CAIRN_TRY(Adapter adapter, Adapter::open(choice.path, architecture));
    if (const Status bound = adapter.bind(matrices, program); !bound) {
      return fail(bound.error().code, "{}: {}", choice.path, bound.error().message);
    }
    CAIRN_TRY(adapter.load(backend));
    adapters.loaded_.push_back({.name = adapters.free_name(choice), .scale = choice.scale});
    adapters.adapters_.push_back(std::move(adapter));
  }
  return adapters;
}

// "folder/my tone.gguf" is "my-tone", since names stand in lists; a second one "my-tone-2".
std::string Adapters::free_name(const AdapterChoice& choice) const {
  std::string name = choice.name;
  if (name.empty()) {
    name = choice.path.substr(choice.path.rfind('/') + 1);  // npos + 1 is 0.
    if (name.ends_with(".gguf")) name.resize(name.size() - 5);
    std::replace(name.begin(), name.end(), ' ', '-');
  }
  std::string free = name;
  for (int32_t number = 2; place_of(free) < loaded_.size(); ++number)
    free = fmt::format("{}-{}", name, number);
  return free;
}

size_t Adapters::place_of(std::string_view name) const {
  const auto found = std::find_if(loaded_.begin(), loaded_.end(),
                                  [&](const AdapterUse& use) { return use.name == name; });
  return size_t(found - loaded_.begin());
}

Error Adapters::unknown(std::string_view name) const {
  if (loaded_.empty()) {
    return fail(ErrorCode::invalid_argument, "adapter: expected none, as none is loaded, found {}",
                name);
  }
  std::string known;
  for (const AdapterUse& use : loaded_) known += (known.empty() ? "" : ", ") + use.name;
  return fail(ErrorCode::invalid_argument, "adapter: expected one of {}, found {}", known, name);
}

Result<Selection> Adapters::select(std::span<const AdapterUse> uses) const {
  std::vector<float> scales(adapters_.size(), 0.0f);
  for (const AdapterUse& use : uses) {
    const size_t index = place_of(use.name);
    if (index == loaded_.size()) return unknown(use.name);
    scales[index] += use.scale;
    if (!std::isfinite(scales[index] * adapters_[index].largest_factor())) {
      return fail(ErrorCode::invalid_argument, "adapter {}: expected a finite scale, found {}",
                  use.name, use.scale);
    }
  }
  std::vector<AdapterUse> chosen;
  for (size_t index = 0; index < scales.size(); ++index) {
    if (scales[index] != 0) chosen.push_back({loaded_[index].name, scales[index]});
  }
  if (chosen.empty()) return Selection();
  const std::vector<AdapterSource> sources = this->sources(chosen);
  // The same for all else that an engine has.
  const memory::Variant variant = Fingerprint::of({.adapters = sources}).variant();
  return Selection(
      std::make_shared<const Selection::Data>(Selection::Data{variant, std::move(chosen)}));
}

std::vector<AdapterSource> Adapters::sources(std::span<const AdapterUse> uses) const {
  std::vector<AdapterSource> sources;
  for (const AdapterUse& use : uses) {
    const size_t index = place_of(use.name);
    CHECK(index < adapters_.size());
    sources.push_back({adapters_[index].digest(), use.scale});
  }
  return sources;
}

std::vector<LowRank> Adapters::changes(std::span<const AdapterUse> uses) const {
  std::vector<LowRank> changes;
  for (const AdapterUse& use : uses) {
    const size_t index = place_of(use.name);
    CHECK(index < adapters_.size());
    adapters_[index].add_changes(use.scale, changes);
  }
  return changes;
}

}  // namespace cairn
