// With a scale d, an entry that stands for values v leaves the error sum w (x - d v)^2: best is the
// least d * Q - 2 * P with Q = sum w v^2 and P = sum w x v, a straight line in d for each entry.
// Only entries on the lower hull of these lines are ever best, a dozen of hundreds; they are found
// once, then every scale is cheap to judge. Sums of an entry are put together from tables over its
// halves. One block takes some ten passes over the grid for each of its 32 (or 64) runs. In the end
// the scale is stretched until the values reach as far along the weights as these do: least squares
// leaves them shorter by their squared error, always, and a model suffers most from that.
#include "quant/grids/grid_fit.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "quant/lanes.h"
#include "quant/search.h"

namespace cairn::quant {
namespace {

constexpr int kEntriesMax = 2048;
constexpr int kHullMax = 48;

// The lines of all entries for one run of weights.
struct Lines {
  alignas(16) float p[kEntriesMax];
  alignas(16) float q[kEntriesMax];
};

// Entries that are best somewhere, the first for the smallest scales.
struct Hull {
  int32_t count;
  float p[kHullMax], q[kHullMax];
  uint16_t entry[kHullMax];
};

// What one way of signs (or of the eighth) makes of a cell: a hull for each of its runs.
struct Way {
  Hull runs[4];
  bool is_flipped[4];  // The run has one sign against its weights.
};

// Weights that choose a way together: at most two ways.
struct Cell {
  Way ways[2];
  int32_t way_count;
};

struct Cells {
  Cell cells[32];
  int32_t run_count;  // Runs of a cell.
};

struct Sums {
  float p, q;
};

// Sums over half a run, for each code that the half may have: P, Q, and the least w |x| v, which is
// what turning the cheapest sign around costs (twice).
struct HalfTable {
  float p[256], q[256], flip[256];
};

// `x` are the values that are to be met, `count` of them; `bits` of a code.
void fill_table(const float* x, const float* w, const float* levels, int count, int bits,
                HalfTable& table) {
  const int code_count = 1 << bits;
  int filled = 1;
  table.p[0] = table.q[0] = 0;
  table.flip[0] = INFINITY;
  for (int i = 0; i < count; ++i, filled <<= bits) {
    for (int code = code_count - 1; code >= 0; --code) {
      const float product = w[i] * x[i] * levels[code];
      const float square = w[i] * levels[code] * levels[code];
      for (int low = 0; low < filled; ++low) {
        const int at = code * filled + low;
        table.p[at] = table.p[low] + product;
        table.q[at] = table.q[low] + square;
        table.flip[at] = std::min(table.flip[low], product);
      }
    }
  }
}

void fill_lines(const GridFormat& format, const float* x, const float* w, const float* levels,
                bool is_flipped, Lines& lines) {
  const int bits = format.entry_weights == 8 ? 2 : 3;
  const int half = format.entry_weights / 2;
  const int shift = half * bits, mask = (1 << shift) - 1;
  HalfTable low, high;
  fill_table(x, w, levels, half, bits, low);
  fill_table(x + half, w + half, levels, half, bits, high);
  for (int entry = 0; entry < format.entry_count; ++entry) {
    const int a = format.grid[entry] & mask, b = format.grid[entry] >> shift;
    const float p = low.p[a] + high.p[b];
    lines.p[entry] = is_flipped ? p - 2 * std::min(low.flip[a], high.flip[b]) : p;
    lines.q[entry] = low.q[a] + high.q[b];
  }
}

// The entry with the least d * q - c * p; of equal ones the first. `count` is a multiple of 4.
int best_entry(const Lines& lines, int count, float d, float c) {
  using I4 = int32_t __attribute__((vector_size(16)));
  const F4 steepness = splat(d), factor = splat(c);
  F4 least = splat(INFINITY);
  I4 where{0, 1, 2, 3}, at{0, 1, 2, 3};
  const I4 four{4, 4, 4, 4};
  for (int i = 0; i < count; i += 4, at += four) {
    const F4 value = steepness * load4(lines.q + i) - factor * load4(lines.p + i);
    const auto is_less = value < least;
    least = is_less ? value : least;
    where = is_less ? at : where;
  }
  int best = 0;
  for (int lane = 1; lane < 4; ++lane) {
    const bool is_equal = least[lane] == least[best];
    if (least[lane] < least[best] || (is_equal && where[lane] < where[best])) best = lane;
  }
  return where[best];
}

class HullFinder {
 public:
  HullFinder(const Lines& lines, int count, Hull& out) : lines_(lines), count_(count), out_(out) {}

