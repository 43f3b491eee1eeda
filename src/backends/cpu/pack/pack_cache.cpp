// The file's content is untrusted: whatever is in it, at worst it is refused.
#include "backends/cpu/pack/pack_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/digest.h"
#include "base/output_file.h"

namespace cairn::cpu {
namespace {

// The file: header, a digest for each piece of the data, zeros up to a multiple of 2 MiB (so that
// the data can lie on huge pages), data.
struct Header {
  char magic[8];
  uint32_t layout;       // kPackedLayout
  uint32_t piece_bytes;  // kCheckedBytes
  uint64_t model_digest;
  uint64_t jobs_digest;  // Which weights, in which forms, at which offsets.
  uint64_t data_bytes;
  uint64_t digest;  // Of the header up to here and of the pieces' digests.
};
static_assert(sizeof(Header) == 48);

constexpr char kMagic[8] = {'c', 'a', 'i', 'r', 'n', 'p', 'a', 'k'};
constexpr size_t kCheckedBytes = size_t(2) << 20;
constexpr size_t kWrittenBytes = size_t(32) << 20;  // At a time: between, it may be given up.
constexpr size_t kAlignment = size_t(2) << 20;

size_t bytes_of(const std::vector<PackJob>& jobs) {
  return jobs.back().offset + jobs.back().bytes();
}

size_t piece_count(size_t data_bytes) {
  return (data_bytes + kCheckedBytes - 1) / kCheckedBytes;
}

size_t data_offset(size_t data_bytes) {
  const size_t head = sizeof(Header) + 8 * piece_count(data_bytes);
  return (head + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t digest_of(const std::vector<PackJob>& jobs) {
  uint64_t all = 0;
  for (const PackJob& job : jobs) {
    const PackedMatrix& matrix = *job.matrix;
    const PackedForm& form = matrix.form;
    all = digest(std::as_bytes(std::span(job.weight->name)), all);
    const int64_t facts[] = {job.weight->type->gguf_id,
                             job.weight->count,
                             matrix.rows,
                             matrix.cols,
                             matrix.group_bytes,
                             matrix.scales_bytes,
                             int64_t(form.plane),
                             int64_t(form.scales),
                             form.halves,
                             form.offsets,
                             form.bias,
                             int64_t(job.offset)};
    all = digest(std::as_bytes(std::span(facts)), all);
    all = digest(std::as_bytes(std::span(form.table)), all);
  }
  return all;
}

uint64_t digest_of(const Header& header, std::span<const uint64_t> digests) {
  const uint64_t head =
      digest(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, digest)));
  return digest(std::as_bytes(digests), head);
}

// `on_progress` is told how many bytes are done, and of how many. Error: cancelled.
Result<std::vector<uint64_t>> piece_digests(
    const PackOptions& options, std::span<const std::byte> data, ThreadPool& threads,
    const std::function<void(size_t, size_t)>& on_progress) {
  std::vector<uint64_t> digests(piece_count(data.size()));
  TaskCounter next;
  threads.run([&](int worker) {
    for (size_t at = size_t(next.claim(1)); at < digests.size(); at = size_t(next.claim(1))) {
      if (options.is_given_up && options.is_given_up()) return;
      const size_t begin = at * kCheckedBytes;
      if (worker == 0 && on_progress) on_progress(begin, data.size());
      digests[at] = digest(data.subspan(begin, std::min(kCheckedBytes, data.size() - begin)));
    }
  });
  CAIRN_TRY(expect_wanted(options));
  if (on_progress) on_progress(data.size(), data.size());
  return digests;
}

Header make_header(const PackOptions& options, const std::vector<PackJob>& jobs) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.layout = kPackedLayout;
  header.piece_bytes = uint32_t(kCheckedBytes);
  header.model_digest = options.model_digest;
  header.jobs_digest = digest_of(jobs);
  header.data_bytes = bytes_of(jobs);
  return header;
}

// Whether the file says that it is what is wanted.
Status check_header(const std::string& path, const Header& found, const Header& expected) {
  if (std::memcmp(found.magic, expected.magic, sizeof kMagic) != 0) {
    return fail(ErrorCode::invalid_data, "{}: expected packed weights, found something else", path);
  }
  if (found.layout != expected.layout) {
    return fail(ErrorCode::invalid_data, "{}: expected layout {}, found {}", path, expected.layout,
                found.layout);
  }
  if (found.piece_bytes != expected.piece_bytes || found.model_digest != expected.model_digest ||
      found.jobs_digest != expected.jobs_digest || found.data_bytes != expected.data_bytes) {
    return fail(ErrorCode::invalid_data, "{}: expected the weights of this model, found others",
                path);
  }
  return Ok{};
}

}  // namespace

