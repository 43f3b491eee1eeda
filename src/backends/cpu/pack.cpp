// The packer: 16 rows at a time, through the formats' own integers, so that what is packed is by
// construction what the reference multiplies.
#include "backends/cpu/pack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace cairn::cpu {
namespace {

using RowUnits = std::array<quant::Unit, kSuperUnits>;  // Of one row, one block.

uint32_t four(const uint8_t* at) {
  uint32_t word;
  std::memcpy(&word, at, 4);
  return word;
}

void put_four(uint8_t* at, uint32_t word) {
  std::memcpy(at, &word, 4);
}

// The stored numbers of a unit's 32 weights.
class Coder {
 public:
  explicit Coder(const PackedForm& form) : form_(form) {
    std::fill(std::begin(codes_), std::end(codes_), uint8_t{255});
    for (int code = 15; code >= 0; --code) codes_[uint8_t(form.table[code])] = uint8_t(code);
  }

  void encode(const int8_t* q, uint8_t* codes) const {
    if (form_.plane == Plane::bytes) {
      std::memcpy(codes, q, 32);
      return;
    }
    // Two plain loops over local arrays: the first one becomes vectors.
    uint8_t local[32];
    if (form_.plane == Plane::table) {
      for (int i = 0; i < 32; ++i) local[i] = codes_[uint8_t(q[i])];
    } else {
      const uint8_t bias = uint8_t(form_.bias);
      for (int i = 0; i < 32; ++i) local[i] = uint8_t(uint8_t(q[i]) + bias);
    }
    uint8_t all_bits = 0;
    for (const uint8_t code : local) all_bits |= code;
    std::memcpy(codes, local, 32);
    const int bits = form_.plane == Plane::bits6 ? 6 : form_.plane == Plane::bits5 ? 5 : 4;
    CHECK(all_bits >> bits == 0);  // A rule of pack_rules.cpp is wrong.
  }

