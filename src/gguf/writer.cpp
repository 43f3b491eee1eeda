// The writer: metadata is put into its final bytes as it is added, the tensor table when the file
// is opened, tensor data as it comes.
#include "gguf/writer.h"

#include <array>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "gguf/file_int.h"
#include "gguf/rules.h"

namespace cairn::gguf {
namespace {

constexpr std::array<std::byte, kAlignmentMax> kZeros{};

template <class T>
constexpr ValueType type_of() {
  if constexpr (std::is_same_v<T, uint8_t>) return ValueType::u8;
  if constexpr (std::is_same_v<T, int8_t>) return ValueType::i8;
  if constexpr (std::is_same_v<T, uint16_t>) return ValueType::u16;
  if constexpr (std::is_same_v<T, int16_t>) return ValueType::i16;
  if constexpr (std::is_same_v<T, uint32_t>) return ValueType::u32;
  if constexpr (std::is_same_v<T, int32_t>) return ValueType::i32;
  if constexpr (std::is_same_v<T, uint64_t>) return ValueType::u64;
  if constexpr (std::is_same_v<T, int64_t>) return ValueType::i64;
  if constexpr (std::is_same_v<T, float>) return ValueType::f32;
  if constexpr (std::is_same_v<T, double>) return ValueType::f64;
}

template <class T>
void put(std::vector<std::byte>& bytes, T number) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof number);
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

void put_text(std::vector<std::byte>& bytes, std::string_view text) {
  put(bytes, uint64_t(text.size()));
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), data, data + text.size());
}

Status check_size(std::string_view key, uint64_t found, uint64_t limit) {
  if (found <= limit) return Ok{};
  return fail(ErrorCode::invalid_data, "{}: expected at most {} bytes or elements, found {}",
              shown(key), limit, found);
}

uint64_t padding(uint64_t position, uint64_t alignment) {
  return (alignment - position % alignment) % alignment;
}

}  // namespace

// What of the file is still to come.
struct TensorStream::State {
  struct Remaining {
    std::string name;
    uint64_t bytes;
  };

  Sink sink;
  std::function<Status()> commit;
  uint64_t alignment;
  std::vector<Remaining> tensors;
  size_t at = 0;         // The tensor at hand.
  uint64_t written = 0;  // Bytes of it.

  Status pad() {
    const uint64_t bytes = padding(tensors[at].bytes, alignment);
    ++at;
    written = 0;
    return bytes == 0 ? Status(Ok{}) : sink(std::span(kZeros).first(size_t(bytes)));
  }
};

TensorStream::TensorStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
TensorStream::TensorStream(TensorStream&&) noexcept = default;
TensorStream& TensorStream::operator=(TensorStream&&) noexcept = default;
TensorStream::~TensorStream() = default;

Status TensorStream::append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return Ok{};
  State& state = *state_;
  if (state.at == state.tensors.size()) {
    return fail(ErrorCode::invalid_argument,
                "expected the end after {} tensors, found {} more bytes", state.tensors.size(),
                bytes.size());
  }
  const State::Remaining& tensor = state.tensors[state.at];
  if (bytes.size() > tensor.bytes - state.written) {
    return fail(ErrorCode::invalid_argument, "tensor {}: expected {} more bytes, found {}",
                shown(tensor.name), tensor.bytes - state.written, bytes.size());
  }
  CAIRN_TRY(state.sink(bytes));
  state.written += bytes.size();
  return state.written == tensor.bytes ? state.pad() : Status(Ok{});
}

Status TensorStream::finish() {
  const State& state = *state_;
  if (state.at < state.tensors.size()) {
    const State::Remaining& tensor = state.tensors[state.at];
    return fail(ErrorCode::invalid_argument, "tensor {}: expected {} bytes, found {} at the end",
                shown(tensor.name), tensor.bytes, state.written);
  }
  return state.commit ? state.commit() : Status(Ok{});
}

Writer::Writer(uint32_t alignment) : alignment_(alignment) {}

void Writer::start_field(std::string_view key, ValueType type) {
  note(check_key(fmt::format("metadata entry {}", keys_.size()), key));
  keys_.emplace_back(key);
  put_text(fields_, key);
  put(fields_, uint32_t(type));
}

template <class T>
void Writer::add_number(std::string_view key, T value) {
  start_field(key, type_of<T>());
  put(fields_, value);
}

void Writer::add(std::string_view key, bool value) {
  start_field(key, ValueType::boolean);
  put(fields_, uint8_t(value ? 1 : 0));
}

