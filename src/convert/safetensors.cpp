// A file is the length of its header (u64), the header (JSON), then the tensors' bytes, to which
// the header's offsets refer.
#include "convert/safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "convert/json.h"

namespace cairn::convert {
namespace {

// The format's own limit.
constexpr uint64_t kHeaderBytesMax = 100'000'000;
constexpr size_t kDimCountMax = 8;
constexpr int64_t kNumbersMax = int64_t(1) << 48;
constexpr size_t kPartsMax = 1000;

struct Width {
  std::string_view dtype;
  Number number;
  uint64_t bytes;
};

constexpr Width kWidths[] = {
    {"F64", Number::f64, 8},       {"F32", Number::f32, 4},       {"F16", Number::f16, 2},
    {"BF16", Number::bf16, 2},     {"I64", Number::other, 8},     {"U64", Number::other, 8},
    {"I32", Number::other, 4},     {"U32", Number::other, 4},     {"I16", Number::other, 2},
    {"U16", Number::other, 2},     {"I8", Number::other, 1},      {"U8", Number::other, 1},
    {"BOOL", Number::other, 1},    {"F8_E4M3", Number::other, 1}, {"F8_E5M2", Number::other, 1},
    {"F8_E8M0", Number::other, 1}, {"C64", Number::other, 8}};

const Width* find_width(std::string_view dtype) {
  for (const Width& width : kWidths) {
    if (width.dtype == dtype) return &width;
  }
  return nullptr;
}

// One tensor of a header.
class Entry {
 public:
  Entry(std::string_view file_name, std::string_view name, const Json& value)
      : file_name_(file_name), name_(name), value_(value) {}

  Result<SourceTensor> read(std::span<const std::byte> data, uint32_t part) const {
    SourceTensor tensor{.name = std::string(name_), .part = part};
    const auto dtype = value_.text_at("dtype");
    if (!dtype) return broken("a dtype", "none");
    const Width* width = find_width(*dtype);
    if (width == nullptr) return broken("a known dtype", *dtype);
    tensor.number = width->number;
    tensor.dtype = *dtype;
    CAIRN_TRY(tensor.shape, read_shape());
    uint64_t number_count = 1;
    for (const int64_t dim : tensor.shape) number_count *= uint64_t(dim);
    CAIRN_TRY(tensor.bytes, read_range(data, number_count * width->bytes));
    return tensor;
  }

 private:
  Error broken(std::string_view expected, std::string_view found) const {
    return fail(ErrorCode::invalid_data, "{}: tensor {}: expected {}, found {}", file_name_,
                name_.substr(0, 200), expected, found);
  }

  Result<std::vector<int64_t>> read_shape() const {
    const Json* shape = value_.find("shape");
    if (shape == nullptr || !shape->is_array()) return broken("a shape", "none");
    if (shape->items().size() > kDimCountMax) {
      return broken("at most 8 dimensions", fmt::format("{}", shape->items().size()));
    }
    std::vector<int64_t> dims;
    int64_t product = 1;
    for (const Json& item : shape->items()) {
      const auto dim = item.as_integer();
      if (!dim || *dim < 0 || *dim > kNumbersMax) return broken("a dimension", item.describe());
      dims.push_back(*dim);
      // Both are at most 2^48, and a product above is refused: no overflow.
      if (*dim > 0 && product > kNumbersMax / *dim) return broken("at most 2^48 numbers", "more");
      product *= *dim;
    }
    return dims;
  }

  Result<std::span<const std::byte>> read_range(std::span<const std::byte> data,
                                                uint64_t bytes) const {
    const Json* offsets = value_.find("data_offsets");
    if (offsets == nullptr || offsets->items().size() != 2) return broken("two offsets", "others");
    const auto begin = offsets->items()[0].as_integer(), end = offsets->items()[1].as_integer();
    if (!begin || !end || *begin < 0 || *end < *begin || uint64_t(*end) > data.size()) {
      return broken(fmt::format("offsets within {} bytes", data.size()),
                    offsets->items()[0].describe() + " and " + offsets->items()[1].describe());
    }
    if (uint64_t(*end - *begin) != bytes) {
      return broken(fmt::format("{} bytes, as its shape says", bytes),
                    fmt::format("{}", *end - *begin));
    }
    return data.subspan(size_t(*begin), size_t(bytes));
  }

