// The reader of one file: header, metadata, tensor table, then the ranges of the tensors' data.
// Two sorts of trouble: what makes the rest of the file unreadable always ends the reading; a
// broken rule goes through report(), which ends it too unless the file is only to be inspected.
#include "gguf/part.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text/byte_text.h"
#include "gguf/cursor.h"
#include "gguf/limits.h"
#include "gguf/rules.h"

namespace cairn::gguf {
namespace {

template <class... Args>
Error bad(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::invalid_data, format, std::forward<Args>(args)...);
}

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, OpenMode mode, Problems& problems)
      : bytes_(bytes), cursor_(bytes), mode_(mode), problems_(problems) {}

  Result<Part> read();

 private:
  Status report(Error error);
  Status believe(std::string_view what, FileInt count, uint64_t bytes_min) const;
  Status read_header();
  Status read_fields();
  Result<std::string_view> read_key(uint64_t entry);
  std::string_view shown_key(std::string_view key);
  Result<Value> read_value(std::string_view key);
  Result<std::span<const std::byte>> read_string(std::string_view key);
  Result<Value> read_array(std::string_view key);
  Result<std::span<const std::byte>> walk_strings(std::string_view key, uint64_t count);
  Status check_booleans(std::string_view key, std::span<const std::byte> values);
  Status read_alignment();
  Status read_tensors();
  Result<Tensor> read_tensor(uint64_t entry);
  Status place_tensors();
  Status place(Tensor& tensor, uint64_t size);
  Status check_overlaps();

  std::span<const std::byte> bytes_;
  Cursor cursor_;
  OpenMode mode_;
  Problems& problems_;
  Part part_{};
  FileInt tensor_count_{0};
  FileInt field_count_{0};
  std::string shown_key_;
  std::vector<uint64_t> extents_;  // Bytes of each tensor; 0 where its shape breaks a rule.
};

Status Reader::report(Error error) {
  if (mode_ == OpenMode::strict) return error;
  problems_.add(std::move(error.message));
  return Ok{};
}

// A declared count is believed only if the bytes that remain could hold so many.
Status Reader::believe(std::string_view what, FileInt count, uint64_t bytes_min) const {
  if (count.value() <= cursor_.remaining() / bytes_min) return Ok{};
  return bad("{}: declares {}, {} bytes remain (at least {} bytes each)", what, count.value(),
             cursor_.remaining(), bytes_min);
}

Status Reader::read_header() {
  CAIRN_TRY(const uint32_t magic, cursor_.u32("the header"));
  if (magic != kMagic) {
    return bad("the header: expected \"GGUF\", found \"{}\"",
               shown(as_text(bytes_.first(sizeof magic))));
  }
  CAIRN_TRY(part_.version, cursor_.u32("the header's version"));
  if (part_.version < kVersionMin || part_.version > kVersionMax) {
    const bool is_swapped = __builtin_bswap32(part_.version) <= 0xffff;
    if (is_swapped && part_.version != 0) {
      return fail(ErrorCode::unsupported,
                  "the header: expected a little-endian file, found a big-endian one (version {})",
                  __builtin_bswap32(part_.version));
    }
    return fail(ErrorCode::unsupported, "the header: expected GGUF version {} or {}, found {}",
                kVersionMin, kVersionMax, part_.version);
  }
  CAIRN_TRY(tensor_count_, cursor_.u64("the header's tensor count"));
  CAIRN_TRY(field_count_, cursor_.u64("the header's metadata count"));
  CAIRN_TRY(believe("the header's metadata count", field_count_, kFieldBytesMin));
  return believe("the header's tensor count", tensor_count_, kTensorBytesMin);
}

Result<std::string_view> Reader::read_key(uint64_t entry) {
  const std::string what = fmt::format("the key of metadata entry {}", entry);
  CAIRN_TRY(const FileInt length, cursor_.u64(what));
  CAIRN_TRY(const auto bytes, cursor_.take(length, what));
  const std::string_view key = as_text(bytes);
  if (auto checked = check_key(what, key); !checked) {
    CAIRN_TRY(report(std::move(checked).error()));
  }
  return key;
}

Result<std::span<const std::byte>> Reader::read_string(std::string_view key) {
  CAIRN_TRY(const FileInt length, cursor_.u64(key));
  CAIRN_TRY(const auto bytes, cursor_.take(length, key));
  const uint64_t limit = key.starts_with(kTemplateKey) ? kTemplateBytesMax : kStringBytesMax;
  if (bytes.size() > limit) {
    CAIRN_TRY(report(
        bad("{}: expected a string of at most {} bytes, found {}", key, limit, bytes.size())));
  }
  return bytes;
}