  // For scales from `lowest` on.
  void find(float lowest) {
    out_.count = 0;
    const int first = best_entry(lines_, count_, lowest, 2);
    const int last = best_entry(lines_, count_, 1, 0);  // Infinite scales: Q alone counts.
    add(first);
    if (first == last) return;
    between(first, last, 0);
    add(last);
  }

 private:
  void add(int entry) {
    if (out_.count == kHullMax) return;
    out_.p[out_.count] = lines_.p[entry];
    out_.q[out_.count] = lines_.q[entry];
    out_.entry[out_.count++] = uint16_t(entry);
  }

  // What is better than both where their lines cross, and then to either side of that.
  void between(int low, int high, int depth) {
    const float rise = lines_.q[low] - lines_.q[high], gain = lines_.p[low] - lines_.p[high];
    if (!(rise > 0 && gain > 0) || depth == 16) return;
    const float d = 2 * gain / rise;
    const int middle = best_entry(lines_, count_, d, 2);
    const float better = d * lines_.q[middle] - 2 * lines_.p[middle];
    const float known =
        std::min(d * lines_.q[low] - 2 * lines_.p[low], d * lines_.q[high] - 2 * lines_.p[high]);
    if (middle == low || middle == high || !(better < known)) return;
    between(low, middle, depth + 1);
    add(middle);
    between(middle, high, depth + 1);
  }