  std::string_view file_name_, name_;
  const Json& value_;
};

Status check_overlaps(const std::vector<SourceTensor>& tensors, std::string_view file_name) {
  std::vector<const SourceTensor*> by_place;
  for (const SourceTensor& tensor : tensors) {
    if (!tensor.bytes.empty()) by_place.push_back(&tensor);
  }
  std::sort(by_place.begin(), by_place.end(), [](const SourceTensor* a, const SourceTensor* b) {
    return a->bytes.data() < b->bytes.data();
  });
  for (size_t i = 1; i < by_place.size(); ++i) {
    const SourceTensor &before = *by_place[i - 1], &after = *by_place[i];
    if (before.bytes.data() + before.bytes.size() <= after.bytes.data()) continue;
    return fail(ErrorCode::invalid_data, "{}: expected tensors apart, found {} inside {}",
                file_name, after.name, before.name);
  }
  return Ok{};
}

// The files that hold the tensors, in order, and the names that an index promises.
struct Parts {
  std::vector<std::string> names;
  std::set<std::string> promised;
};

Result<Parts> read_index(const std::string& path) {
  CAIRN_TRY(const Json index, read_json_file(path));
  const Json* map = index.find("weight_map");
  if (map == nullptr || !map->is_object()) {
    return fail(ErrorCode::invalid_data, "{}: expected a weight_map, found none", path);
  }
  Parts parts;
  std::set<std::string> files;
  for (const auto& [name, value] : map->members()) {
    const auto file = value.as_text();
    // A part lies beside its index; no path leads elsewhere.
    if (!file || file->empty() || file->find('/') != file->npos || file->front() == '.') {
      return fail(ErrorCode::invalid_data, "{}: {}: expected a file's name, found {}", path,
                  name.substr(0, 200), value.describe());
    }
    parts.promised.insert(name);
    files.insert(std::string(*file));
  }
  parts.names.assign(files.begin(), files.end());
  return parts;
}

Result<Parts> find_parts(const std::string& folder) {
  const std::filesystem::path index =
      std::filesystem::path(folder) / "model.safetensors.index.json";
  std::error_code error;
  if (std::filesystem::exists(index, error)) return read_index(index.string());
  Parts parts;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("model") && name.ends_with(".safetensors")) parts.names.push_back(name);
  }
  std::sort(parts.names.begin(), parts.names.end());
  if (parts.names.empty()) {
    return fail(ErrorCode::not_found, "{}: expected model*.safetensors, found none", folder);
  }
  return parts;
}

}  // namespace

int64_t SourceTensor::number_count() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

Result<std::vector<SourceTensor>> read_safetensors(std::span<const std::byte> file,
                                                   std::string_view file_name, uint32_t part) {
  uint64_t header_bytes = 0;
  if (file.size() < sizeof header_bytes) {
    return fail(ErrorCode::invalid_data, "{}: expected a header's length, found {} bytes",
                file_name, file.size());
  }
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  const uint64_t left = file.size() - sizeof header_bytes;
  if (header_bytes > std::min(left, kHeaderBytesMax)) {
    return fail(ErrorCode::invalid_data, "{}: expected a header of at most {} bytes, found {}",
                file_name, std::min(left, kHeaderBytesMax), header_bytes);
  }
  const auto* text = reinterpret_cast<const char*>(file.data() + sizeof header_bytes);
  Result<Json> header = parse_json({text, size_t(header_bytes)});
  if (!header) {
    return fail(header.error().code, "{}: {}", file_name, header.error().message);
  }
  if (!header->is_object()) {
    return fail(ErrorCode::invalid_data, "{}: expected an object as header, found {}", file_name,
                header->describe());
  }
  const auto data = file.subspan(sizeof header_bytes + size_t(header_bytes));
  std::vector<SourceTensor> tensors;
  for (const auto& [name, value] : header->members()) {
    if (name == "__metadata__") continue;
    CAIRN_TRY(SourceTensor tensor, Entry(file_name, name, value).read(data, part));
    tensors.push_back(std::move(tensor));
  }
  CAIRN_TRY(check_overlaps(tensors, file_name));
  std::sort(tensors.begin(), tensors.end(),
            [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; });
  return tensors;
}

Result<Checkpoint> Checkpoint::open(const std::string& folder) {
  CAIRN_TRY(const Parts parts, find_parts(folder));
  if (parts.names.size() > kPartsMax) {
    return fail(ErrorCode::no_room, "{}: expected at most {} parts, found {}", folder, kPartsMax,
                parts.names.size());
  }
  Checkpoint checkpoint;
  for (const std::string& name : parts.names) {
    const std::string path = (std::filesystem::path(folder) / name).string();
    CAIRN_TRY(checkpoint.add_file(path, checkpoint.tensors_));
  }
  std::vector<uint32_t>& order = checkpoint.by_name_;
  const std::vector<SourceTensor>& all = checkpoint.tensors_;
  for (size_t i = 0; i < all.size(); ++i) order.push_back(uint32_t(i));
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return all[a].name < all[b].name; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (all[order[i]].name != all[order[i - 1]].name) continue;
    return fail(ErrorCode::invalid_data, "{}: expected tensor {} once, found it in two parts",
                folder, all[order[i]].name);
  }
  for (const std::string& name : parts.promised) {
    if (checkpoint.find(name) != nullptr) continue;
    return fail(ErrorCode::invalid_data, "{}: expected tensor {}, which the index names", folder,
                name);
  }
  return checkpoint;
}

Status Checkpoint::add_file(const std::string& path, std::vector<SourceTensor>& tensors) {
  CAIRN_TRY(MappedFile file, MappedFile::open(path));
  CAIRN_TRY(std::vector<SourceTensor> found,
            read_safetensors(file.bytes(), path, uint32_t(parts_.size())));
  parts_.push_back(std::move(file));
  for (SourceTensor& tensor : found) tensors.push_back(std::move(tensor));
  return Ok{};
}

Status Checkpoint::add_module(const std::string& path) {
  return add_file(path, module_tensors_);
}

const SourceTensor* Checkpoint::find(std::string_view name) const {
  const auto at = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](uint32_t tensor, std::string_view wanted) { return tensors_[tensor].name < wanted; });
  return at == by_name_.end() || tensors_[*at].name != name ? nullptr : &tensors_[*at];
}

void Checkpoint::forget(const SourceTensor& tensor) const {
  if (tensor.bytes.empty()) return;
  const MappedFile& part = parts_[tensor.part];
  part.forget(size_t(tensor.bytes.data() - part.bytes().data()), tensor.bytes.size());
}

}  // namespace cairn::convert