void Writer::add(std::string_view key, uint8_t value) {
  add_number(key, value);
}
void Writer::add(std::string_view key, int8_t value) {
  add_number(key, value);
}
void Writer::add(std::string_view key, uint16_t value) {
  add_number(key, value);
}
void Writer::add(std::string_view key, int16_t value) {
  add_number(key, value);
}
void Writer::add(std::string_view key, int32_t value) {
  add_number(key, value);
}
void Writer::add(std::string_view key, uint64_t value) {
  add_number(key, value);
}
void Writer::add(std::string_view key, int64_t value) {
  add_number(key, value);
}
void Writer::add(std::string_view key, float value) {
  add_number(key, value);
}
void Writer::add(std::string_view key, double value) {
  add_number(key, value);
}

void Writer::add(std::string_view key, uint32_t value) {
  if (key == kAlignmentKey) stated_alignment_ = value;
  add_number(key, value);
}

void Writer::add(std::string_view key, std::string_view value) {
  const uint64_t limit = key.starts_with(kTemplateKey) ? kTemplateBytesMax : kStringBytesMax;
  note(check_size(key, value.size(), limit));
  start_field(key, ValueType::string);
  put_text(fields_, value);
}

void Writer::add(std::string_view key, const Value& value) {
  if (const auto text = string_in(value)) return add(key, *text);
  if (key == kAlignmentKey) stated_alignment_ = unsigned_in(value).value_or(0);
  start_field(key, value.type);
  if (value.is_array()) {
    note(check_size(key, value.count, kArrayElementsMax));
    put(fields_, uint32_t(value.element));
    put(fields_, value.count);
  }
  fields_.insert(fields_.end(), value.bytes.begin(), value.bytes.end());
}

template <class T>
void Writer::add_array(std::string_view key, std::span<const T> values) {
  note(check_size(key, values.size(), kArrayElementsMax));
  start_field(key, ValueType::array);
  put(fields_, uint32_t(type_of<T>()));
  put(fields_, uint64_t(values.size()));
  const auto bytes = std::as_bytes(values);
  fields_.insert(fields_.end(), bytes.begin(), bytes.end());
}

template void Writer::add_array(std::string_view, std::span<const uint8_t>);
template void Writer::add_array(std::string_view, std::span<const int8_t>);
template void Writer::add_array(std::string_view, std::span<const uint16_t>);
template void Writer::add_array(std::string_view, std::span<const int16_t>);
template void Writer::add_array(std::string_view, std::span<const uint32_t>);
template void Writer::add_array(std::string_view, std::span<const int32_t>);
template void Writer::add_array(std::string_view, std::span<const uint64_t>);
template void Writer::add_array(std::string_view, std::span<const int64_t>);
template void Writer::add_array(std::string_view, std::span<const float>);
template void Writer::add_array(std::string_view, std::span<const double>);

void Writer::add_array(std::string_view key, std::span<const std::string> values) {
  note(check_size(key, values.size(), kArrayElementsMax));
  start_field(key, ValueType::array);
  put(fields_, uint32_t(ValueType::string));
  put(fields_, uint64_t(values.size()));
  for (const std::string& value : values) {
    note(check_size(key, value.size(), kStringBytesMax));
    put_text(fields_, value);
  }
}

void Writer::add_booleans(std::string_view key, const std::vector<bool>& values) {
  note(check_size(key, values.size(), kArrayElementsMax));
  start_field(key, ValueType::array);
  put(fields_, uint32_t(ValueType::boolean));
  put(fields_, uint64_t(values.size()));
  for (const bool value : values) fields_.push_back(std::byte{value});
}

void Writer::declare(std::string_view name, std::span<const int64_t> dims, uint32_t type_id) {
  Declared tensor{.name = std::string(name), .dims = {}, .type_id = type_id};
  // A negative dimension becomes one that is too large, and is refused as that.
  for (const int64_t dim : dims) tensor.dims.push_back(uint64_t(dim));
  note(check_tensor_name(fmt::format("tensor entry {}", tensors_.size()), name));
  tensors_.push_back(std::move(tensor));
}

void Writer::note(Status status) {
  if (!status && !error_) error_ = std::move(status).error();
}