Status expect_wanted(const PackOptions& options) {
  if (!options.is_given_up || !options.is_given_up()) return Ok{};
  return fail(ErrorCode::cancelled, "weights: the packing was given up");
}

Result<PackCache> PackCache::open(const PackOptions& options, const std::vector<PackJob>& jobs,
                                  ThreadPool& threads,
                                  const std::function<void(size_t, size_t)>& on_progress) {
  const std::string& path = options.cache_path;
  CAIRN_TRY(MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  Header found{};
  std::memcpy(&found, bytes.data(), std::min(bytes.size(), sizeof found));
  const Header expected = make_header(options, jobs);
  CAIRN_TRY(check_header(path, found, expected));
  const size_t offset = data_offset(expected.data_bytes);
  if (bytes.size() != offset + expected.data_bytes) {
    return fail(ErrorCode::invalid_data, "{}: expected {} bytes, found {}", path,
                offset + expected.data_bytes, bytes.size());
  }
  std::vector<uint64_t> digests(piece_count(expected.data_bytes));
  std::memcpy(digests.data(), bytes.data() + sizeof found, digests.size() * 8);
  if (digest_of(found, digests) != found.digest) {
    return fail(ErrorCode::invalid_data, "{}: the head is damaged", path);
  }
  file.prefer_huge_pages();
  CAIRN_TRY(const std::vector<uint64_t> computed,
            piece_digests(options, bytes.subspan(offset), threads, on_progress));
  const auto differs = std::mismatch(digests.begin(), digests.end(), computed.begin());
  if (differs.first != digests.end()) {
    const size_t piece = size_t(differs.first - digests.begin());
    return fail(ErrorCode::invalid_data, "{}: damaged within 2 MiB from byte {} on", path,
                offset + piece * kCheckedBytes);
  }
  return PackCache(std::move(file), offset);
}

Status PackCache::save(const PackOptions& options, const std::vector<PackJob>& jobs,
                       std::span<const std::byte> packed, ThreadPool& threads) {
  const std::filesystem::path folder = std::filesystem::path(options.cache_path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::io, "{}: cannot make the folder: {}", folder.string(), error.message());
  }
  CAIRN_TRY(const std::vector<uint64_t> digests, piece_digests(options, packed, threads, {}));
  Header header = make_header(options, jobs);
  header.digest = digest_of(header, digests);
  std::vector<std::byte> head(data_offset(packed.size()));
  std::memcpy(head.data(), &header, sizeof header);
  std::memcpy(head.data() + sizeof header, digests.data(), digests.size() * 8);
  CAIRN_TRY(OutputFile writer, OutputFile::open(options.cache_path));
  CAIRN_TRY(writer.append(head));
  for (size_t at = 0; at < packed.size(); at += kWrittenBytes) {
    CAIRN_TRY(expect_wanted(options));
    CAIRN_TRY(writer.append(packed.subspan(at, std::min(kWrittenBytes, packed.size() - at))));
  }
  return writer.commit();
}

const uint8_t* PackCache::data() const {
  return reinterpret_cast<const uint8_t*>(file_.bytes().data()) + data_offset_;
}

}  // namespace cairn::cpu
