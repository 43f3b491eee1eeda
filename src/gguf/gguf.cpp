// Opening: maps the files, reads each as a part, and joins the parts of a split model.
#include "gguf/gguf.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/digest.h"
#include "base/mapped_file.h"
#include "gguf/limits.h"
#include "gguf/rules.h"
#include "gguf/split.h"

namespace cairn::gguf {

struct File::Contents {
  std::string name;
  std::vector<MappedFile> maps;  // One for each part; none where the bytes are somebody else's.
  std::span<const std::byte> first_bytes;  // The first part, and where its metadata ends.
  size_t first_data_offset = 0;
  uint64_t file_bytes = 0;
  uint32_t version = 0;
  uint64_t alignment = 0;
  Fields fields;
  std::vector<Tensor> tensors;
  NameIndex index;
  Problems problems;

  Status read_first(std::span<const std::byte> bytes, OpenMode mode);
  Status read_others(const std::string& path, OpenMode mode);
  Status finish(OpenMode mode);
  Status report(Error error, OpenMode mode);
  const MappedFile* map_of(std::span<const std::byte> bytes) const;
};

namespace {

constexpr size_t kPathBytesMax = 4096;

Error about(std::string_view name, Error error) {
  error.message = fmt::format("{}: {}", shown(name, kPathBytesMax), error.message);
  return error;
}

// What the fields say of the file's place in a split model.
struct SplitFields {
  uint64_t part;        // From 0.
  uint64_t part_count;  // 1 for a whole file.
  uint64_t tensor_count;
};

Result<SplitFields> split_fields(const Fields& fields) {
  SplitFields split{};
  CAIRN_TRY(split.part, fields.get_or<uint64_t>("split.no", 0));
  CAIRN_TRY(split.part_count, fields.get_or<uint64_t>("split.count", 1));
  CAIRN_TRY(split.tensor_count, fields.get_or<uint64_t>("split.tensors.count", 0));
  if (split.part_count == 0) split.part_count = 1;
  if (split.part_count > kPartsMax) {
    return fail(ErrorCode::invalid_data, "split.count: expected 1 to {}, found {}", kPartsMax,
                split.part_count);
  }
  return split;
}

// The name of the first file, which must agree with what the file says of itself.
Result<SplitName> first_name(const std::string& path, const SplitFields& split) {
  const std::optional<SplitName> name = parse_split_name(path);
  if (!name || name->part_count != split.part_count || name->part - 1 != split.part) {
    return fail(
        ErrorCode::invalid_data,
        "expected a file name like {} (split.no is {}, split.count {}), found another",
        split_path("NAME", uint32_t(split.part % kPartsMax + 1), uint32_t(split.part_count)),
        split.part, split.part_count);
  }
  if (split.part == 0) return *name;
  return fail(ErrorCode::invalid_argument, "expected the first part, found part {} of {}; open {}",
              name->part, name->part_count,
              shown(split_path(name->stem, 1, name->part_count), kPathBytesMax));
}

// A part must lie beside the first one: a link out of the folder is followed only if the first
// one is a link too, as in caches that keep all their files behind links.
Status check_link(const std::string& first, const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_symlink(path, ignored)) return Ok{};
  if (std::filesystem::is_symlink(first, ignored)) return Ok{};
  return fail(ErrorCode::invalid_argument, "expected a regular file, found a symbolic link");
}

// A later part, checked against its place. Its map goes to the end of `maps`.
Result<Part> open_part(const SplitName& name, const std::string& path, const std::string& first,
                       OpenMode mode, std::vector<MappedFile>& maps, Problems& problems) {
  CAIRN_TRY(check_link(first, path));
  CAIRN_TRY(MappedFile map, MappedFile::open(path));
  CAIRN_TRY(Part part, read_part(map.bytes(), mode, problems));
  CAIRN_TRY(const SplitFields split, split_fields(part.fields));
  if (split.part + 1 != name.part || split.part_count != name.part_count) {
    return fail(ErrorCode::invalid_data, "expected split.no {} of split.count {}, found {} of {}",
                name.part - 1, name.part_count, split.part, split.part_count);
  }
  maps.push_back(std::move(map));
  return part;
}

}  // namespace