Result<std::span<const std::byte>> Reader::walk_strings(std::string_view key, uint64_t count) {
  const uint64_t start = cursor_.position();
  for (uint64_t index = 0; index < count; ++index) {
    const auto length = cursor_.take(FileInt(sizeof(uint64_t)));
    if (!length) {
      return bad("{}: string {} of {}: expected a length of 8 bytes, {} bytes remain", key, index,
                 count, cursor_.remaining());
    }
    const FileInt declared(load<uint64_t>(length->data()));
    if (!cursor_.take(declared)) {
      return bad("{}: string {} of {}: declares {} bytes, {} bytes remain", key, index, count,
                 declared.value(), cursor_.remaining());
    }
    if (declared.value() > kStringBytesMax) {
      CAIRN_TRY(report(bad("{}: string {} of {}: expected at most {} bytes, found {}", key, index,
                           count, kStringBytesMax, declared.value())));
    }
  }
  return bytes_.subspan(size_t(start), size_t(cursor_.position() - start));
}

Status Reader::check_booleans(std::string_view key, std::span<const std::byte> values) {
  const auto at =
      std::find_if(values.begin(), values.end(), [](std::byte b) { return b > std::byte{1}; });
  if (at == values.end()) return Ok{};
  return report(bad("{}: expected a bool, 0 or 1, found {}", key, unsigned(*at)));
}

Result<Value> Reader::read_array(std::string_view key) {
  CAIRN_TRY(const uint32_t element_id, cursor_.u32(key));
  CAIRN_TRY(const FileInt count, cursor_.u64(key));
  if (element_id >= kValueTypeCount) {
    return bad("{}: expected an array of type 0 to {}, found type {}", key, kValueTypeCount - 1,
               element_id);
  }
  const ValueType element = ValueType(element_id);
  if (element == ValueType::array) {
    return bad("{}: expected an array of plain values, found an array of {} arrays", key,
               count.value());
  }
  const bool is_strings = element == ValueType::string;
  const uint64_t element_bytes = is_strings ? kStringBytesMin : size_of(element);
  CAIRN_TRY(believe(key, count, element_bytes));
  if (count.value() > kArrayElementsMax) {
    CAIRN_TRY(report(bad("{}: expected an array of at most {} elements, found {}", key,
                         kArrayElementsMax, count.value())));
  }
  Value value{.type = ValueType::array, .element = element, .count = count.value(), .bytes = {}};
  if (is_strings) {
    CAIRN_TRY(value.bytes, walk_strings(key, count.value()));
    return value;
  }
  CAIRN_TRY(const FileInt size, count* FileInt(element_bytes));
  CAIRN_TRY(value.bytes, cursor_.take(size, key));
  if (element == ValueType::boolean) CAIRN_TRY(check_booleans(key, value.bytes));
  return value;
}

Result<Value> Reader::read_value(std::string_view key) {
  CAIRN_TRY(const uint32_t type_id, cursor_.u32(key));
  if (type_id >= kValueTypeCount) {
    return bad("{}: expected a value of type 0 to {}, found type {}", key, kValueTypeCount - 1,
               type_id);
  }
  const ValueType type = ValueType(type_id);
  if (type == ValueType::array) return read_array(key);
  Value value{.type = type, .element = type, .count = 1, .bytes = {}};
  if (type == ValueType::string) {
    CAIRN_TRY(value.bytes, read_string(key));
  } else {
    CAIRN_TRY(value.bytes, cursor_.take(FileInt(size_of(type)), key));
  }
  if (type == ValueType::boolean) CAIRN_TRY(check_booleans(key, value.bytes));
  return value;
}

// Errors name the key as it is; one that cannot be printed so, or is very long, as it can.
std::string_view Reader::shown_key(std::string_view key) {
  if (key.size() <= kShownBytesMax && is_printable_ascii(key)) return key;
  shown_key_ = shown(key);
  return shown_key_;
}

Status Reader::read_fields() {
  std::vector<Field> fields;
  for (uint64_t entry = 0; entry < field_count_.value(); ++entry) {
    Field field{};
    CAIRN_TRY(field.key, read_key(entry));
    CAIRN_TRY(field.value, read_value(shown_key(field.key)));
    fields.push_back(field);
  }
  part_.fields = Fields(std::move(fields));
  if (const std::string_view* key = part_.fields.repeated_key()) {
    CAIRN_TRY(report(bad("{}: expected once in the metadata, found twice", shown(*key))));
  }
  return Ok{};
}

Status Reader::read_alignment() {
  part_.alignment = kAlignmentDefault;
  const Value* value = part_.fields.find(kAlignmentKey);
  if (value == nullptr) return Ok{};
  if (value->type != ValueType::u32) {
    return report(bad("{}: expected u32, found {}", kAlignmentKey, describe(*value)));
  }
  const uint32_t found = load<uint32_t>(value->bytes.data());
  if (auto checked = check_alignment(found); !checked) return report(std::move(checked).error());
  part_.alignment = found;
  return Ok{};
}

