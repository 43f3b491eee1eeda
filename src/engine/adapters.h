// The adapters that an engine has loaded, by name, and selections of them by requests. Selections
// are normalised, so that equal ones compare equal: adapters in the order of loading, each once,
// none with scale 0. Knows no plans. Thread-safe: constant once loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/adapter.h"
#include "engine/fingerprint.h"
#include "memory/variant.h"

namespace cairn {

// One adapter of a request, with its scale.
struct AdapterUse {
  std::string name;
  float scale = 1.0f;

  bool operator==(const AdapterUse&) const = default;
};

// The adapters that a sequence is computed with, and for which tenant: a handle from
// Engine::select(), cheap to copy. It keeps its plans alive, and is valid for its engine only.
class Selection {
 public:
  Selection() = default;  // No adapters.

  memory::Variant variant() const {
    return memory::Variant(data_ ? data_->variant.computation : 0, tenant_);
  }
  // The same adapters for this tenant; 0: for everybody.
  Selection for_tenant(uint64_t tenant) const {
    Selection other = *this;
    other.tenant_ = tenant;
    return other;
  }
  std::span<const AdapterUse> uses() const {
    return data_ ? std::span<const AdapterUse>(data_->uses) : std::span<const AdapterUse>();
  }

 private:
  friend class Adapters;
  friend class Engine;
  struct Data {
    memory::Variant variant;
    std::vector<AdapterUse> uses;
  };
  explicit Selection(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  bool is_shared() const { return data_.use_count() > 1; }

  std::shared_ptr<const Data> data_;  // Null: none.
  uint64_t tenant_ = 0;
};

class Adapters {
 public:
  // A name that is already used gets a number appended. Errors: those of Adapter and of the
  // backend, with the file's name.
  static Result<Adapters> load(std::span<const AdapterChoice> choices,
                               std::string_view architecture, std::span<Weight* const> matrices,
                               const models::Program& program, Backend& backend);

  // All of them, as they were loaded: names and scales.
  std::span<const AdapterUse> loaded() const { return loaded_; }
  // Scales of an adapter that is listed twice add up. Errors: invalid_argument: unknown names (the
  // known ones are listed), scales that are not finite.
  Result<Selection> select(std::span<const AdapterUse> uses) const;
  // For the fingerprint: by weights and scales, not by names or places of files.
  // REQUIRES: their names are known.
  std::vector<AdapterSource> sources(std::span<const AdapterUse> uses) const;
  // The low-rank changes of these adapters. REQUIRES: their names are known.
  std::vector<LowRank> changes(std::span<const AdapterUse> uses) const;

 private:
  size_t place_of(std::string_view name) const;  // adapters_.size() where there is none.
  Error unknown(std::string_view name) const;
  std::string free_name(const AdapterChoice& choice) const;

  std::vector<Adapter> adapters_;
  std::vector<AdapterUse> loaded_;  // By adapter.
};

}  // namespace cairn