 private:
  const PackedForm& form_;
  uint8_t codes_[256];
};

// A row's 32 numbers into a unit's plane.
void put_codes(Plane plane, const uint8_t* codes, int row, uint8_t* unit) {
  uint8_t* at = unit + 4 * row;
  if (plane == Plane::bytes) {
    for (int t = 0; t < 8; ++t) put_four(at + 64 * t, four(codes + 4 * t));
    return;
  }
  for (int i = 0; i < 4; ++i) {
    const uint32_t low = four(codes + 8 * i) & 0x0f0f0f0fu;
    const uint32_t high = four(codes + 8 * i + 4) & 0x0f0f0f0fu;
    put_four(at + 64 * i, low | high << 4);
  }
  if (plane == Plane::bits5) {
    uint32_t bits = 0;
    for (int t = 0; t < 8; ++t) bits |= (four(codes + 4 * t) >> 4 & 0x01010101u) << t;
    put_four(at + 256, bits);
  }
  if (plane == Plane::bits6) {
    for (int u = 0; u < 2; ++u) {
      uint32_t bits = 0;
      for (int i = 0; i < 4; ++i) {
        bits |= (four(codes + 16 * u + 4 * i) >> 4 & 0x03030303u) << (2 * i);
      }
      put_four(at + 256 + 64 * u, bits);
    }
  }
}

// A row's numbers of one unit, as f16 or f32.
void put_scales(const PackedForm& form, const quant::Unit& unit, int row, uint8_t* at) {
  int part = 0;
  const auto put = [&](float value) {
    const int index = part++ * kGroupRows + row;
    if (form.scales == Scales::half) {
      const Half half = to_half(value);
      std::memcpy(at + 2 * index, &half, 2);
    } else {
      std::memcpy(at + 4 * index, &value, 4);
    }
  };
  for (int half = 0; half < (form.halves ? 2 : 1); ++half) {
    put(unit.scale[half]);
    if (form.offsets) put(unit.offset[half]);
  }
}

void put_super_scales(const PackedForm& form, const SuperScales& scales, int row, uint8_t* at) {
  std::memcpy(at + 2 * row, &scales.d, 2);
  if (form.offsets) {
    const Half negative = Half(uint16_t(scales.dmin) ^ 0x8000u);
    std::memcpy(at + 2 * (kGroupRows + row), &negative, 2);
  }
  uint8_t* small = at + (form.offsets ? 2 : 1) * kGroupRows * 2 + row;
  const int count = kSuperUnits * (form.halves ? 2 : 1);
  for (int index = 0; index < count; ++index) {
    *small = uint8_t(scales.scales[index]);
    small += kGroupRows;
    if (!form.offsets) continue;
    *small = uint8_t(scales.minima[index]);
    small += kGroupRows;
  }
}

void pack_quantized_row(const Weight& weight, const PackedMatrix& shape, const FormatRule& rule,
                        const Coder& coder, const std::byte* block, int row, uint8_t* out) {
  const PackedForm& form = shape.form;
  const int unit_bytes = plane_bytes(form.plane);
  const int parts = scale_parts(form.halves, form.offsets);
  const int scale_stride = parts * kGroupRows * (form.scales == Scales::half ? 2 : 4);
  const int block_units = weight.type->block_weights / 32;
  RowUnits units;
  uint8_t codes[32];
  for (int32_t unit = 0; unit < unit_count(shape); unit += block_units) {
    weight.type->integers(block, units.data());
    if (form.scales == Scales::super) {
      const int bytes = super_bytes(form.scales, form.halves, form.offsets);
      put_super_scales(form, rule.super_scales(block), row, out + unit / kSuperUnits * bytes);
    }
    for (int32_t index = 0; index < block_units; ++index) {
      const quant::Unit& from = units[size_t(index)];
      if (form.scales != Scales::super) {
        put_scales(form, from, row, out + int64_t(unit + index) * scale_stride);
      }
      coder.encode(from.q, codes);
      put_codes(form.plane, codes, row,
                out + shape.scales_bytes + int64_t(unit + index) * unit_bytes);
    }
    block += weight.type->block_bytes;
  }
}

void pack_float_row(const PackedMatrix& shape, const std::byte* from, int row, uint8_t* out) {
  const int column_bytes = plane_bytes(shape.form.plane);
  if (shape.form.plane == Plane::f32) {
    for (int32_t k = 0; k < shape.cols; ++k) {
      std::memcpy(out + int64_t(k) * column_bytes + 4 * row, from + int64_t(k) * 4, 4);
    }
  } else {
    for (int32_t k = 0; k < shape.cols; ++k) {
      std::memcpy(out + int64_t(k) * column_bytes + 2 * row, from + int64_t(k) * 2, 2);
    }
  }
}

int64_t round_up(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

PackedMatrix packed_shape(const Weight& weight) {
  PackedMatrix shape;
  shape.form = format_rule(*weight.type).form;
  shape.cols = weight.cols;
  shape.rows = weight.rows;
  shape.group_count = (weight.rows + kGroupRows - 1) / kGroupRows;
  if (is_float(shape.form.plane)) {
    shape.group_bytes = round_up(int64_t(weight.cols) * plane_bytes(shape.form.plane));
    return shape;
  }
  const PackedForm& form = shape.form;
  const int64_t units = unit_count(shape);
  const int64_t supers = super_bytes(form.scales, form.halves, form.offsets);
  // Only super scales need whole runs of 8 units, and only formats of 256 weights have them.
  shape.scales_bytes = round_up(units * supers / kSuperUnits);
  shape.group_bytes = round_up(shape.scales_bytes + units * plane_bytes(form.plane));
  return shape;
}

void pack_group(const Weight& weight, const PackedMatrix& shape, int32_t matrix, int32_t group,
                uint8_t* out) {
  const FormatRule rule = format_rule(*weight.type);
  const Coder coder(rule.form);
  const int32_t first = group * kGroupRows;
  const int32_t row_count = std::min(kGroupRows, weight.rows - first);
  // Rows that do not exist are zeros: zero scales, zero weights.
  if (row_count < kGroupRows) std::memset(out, 0, size_t(shape.group_bytes));
  for (int row = 0; row < row_count; ++row) {
    const std::byte* blocks = weight.row(matrix, first + row);
    if (is_float(shape.form.plane)) {
      pack_float_row(shape, blocks, row, out);
    } else {
      pack_quantized_row(weight, shape, rule, coder, blocks, row, out);
    }
  }
}

Result<const PackedMatrix*> PackedWeights::add(const Weight& weight) {
  const quant::Type& type = *weight.type;
  if (weight.cols <= 0 || weight.rows <= 0 || weight.count <= 0 ||
      weight.cols % type.block_weights != 0) {
    return fail(ErrorCode::invalid_data, "{}: expected rows of whole {} blocks, found [{}, {}, {}]",
                weight.name, type.name, weight.cols, weight.rows, weight.count);
  }
  const size_t expected = weight.row_bytes() * size_t(weight.rows) * size_t(weight.count);
  if (weight.blocks.size() != expected) {
    return fail(ErrorCode::invalid_data, "{}: expected {} bytes of {}, found {}", weight.name,
                expected, type.name, weight.blocks.size());
  }
  auto entry = std::make_unique<Entry>(Entry{weight, packed_shape(weight)});
  const PackedMatrix* matrix = &entry->matrix;
  entries_.emplace(matrix, std::move(entry));
  return matrix;
}

Status PackedWeights::pack(const std::vector<const PackedMatrix*>& matrices, ThreadPool& threads,
                           const std::function<void(size_t, size_t)>& on_progress) {
  struct Job {
    const Weight* weight;
    PackedMatrix* matrix;
    uint8_t* data;
    int64_t end;  // Groups of this and all earlier jobs.
  };
  std::vector<Job> jobs;
  int64_t group_count = 0;
  size_t bytes = 0;
  for (const PackedMatrix* matrix : matrices) {
    Entry& entry = *entries_.at(matrix);
    const auto is_same = [&](const Job& job) { return job.matrix == matrix; };
    if (matrix->data != nullptr || std::any_of(jobs.begin(), jobs.end(), is_same)) continue;
    const int64_t groups = int64_t(matrix->group_count) * entry.weight.count;
    group_count += groups;
    bytes += size_t(groups * matrix->group_bytes);
    jobs.push_back({&entry.weight, &entry.matrix, nullptr, group_count});
  }
  if (jobs.empty()) return Ok{};
  CAIRN_TRY(Arena arena, Arena::reserve(bytes));
  for (Job& job : jobs) {
    const int64_t groups = int64_t(job.matrix->group_count) * job.weight->count;
    job.data = reinterpret_cast<uint8_t*>(arena.allocate(size_t(groups * job.matrix->group_bytes)));
    CHECK(job.data != nullptr);
  }
  TaskCounter next;
  threads.run([&](int worker) {
    for (int64_t task = next.claim(4); task < group_count; task = next.claim(4)) {
      if (worker == 0 && on_progress) {
        on_progress(size_t(double(bytes) * double(task) / double(group_count)), bytes);
      }
      for (int64_t index = task; index < std::min(task + 4, group_count); ++index) {
        const auto job = std::partition_point(jobs.begin(), jobs.end(),
                                              [&](const Job& each) { return each.end <= index; });
        const int64_t first = job == jobs.begin() ? 0 : std::prev(job)->end;
        const int64_t group = index - first;
        pack_group(*job->weight, *job->matrix, int32_t(group / job->matrix->group_count),
                   int32_t(group % job->matrix->group_count),
                   job->data + group * job->matrix->group_bytes);
      }
    }
  });
  if (on_progress) on_progress(bytes, bytes);
  for (const Job& job : jobs) job.matrix->data = job.data;
  arenas_.push_back(std::move(arena));
  return Ok{};
}

}  // namespace cairn::cpu