Result<Tensor> Reader::read_tensor(uint64_t entry) {
  const std::string what = fmt::format("tensor entry {} of {}", entry, tensor_count_.value());
  CAIRN_TRY(const FileInt name_length, cursor_.u64(what));
  CAIRN_TRY(const auto name, cursor_.take(name_length, what));
  Tensor tensor{};
  tensor.name = as_text(name);
  if (auto checked = check_tensor_name(what, tensor.name); !checked) {
    CAIRN_TRY(report(std::move(checked).error()));
  }
  const std::string tensor_what = fmt::format("tensor {}", shown(tensor.name));
  CAIRN_TRY(const uint32_t dim_count, cursor_.u32(tensor_what));
  if (dim_count < 1 || dim_count > kDimCountMax) {
    return bad("{}: expected 1 to {} dimensions, found {}", tensor_what, kDimCountMax, dim_count);
  }
  std::array<uint64_t, 4> dims{1, 1, 1, 1};
  for (uint32_t dim = 0; dim < dim_count; ++dim) {
    CAIRN_TRY(const FileInt found, cursor_.u64(tensor_what));
    dims[dim] = found.value();
  }
  tensor.dim_count = int32_t(dim_count);
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    constexpr uint64_t kLargest = uint64_t(std::numeric_limits<int64_t>::max());
    tensor.dims[dim] = int64_t(std::min(dims[dim], kLargest));
  }
  CAIRN_TRY(tensor.type_id, cursor_.u32(tensor_what));
  tensor.type = quant::find(tensor.type_id);
  CAIRN_TRY(const FileInt offset, cursor_.u64(tensor_what));
  tensor.offset = offset.value();
  auto extent = check_shape(tensor.name, std::span(dims).first(dim_count), tensor.type_id);
  if (extent) {
    tensor.weight_count = extent->weight_count;
    extents_.push_back(extent->bytes);
  } else {
    CAIRN_TRY(report(std::move(extent).error()));
    extents_.push_back(0);
  }
  return tensor;
}

Status Reader::read_tensors() {
  // The metadata has been read since the header was: fewer bytes remain now.
  CAIRN_TRY(believe("the header's tensor count", tensor_count_, kTensorBytesMin));
  for (uint64_t entry = 0; entry < tensor_count_.value(); ++entry) {
    CAIRN_TRY(Tensor tensor, read_tensor(entry));
    part_.tensors.push_back(tensor);
  }
  const auto name_of = [&](uint32_t at) { return part_.tensors[at].name; };
  const uint32_t repeated = NameIndex(part_.tensors.size(), name_of).repeated(name_of);
  if (repeated == kNoIndex) return Ok{};
  return report(bad("tensor {}: expected once, found twice", shown(name_of(repeated))));
}

// Gives a tensor its bytes: aligned, and whole inside the file.
Status Reader::place(Tensor& tensor, uint64_t size) {
  const uint64_t data_bytes = bytes_.size() - std::min<uint64_t>(part_.data_offset, bytes_.size());
  if (tensor.offset % part_.alignment != 0) {
    CAIRN_TRY(report(bad("tensor {}: expected an offset that is a multiple of {}, found {}",
                         shown(tensor.name), part_.alignment, tensor.offset)));
  }
  if (size == 0) return Ok{};  // Already reported.
  if (tensor.offset > data_bytes || size > data_bytes - tensor.offset) {
    return report(bad("tensor {}: expected {} bytes at offset {}, found {} bytes of tensor data",
                      shown(tensor.name), size, tensor.offset, data_bytes));
  }
  tensor.bytes = bytes_.subspan(size_t(part_.data_offset + tensor.offset), size_t(size));
  return Ok{};
}

Status Reader::check_overlaps() {
  std::vector<const Tensor*> order;
  for (const Tensor& tensor : part_.tensors) {
    if (!tensor.bytes.empty()) order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [](const Tensor* a, const Tensor* b) { return a->offset < b->offset; });
  for (size_t next = 1; next < order.size(); ++next) {
    const Tensor& a = *order[next - 1];
    const Tensor& b = *order[next];
    if (a.offset + a.bytes.size() <= b.offset) continue;
    CAIRN_TRY(report(bad("tensor {}: expected after the end of {} at {}, found at offset {}",
                         shown(b.name), shown(a.name), a.offset + a.bytes.size(), b.offset)));
  }
  return Ok{};
}

Status Reader::place_tensors() {
  CAIRN_TRY(const FileInt start, FileInt(cursor_.position()).aligned_to(part_.alignment));
  part_.data_offset = start.value();
  for (size_t index = 0; index < part_.tensors.size(); ++index) {
    CAIRN_TRY(place(part_.tensors[index], extents_[index]));
  }
  return check_overlaps();
}

Result<Part> Reader::read() {
  CAIRN_TRY(read_header());
  CAIRN_TRY(read_fields());
  CAIRN_TRY(read_alignment());
  CAIRN_TRY(read_tensors());
  CAIRN_TRY(place_tensors());
  return std::move(part_);
}

}  // namespace

void Problems::add(std::string line) {
  if (lines.size() < kProblemLinesMax) lines.push_back(std::move(line));
  ++count;
}

Result<Part> read_part(std::span<const std::byte> bytes, OpenMode mode, Problems& problems) {
  return Reader(bytes, mode, problems).read();
}

}  // namespace cairn::gguf
