// Counting units and slabs; committing, and giving back.
#include "memory/backing.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::memory {

// The list of units gets room for all at once; the system backs it only as it is used.
Backing::Backing(std::unique_ptr<Buffer> buffer, Grain grain)
    : buffer_(std::move(buffer)), grain_(grain), slab_units_(grain.slab_bytes / grain.unit_bytes) {
  CHECK(grain.slab_bytes % grain.unit_bytes == 0 && buffer_->size() % grain.slab_bytes == 0);
  slabs_.resize(buffer_->size() / grain.slab_bytes);
  units_.reserve(slabs_.size() * slab_units_);
}

bool Backing::commit(size_t slab) {
  if (!buffer_->commit(slab * grain_.slab_bytes, grain_.slab_bytes)) return false;
  const size_t begin = slab * slab_units_;
  if (units_.size() < begin + slab_units_) units_.resize(begin + slab_units_, kAbsent);
  std::fill_n(units_.begin() + std::ptrdiff_t(begin), slab_units_, kIdle);
  slabs_[slab].resident_units = uint32_t(slab_units_);
  resident_units_ += slab_units_;
  return true;
}

void Backing::decommit(size_t slab) {
  buffer_->decommit(slab * grain_.slab_bytes, grain_.slab_bytes);
  std::fill_n(units_.begin() + std::ptrdiff_t(slab * slab_units_), slab_units_, kAbsent);
  resident_units_ -= slabs_[slab].resident_units;
  slabs_[slab] = {};
}

bool Backing::use(size_t offset, size_t bytes) {
  const size_t first_slab = offset / grain_.slab_bytes;
  const size_t last_slab = (offset + bytes - 1) / grain_.slab_bytes;
  for (size_t slab = first_slab; slab <= last_slab; ++slab) {
    if (slabs_[slab].resident_units > 0 || commit(slab)) continue;
    for (size_t done = first_slab; done < slab; ++done) {
      if (slabs_[done].used_units == 0) decommit(done);
    }
    return false;
  }
  const size_t last_unit = (offset + bytes - 1) / grain_.unit_bytes;
  for (size_t unit = offset / grain_.unit_bytes; unit <= last_unit; ++unit) {
    Slab& slab = slabs_[unit / slab_units_];
    uint16_t& users = units_[unit];
    if (users != kAbsent && users != kIdle) {
      ++users;
      continue;
    }
    slab.resident_units += uint32_t(users == kAbsent);
    resident_units_ += size_t(users == kAbsent);
    ++slab.used_units;
    ++used_units_;
    users = 1;
  }
  return true;
}

void Backing::drop(size_t offset, size_t bytes) {
  const size_t last_unit = (offset + bytes - 1) / grain_.unit_bytes;
  for (size_t unit = offset / grain_.unit_bytes; unit <= last_unit; ++unit) {
    uint16_t& users = units_[unit];
    DCHECK(users != kAbsent && users != kIdle);
    if (--users > 0) continue;
    users = kIdle;
    --slabs_[unit / slab_units_].used_units;
    --used_units_;
  }
  const size_t last_slab = (offset + bytes - 1) / grain_.slab_bytes;
  for (size_t slab = offset / grain_.slab_bytes; slab <= last_slab; ++slab) {
    if (slabs_[slab].used_units == 0) decommit(slab);
  }
}

void Backing::reduce_slack(size_t bytes_left) {
  while (slack_bytes() > bytes_left) {
    const auto most = std::max_element(
        slabs_.begin(), slabs_.end(),
        [](const Slab& a, const Slab& b) { return a.slack_units() < b.slack_units(); });
    give_back_slack(size_t(most - slabs_.begin()));
  }
}

// Runs of idle units, each at once.
void Backing::give_back_slack(size_t slab) {
  const size_t end = (slab + 1) * slab_units_;
  for (size_t unit = slab * slab_units_; unit < end;) {
    if (units_[unit] != kIdle) {
      ++unit;
      continue;
    }
    const size_t begin = unit;
    while (unit < end && units_[unit] == kIdle) units_[unit++] = kAbsent;
    buffer_->discard(begin * grain_.unit_bytes, (unit - begin) * grain_.unit_bytes);
    slabs_[slab].resident_units -= uint32_t(unit - begin);
    resident_units_ -= unit - begin;
  }
}

}  // namespace cairn::memory