Status Writer::check_names() const {
  const auto key_at = [&](uint32_t at) { return std::string_view(keys_[at]); };
  const uint32_t key = NameIndex(keys_.size(), key_at).repeated(key_at);
  if (key != kNoIndex) {
    return fail(ErrorCode::invalid_data, "{}: expected once in the metadata, found twice",
                shown(keys_[key]));
  }
  const auto name_at = [&](uint32_t at) { return std::string_view(tensors_[at].name); };
  const uint32_t tensor = NameIndex(tensors_.size(), name_at).repeated(name_at);
  if (tensor != kNoIndex) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected once, found twice",
                shown(tensors_[tensor].name));
  }
  return Ok{};
}

Result<std::vector<uint64_t>> Writer::extents() const {
  std::vector<uint64_t> extents;
  for (const Declared& tensor : tensors_) {
    CAIRN_TRY(const Extent extent, check_shape(tensor.name, tensor.dims, tensor.type_id));
    extents.push_back(extent.bytes);
  }
  return extents;
}

// All that stands before the tensor data, its padding included.
Result<std::vector<std::byte>> Writer::head(std::span<const uint64_t> extents) const {
  if (error_) return *error_;
  CAIRN_TRY(check_alignment(alignment_));
  CAIRN_TRY(check_names());
  if (stated_alignment_ && *stated_alignment_ != alignment_) {
    return fail(ErrorCode::invalid_data, "{}: expected {}, found {}", kAlignmentKey, alignment_,
                *stated_alignment_);
  }
  const bool adds_alignment = !stated_alignment_ && alignment_ != kAlignmentDefault;
  std::vector<std::byte> bytes;
  put(bytes, kMagic);
  put(bytes, kVersionMax);
  put(bytes, uint64_t(tensors_.size()));
  put(bytes, uint64_t(keys_.size() + (adds_alignment ? 1 : 0)));
  bytes.insert(bytes.end(), fields_.begin(), fields_.end());
  if (adds_alignment) {
    put_text(bytes, kAlignmentKey);
    put(bytes, uint32_t(ValueType::u32));
    put(bytes, alignment_);
  }
  FileInt offset(0);
  for (size_t index = 0; index < tensors_.size(); ++index) {
    const Declared& tensor = tensors_[index];
    put_text(bytes, tensor.name);
    put(bytes, uint32_t(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) put(bytes, dim);
    put(bytes, tensor.type_id);
    put(bytes, offset.value());
    CAIRN_TRY(const FileInt end, offset + FileInt(extents[index]));
    CAIRN_TRY(offset, end.aligned_to(alignment_));
  }
  // A file of metadata alone ends with it.
  if (!tensors_.empty()) bytes.resize(bytes.size() + padding(bytes.size(), alignment_));
  return bytes;
}

Result<TensorStream> Writer::open(Sink sink, std::function<Status()> commit) const {
  CAIRN_TRY(const std::vector<uint64_t> sizes, extents());
  CAIRN_TRY(const std::vector<std::byte> bytes, head(sizes));
  CAIRN_TRY(sink(bytes));
  auto state = std::make_unique<TensorStream::State>();
  state->sink = std::move(sink);
  state->commit = std::move(commit);
  state->alignment = alignment_;
  for (size_t index = 0; index < tensors_.size(); ++index) {
    state->tensors.push_back({tensors_[index].name, sizes[index]});
  }
  return TensorStream(std::move(state));
}

Result<TensorStream> Writer::open(Sink sink) const {
  return open(std::move(sink), nullptr);
}

Result<TensorStream> Writer::open_file(OutputFile opened) const {
  // The sink and the commit share the file: a std::function must be copyable, a file is not.
  const auto file = std::make_shared<OutputFile>(std::move(opened));
  return open([file](std::span<const std::byte> bytes) { return file->append(bytes); },
              [file] { return file->commit(); });
}

Result<TensorStream> Writer::open_file(const std::string& path) const {
  CAIRN_TRY(OutputFile file, OutputFile::open(path));
  return open_file(std::move(file));
}

Result<TensorStream> Writer::open_memory(std::vector<std::byte>& bytes) const {
  return open([&bytes](std::span<const std::byte> more) -> Status {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return Ok{};
  });
}

Result<uint64_t> Writer::file_bytes() const {
  CAIRN_TRY(const std::vector<uint64_t> sizes, extents());
  CAIRN_TRY(const std::vector<std::byte> bytes, head(sizes));
  FileInt end(bytes.size());
  for (const uint64_t size : sizes) {
    CAIRN_TRY(const FileInt next, end + FileInt(size));
    CAIRN_TRY(end, next.aligned_to(alignment_));
  }
  return end.value();
}

}  // namespace cairn::gguf
