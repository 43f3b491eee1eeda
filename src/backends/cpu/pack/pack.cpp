// Which size the packed form of a weight has, and the packing of many matrices by all threads.
#include "backends/cpu/pack/pack.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace cairn::cpu {
namespace {

int64_t round_up(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Some groups of a job, which a thread packs at a time: enough that giving their pages back is not
// most of the work.
struct Piece {
  const PackJob* job;
  int64_t first, end;
};
constexpr int64_t kPieceBytes = int64_t(1) << 20;
constexpr size_t kReadAhead = 32;  // Pieces: what a disk reads while they are packed.

std::vector<Piece> cut(const std::vector<PackJob>& jobs) {
  std::vector<Piece> pieces;
  for (const PackJob& job : jobs) {
    const int64_t step = std::max<int64_t>(1, kPieceBytes / job.matrix->group_bytes);
    const int64_t group_count = job.group_count();
    for (int64_t first = 0; first < group_count; first += step) {
      pieces.push_back({&job, first, std::min(first + step, group_count)});
    }
  }
  return pieces;
}

// Of blocks that begin at the same place: whether both are packed alike.
bool are_same(const Weight& first, const Weight& second) {
  return first.type == second.type && first.cols == second.cols && first.rows == second.rows &&
         first.count == second.count;
}

// The file's bytes behind a piece.
std::span<const std::byte> blocks_of(const Piece& piece) {
  const Weight& weight = *piece.job->weight;
  const int64_t group_count = piece.job->matrix->group_count;
  const auto row_of = [&](int64_t group) {
    return group / group_count * weight.rows +
           std::min<int64_t>(group % group_count * kGroupRows, weight.rows);
  };
  const size_t begin = size_t(row_of(piece.first)) * weight.row_bytes();
  const size_t end = size_t(row_of(piece.end)) * weight.row_bytes();
  return weight.blocks.subspan(begin, end - begin);
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
  const auto known = by_blocks_.find(weight.blocks.data());
  if (known != by_blocks_.end() && are_same(known->second->weight, weight)) {
    return &known->second->matrix;
  }
  auto entry = std::make_unique<Entry>(Entry{weight, packed_shape(weight)});
  PackedMatrix* matrix = &entry->matrix;
  if (settings_.options.is_off) matrix->source = &entry->weight;
  matrix->by_vectors = settings_.halves_by_vectors && matrix->form.halves;
  by_blocks_.insert_or_assign(weight.blocks.data(), entry.get());
  entries_.emplace(matrix, std::move(entry));
  return matrix;
}

std::vector<PackJob> PackedWeights::jobs_of(
    const std::vector<const PackedMatrix*>& matrices) const {
  std::vector<PackJob> jobs;
  size_t offset = 0;
  for (const PackedMatrix* matrix : matrices) {
    Entry& entry = *entries_.at(matrix);
    const auto is_same = [&](const PackJob& job) { return job.matrix == matrix; };
    if (matrix->data != nullptr || std::any_of(jobs.begin(), jobs.end(), is_same)) continue;
    jobs.push_back({&entry.weight, &entry.matrix, offset});
    offset += jobs.back().bytes();
  }
  return jobs;
}

Status PackedWeights::pack_all(const std::vector<PackJob>& jobs, uint8_t* data,
                               ThreadPool& threads) {
  const std::vector<Piece> pieces = cut(jobs);
  const size_t bytes = jobs.back().offset + jobs.back().bytes();
  const auto advise = [](const auto& told, std::span<const std::byte> blocks) {
    if (told) told(blocks);
  };
  TaskCounter next;
  threads.run([&](int worker) {
    for (size_t at = size_t(next.claim(1)); at < pieces.size(); at = size_t(next.claim(1))) {
      if (settings_.options.is_given_up && settings_.options.is_given_up()) return;
      const Piece& piece = pieces[at];
      if (at + kReadAhead < pieces.size()) {
        advise(settings_.advice.before_reading, blocks_of(pieces[at + kReadAhead]));
      }
      uint8_t* const begin = data + piece.job->offset;
      if (worker == 0 && settings_.on_progress) {
        settings_.on_progress(
            piece.job->offset + size_t(piece.first * piece.job->matrix->group_bytes), bytes);
      }
      for (int64_t group = piece.first; group < piece.end; ++group) {
        const PackedMatrix& matrix = *piece.job->matrix;
        pack_group(*piece.job->weight, matrix, int32_t(group / matrix.group_count),
                   int32_t(group % matrix.group_count), begin + group * matrix.group_bytes);
      }
      advise(settings_.advice.after_reading, blocks_of(piece));
    }
  });
  CAIRN_TRY(expect_wanted(settings_.options));
  // Pages that two pieces share went with neither.
  for (const PackJob& job : jobs) advise(settings_.advice.after_reading, job.weight->blocks);
  if (settings_.on_progress) settings_.on_progress(bytes, bytes);
  return Ok{};
}

size_t PackedWeights::needed_bytes(const std::vector<const PackedMatrix*>& matrices) const {
  std::error_code error;
  const std::string& cache_path = settings_.options.cache_path;
  const bool has_cache = !cache_path.empty() && std::filesystem::exists(cache_path, error);
  if (settings_.options.is_off || has_cache) return 0;
  const std::vector<PackJob> jobs = jobs_of(matrices);
  return jobs.empty() ? 0 : jobs.back().offset + jobs.back().bytes();
}

Status PackedWeights::pack(const std::vector<const PackedMatrix*>& matrices, ThreadPool& threads) {
  if (settings_.options.is_off) return Ok{};
  const std::vector<PackJob> jobs = jobs_of(matrices);
  if (jobs.empty()) return Ok{};
  const size_t bytes = jobs.back().offset + jobs.back().bytes();
  const bool may_cache = !settings_.options.cache_path.empty() && arenas_.empty();
  const uint8_t* data = nullptr;
  if (may_cache && caches_.empty()) {
    Result<PackCache> cache =
        PackCache::open(settings_.options, jobs, threads, settings_.on_progress);
    if (cache) {
      data = cache->data();
      caches_.push_back(std::move(cache).value());
    } else if (cache.error().code == ErrorCode::cancelled) {
      return std::move(cache).error();
    } else if (cache.error().code != ErrorCode::not_found) {
      log::warning("pack cache: {}: the weights are packed again", cache.error().message);
    }
  }
  if (data == nullptr) {
    CAIRN_TRY(Arena arena, Arena::reserve(bytes));
    uint8_t* const packed = reinterpret_cast<uint8_t*>(arena.data());
    CAIRN_TRY(pack_all(jobs, packed, threads));
    data = packed;
    if (may_cache && caches_.empty()) {
      const Status saved = PackCache::save(settings_.options, jobs, {arena.data(), bytes}, threads);
      CAIRN_TRY(expect_wanted(settings_.options));
      if (!saved) log::warning("pack cache: {}", saved.error().message);
    }
    arenas_.push_back(std::move(arena));
  }
  for (const PackJob& job : jobs) job.matrix->data = data + job.offset;
  return Ok{};
}

}  // namespace cairn::cpu