Status File::Contents::report(Error error, OpenMode mode) {
  if (mode == OpenMode::strict) return error;
  problems.add(std::move(error.message));
  return Ok{};
}

Status File::Contents::read_first(std::span<const std::byte> bytes, OpenMode mode) {
  CAIRN_TRY(Part part, read_part(bytes, mode, problems));
  first_bytes = bytes;
  first_data_offset = std::min(size_t(part.data_offset), bytes.size());
  file_bytes = bytes.size();
  version = part.version;
  alignment = part.alignment;
  fields = std::move(part.fields);
  tensors = std::move(part.tensors);
  return Ok{};
}

Status File::Contents::read_others(const std::string& path, OpenMode mode) {
  auto split = split_fields(fields);
  if (!split) return report(std::move(split).error(), mode);
  if (split->part_count == 1) return Ok{};
  auto first = first_name(path, *split);
  if (!first) return report(std::move(first).error(), mode);
  for (SplitName next = *first; ++next.part <= first->part_count;) {
    const std::string next_path = split_path(next.stem, next.part, next.part_count);
    auto part = open_part(next, next_path, path, mode, maps, problems);
    if (!part) {
      CAIRN_TRY(report(about(next_path, std::move(part).error()), mode));
      continue;
    }
    file_bytes += maps.back().bytes().size();
    for (Tensor& tensor : part->tensors) {
      tensor.part = int32_t(maps.size() - 1);
      tensors.push_back(tensor);
    }
  }
  if (split->tensor_count == 0 || split->tensor_count == tensors.size()) return Ok{};
  return report(fail(ErrorCode::invalid_data, "split.tensors.count: expected {}, found {} tensors",
                     split->tensor_count, tensors.size()),
                mode);
}

Status File::Contents::finish(OpenMode mode) {
  const auto name_at = [&](uint32_t at) { return tensors[at].name; };
  index = NameIndex(tensors.size(), name_at);
  const uint32_t repeated = index.repeated(name_at);
  // Inside a part the reader has said it already.
  if (repeated == kNoIndex || maps.size() < 2) return Ok{};
  return report(fail(ErrorCode::invalid_data, "tensor {}: expected once in all parts, found twice",
                     shown(name_at(repeated))),
                mode);
}

Result<File> File::open(const std::string& path, OpenMode mode) {
  auto contents = std::make_unique<Contents>();
  contents->name = path;
  CAIRN_TRY(MappedFile map, MappedFile::open(path));
  contents->maps.push_back(std::move(map));
  const auto read = [&]() -> Status {
    CAIRN_TRY(contents->read_first(contents->maps[0].bytes(), mode));
    CAIRN_TRY(contents->read_others(path, mode));
    return contents->finish(mode);
  };
  if (auto done = read(); !done) return about(path, std::move(done).error());
  return File(std::move(contents));
}

Result<File> File::from_bytes(std::span<const std::byte> bytes, std::string name, OpenMode mode) {
  auto contents = std::make_unique<Contents>();
  contents->name = std::move(name);
  const auto read = [&]() -> Status {
    CAIRN_TRY(contents->read_first(bytes, mode));
    auto split = split_fields(contents->fields);
    if (!split) {
      CAIRN_TRY(contents->report(std::move(split).error(), mode));
    } else if (split->part_count > 1) {
      CAIRN_TRY(contents->report(
          fail(ErrorCode::unsupported, "split.count: expected 1 for a model in memory, found {}",
               split->part_count),
          mode));
    }
    return contents->finish(mode);
  };
  if (auto done = read(); !done) return about(contents->name, std::move(done).error());
  return File(std::move(contents));
}