  const Lines& lines_;
  int count_;
  Hull& out_;
};

// Where the hull is best for scale d.
int best_of(const Hull& hull, float d) {
  int best = 0;
  float least = d * hull.q[0] - 2 * hull.p[0];
  for (int i = 1; i < hull.count; ++i) {
    const float value = d * hull.q[i] - 2 * hull.p[i];
    if (value >= least) break;  // Along the hull values fall, then rise.
    least = value;
    best = i;
  }
  return best;
}

Sums sums_of(const Way& way, int run_count, float d) {
  Sums sums{0, 0};
  for (int run = 0; run < run_count; ++run) {
    const int at = best_of(way.runs[run], d);
    sums.p += way.runs[run].p[at];
    sums.q += way.runs[run].q[at];
  }
  return sums;
}

int best_way(const Cell& cell, int run_count, float d, Sums& sums) {
  sums = sums_of(cell.ways[0], run_count, d);
  if (cell.way_count == 1) return 0;
  const Sums other = sums_of(cell.ways[1], run_count, d);
  if (!(d * other.q - 2 * other.p < d * sums.q - 2 * sums.p)) return 0;
  sums = other;
  return 1;
}

// The best sums of cells first … last - 1 with scale d.
Sums group_sums(const Cells& cells, int first, int last, float d) {
  Sums total_sums{0, 0};
  for (int cell = first; cell < last; ++cell) {
    Sums sums;
    best_way(cells.cells[cell], cells.run_count, d, sums);
    total_sums.p += sums.p;
    total_sums.q += sums.q;
  }
  return total_sums;
}

// By how much scale d lowers the error, with given sums.
float gain_of(const Sums& sums, float d) {
  return d * (2 * sums.p - d * sums.q);
}

float largest_of(const float* x, int count) {
  float largest = 0;
  for (int i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}

class GridFitter {
 public:
  GridFitter(const GridFormat& format, const Prepared& block)
      : format_(format),
        block_(block),
        run_weights_(format.entry_weights),
        group_weights_(256 / format.group_count),
        cell_count_(256 / format.cell_weights),
        cells_of_group_(cell_count_ / format.group_count) {
    cells_.run_count = format.cell_weights / run_weights_;
    for (const int8_t level : format.levels)
      largest_level_ = std::max(largest_level_, float(level));
    for (int cell = 0; cell < cell_count_; ++cell) prepare_cell(cell);
  }

  void fit(GridFit& out) {
    out = {};
    float peak = 0;
    for (int group = 0; group < format_.group_count; ++group) {
      wanted_[group] = search_group(group);
      peak = std::max(peak, wanted_[group]);
    }
    // The largest group need not have the largest multiple: with few multiples another step often
    // serves the others better.
    float best_gain = 0;
    for (int candidate = 0; candidate < kStepCandidates; ++candidate) {
      const float part = 0.8f + 0.05f * float(candidate);
      float step = peak / (part * float(2 * format_.s_high + 1));
      for (int round = 0; round < kRounds; ++round) {
        const Half scale = to_half(std::min(step * block_.unit * format_.stored_factor, 65504.0f));
        step = to_float(scale) / (block_.unit * format_.stored_factor);
        if (!(step > 0)) break;
        uint8_t s[16];
        float refitted = 0;
        const float gain = choose_multiples(step, s, refitted);
        if (gain > best_gain) {
          best_gain = gain;
          out.scale = scale;
          std::copy(s, s + 16, out.s);
        }
        step = refitted;
      }
    }
    choose_entries(out);
  }

 private:
  static constexpr int kStepCandidates = 9;
  static constexpr int kRounds = 2;

  void prepare_cell(int at) {
    Cell& cell = cells_.cells[at];
    const int first = at * format_.cell_weights;
    cell.way_count = 1;
    if (format_.signs == GridSigns::shifted) {
      cell.way_count = 2;
      for (int way = 0; way < 2; ++way) prepare_shifted(first, way == 0 ? 1 : -1, cell.ways[way]);
    } else if (format_.signs == GridSigns::even && has_odd_signs(first)) {
      // One sign of the eight turns around: in the first run or, if there is one, in the second.
      cell.way_count = cells_.run_count;
      for (int way = 0; way < cell.way_count; ++way) prepare_signed(first, way, cell.ways[way]);
    } else {
      prepare_signed(first, -1, cell.ways[0]);
    }
  }

  bool has_odd_signs(int first) const {
    int negative_count = 0;
    for (int i = first; i < first + 8; ++i) negative_count += block_.x[i] < 0 ? 1 : 0;
    return negative_count % 2 == 1;
  }

  // Magnitudes; the run `flipped` has one sign against its weights.
  void prepare_signed(int first, int flipped, Way& way) {
    float levels[8], x[8];
    for (int code = 0; code < 8; ++code) levels[code] = float(format_.levels[code]);
    for (int run = 0; run < cells_.run_count; ++run) {
      const int at = first + run * run_weights_;
      for (int i = 0; i < run_weights_; ++i) x[i] = std::abs(block_.x[at + i]);
      way.is_flipped[run] = run == flipped;
      find_hull(at, x, levels, run == flipped, way.runs[run]);
    }
  }

  void prepare_shifted(int first, int shift, Way& way) {
    float levels[8];
    for (int code = 0; code < 8; ++code) levels[code] = float(format_.levels[code] + shift);
    for (int run = 0; run < cells_.run_count; ++run) {
      const int at = first + run * run_weights_;
      way.is_flipped[run] = shift < 0;
      find_hull(at, block_.x + at, levels, false, way.runs[run]);
    }
  }

  // Of the run at `weight`, whose values (or their magnitudes) are `x`.
  void find_hull(int weight, const float* x, const float* levels, bool is_flipped, Hull& hull) {
    fill_lines(format_, x, block_.w + weight, levels, is_flipped, lines_);
    const float lowest = 0.2f * peak_of_group(weight / group_weights_) / largest_level_;
    HullFinder(lines_, format_.entry_count, hull).find(lowest);
  }

  float peak_of_group(int group) const {
    return largest_of(block_.x + group * group_weights_, group_weights_);
  }

  // The scale that serves the group best, were it free.
  float search_group(int group) const {
    const float peak = peak_of_group(group);
    float best_scale = 0, best_gain = 0;
    const auto consider = [&](float d) {
      const Sums sums = sums_of_group(group, d);
      if (!(sums.p > 0 && sums.q > 0)) return;
      const float refitted = sums.p / sums.q;
      const float gain = gain_of(sums, refitted);
      if (!(gain > best_gain)) return;
      best_gain = gain;
      best_scale = refitted;
    };
    constexpr int kCandidates = 20;
    for (int i = 0; i < kCandidates && peak > 1e-30f; ++i) {
      consider(peak / largest_level_ * (0.25f + 0.05f * float(i)));
    }
    for (int pass = 0; pass < 2 && best_scale > 0; ++pass) consider(best_scale);
    return best_scale;
  }

  Sums sums_of_group(int group, float d) const {
    return group_sums(cells_, group * cells_of_group_, (group + 1) * cells_of_group_, d);
  }

  // The multiples for one step, the gain of all, and the step that would serve them best.
  float choose_multiples(float step, uint8_t* s, float& refitted) const {
    float gain = 0, p = 0, q = 0;
    for (int group = 0; group < 16; ++group) {
      s[group] = 0;
      if (group >= format_.group_count) continue;
      const float wanted = std::min(wanted_[group] / step, float(2 * format_.s_high + 1));
      const int middle = std::clamp(int(std::lrint((wanted - 1) / 2)), 0, format_.s_high);
      float best_gain = -INFINITY;
      Sums best_sums{0, 0};
      for (int trial = std::max(middle - 1, 0); trial <= std::min(middle + 1, format_.s_high);
           ++trial) {
        const float d = step * float(2 * trial + 1);
        const Sums sums = sums_of_group(group, d);
        const float trial_gain = gain_of(sums, d);
        if (!(trial_gain > best_gain)) continue;
        best_gain = trial_gain;
        best_sums = sums;
        s[group] = uint8_t(trial);
      }
      const float multiple = float(2 * s[group] + 1);
      gain += best_gain;
      p += multiple * best_sums.p;
      q += multiple * multiple * best_sums.q;
    }
    refitted = q > 0 ? p / q : 0;
    return gain;
  }

  void choose_entries(GridFit& out) const {
    float met = 0;  // Sum w x v, of all weights.
    const float step = to_float(out.scale) / (block_.unit * format_.stored_factor);
    for (int cell = 0; cell < cell_count_; ++cell) {
      const int first = cell * format_.cell_weights;
      const int group = first / group_weights_;
      const float d = step * float(2 * out.s[group] + 1);
      Sums sums;
      const int at = best_way(cells_.cells[cell], cells_.run_count, d, sums);
      met += d * sums.p;
      const Way& way = cells_.cells[cell].ways[at];
      for (int run = 0; run < cells_.run_count; ++run) {
        const int weight = first + run * run_weights_;
        const Hull& hull = way.runs[run];
        const uint16_t entry = hull.entry[best_of(hull, d)];
        out.index[weight / run_weights_] = entry;
        if (format_.signs == GridSigns::shifted) {
          out.is_low[weight / 8] = way.is_flipped[run];
        } else {
          out.signs[weight / 8] |= uint8_t(signs_of(weight, entry, way.is_flipped[run]));
        }
      }
    }
    stretch(met, out);
  }

  void stretch(float met, GridFit& out) const {
    out.fitted_scale = to_float(out.scale);
    float wanted = 0;
    for (int i = 0; i < 256; ++i) wanted += block_.w[i] * block_.x[i] * block_.x[i];
    if (!(met > 0)) return;
    out.scale = to_half(std::min(out.fitted_scale * (wanted / met), 65504.0f));
  }

  // Of the run at `weight`: in the places of its eight weights.
  uint32_t signs_of(int weight, uint16_t entry, bool is_flipped) const {
    const int bits = run_weights_ == 8 ? 2 : 3;
    uint32_t signs = 0;
    int cheapest = 0;
    float least = INFINITY;
    for (int i = 0; i < run_weights_; ++i) {
      const float x = block_.x[weight + i];
      signs |= uint32_t(x < 0) << i;
      const uint32_t packed = uint32_t(format_.grid[entry]);
      const float level = float(format_.levels[packed >> (bits * i) & ((1u << bits) - 1)]);
      const float cost = block_.w[weight + i] * std::abs(x) * level;
      if (!(cost < least)) continue;
      least = cost;
      cheapest = i;
    }
    if (is_flipped) signs ^= 1u << cheapest;
    return signs << (weight % 8);
  }

  const GridFormat& format_;
  const Prepared& block_;
  int run_weights_, group_weights_, cell_count_, cells_of_group_;
  float largest_level_ = 0;
  float wanted_[16] = {};
  Lines lines_;
  Cells cells_;
};

}  // namespace

void fit_grid(const float* weights, const float* importance, const GridFormat& format,
              GridFit& out) {
  Prepared block;
  prepare(weights, importance, 256, block);
  emphasize(block, 256, Emphasis::mild);
  GridFitter(format, block).fit(out);
}

}  // namespace cairn::quant