File::File(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

const std::string& File::name() const {
  return contents_->name;
}

uint32_t File::version() const {
  return contents_->version;
}

uint64_t File::alignment() const {
  return contents_->alignment;
}

uint64_t File::file_bytes() const {
  return contents_->file_bytes;
}

int32_t File::part_count() const {
  return std::max(int32_t(contents_->maps.size()), 1);
}

std::vector<FileIdentity> File::identities() const {
  std::vector<FileIdentity> all;
  for (const MappedFile& map : contents_->maps) all.push_back(map.identity());
  return all;
}

const Fields& File::fields() const {
  return contents_->fields;
}

Result<Metadata> File::metadata() const {
  auto metadata = Metadata::of(contents_->fields);
  if (!metadata) return about(contents_->name, std::move(metadata).error());
  return metadata;
}

std::span<const Tensor> File::tensors() const {
  return contents_->tensors;
}

const Tensor* File::find(std::string_view name) const {
  const auto name_at = [&](uint32_t at) { return contents_->tensors[at].name; };
  const uint32_t at = contents_->index.find(name, name_at);
  return at == kNoIndex ? nullptr : &contents_->tensors[at];
}

Result<const Tensor*> File::weight(std::string_view name) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr) {
    return fail(ErrorCode::not_found, "tensor {}: expected in the file, found nothing",
                shown(name));
  }
  if (tensor->type == nullptr) {
    return fail(ErrorCode::unsupported, "tensor {}: expected a type of weights, found {}",
                shown(name), type_name(tensor->type_id));
  }
  if (tensor->bytes.empty()) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected its bytes in the file, found none",
                shown(name));
  }
  return tensor;
}

const Problems& File::problems() const {
  return contents_->problems;
}

const MappedFile* File::Contents::map_of(std::span<const std::byte> bytes) const {
  for (const MappedFile& map : maps) {
    const std::byte* first = map.bytes().data();
    if (bytes.data() >= first && bytes.data() < first + map.bytes().size()) return &map;
  }
  return nullptr;
}

void File::will_need(std::span<const std::byte> bytes) const {
  const MappedFile* map = contents_->map_of(bytes);
  if (map != nullptr) map->will_need(size_t(bytes.data() - map->bytes().data()), bytes.size());
}

void File::forget(std::span<const std::byte> bytes) const {
  const MappedFile* map = contents_->map_of(bytes);
  if (map != nullptr) map->forget(size_t(bytes.data() - map->bytes().data()), bytes.size());
}

void File::drop(std::span<const std::byte> bytes) const {
  const MappedFile* map = contents_->map_of(bytes);
  if (map != nullptr) map->drop(size_t(bytes.data() - map->bytes().data()), bytes.size());
}

uint64_t File::digest() const {
  uint64_t all = cairn::digest(contents_->first_bytes.first(contents_->first_data_offset));
  for (const MappedFile& map : contents_->maps) {
    const uint64_t facts[2] = {map.bytes().size(), uint64_t(map.modified_ns())};
    all = cairn::digest(std::as_bytes(std::span(facts)), all);
  }
  // A page at each end of a tensor and one in the middle.
  constexpr size_t kSampleBytes = 4096;
  for (const Tensor& tensor : contents_->tensors) {
    const std::span<const std::byte> bytes = tensor.bytes;
    const size_t size = std::min(bytes.size(), kSampleBytes);
    const uint64_t shape[4] = {tensor.type_id, uint64_t(tensor.dims[0]), uint64_t(tensor.dims[1]),
                               uint64_t(tensor.dims[2])};
    all = cairn::digest(std::as_bytes(std::span(tensor.name)), all);
    all = cairn::digest(std::as_bytes(std::span(shape)), all);
    for (const size_t from : {size_t(0), (bytes.size() - size) / 2, bytes.size() - size}) {
      all = cairn::digest(bytes.subspan(from, size), all);
    }
  }
  return all;
}

Sha256Digest File::identity() const {
  Sha256 sha;
  sha.add(contents_->first_bytes.first(contents_->first_data_offset));
  constexpr size_t kSampleBytes = 4096;
  for (const Tensor& tensor : contents_->tensors) {
    sha.add(uint64_t(tensor.name.size())).add(tensor.name).add(tensor.type_id);
    for (const int64_t dim : tensor.dims) sha.add(uint64_t(dim));
    const size_t size = std::min(tensor.bytes.size(), kSampleBytes);
    for (const size_t from :
         {size_t(0), (tensor.bytes.size() - size) / 2, tensor.bytes.size() - size}) {
      sha.add(tensor.bytes.subspan(from, size));
    }
  }
  return sha.finish();
}

}  // namespace cairn::gguf
