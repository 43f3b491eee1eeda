// Builds GGUF bytes with any mistake in them, independently of the writer. For tests only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "gguf/value.h"

namespace cairn::gguf::raw {

class Bytes {
 public:
  template <class T>
  Bytes& put(T number) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof number);
    std::memcpy(bytes_.data() + at, &number, sizeof number);
    return *this;
  }
  Bytes& text(std::string_view text) { return put(uint64_t(text.size())).raw(text); }
  Bytes& raw(std::string_view text) {
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), data, data + text.size());
    return *this;
  }
  Bytes& add(const Bytes& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }
  Bytes& pad(size_t alignment, size_t more = 0) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment + more);
    return *this;
  }
  const std::vector<std::byte>& get() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

template <class T>
Bytes number_field(std::string_view key, ValueType type, T value) {
  return Bytes().text(key).put(uint32_t(type)).put(value);
}

inline Bytes text_field(std::string_view key, std::string_view value) {
  return Bytes().text(key).put(uint32_t(ValueType::string)).text(value);
}

template <class T>
Bytes array_field(std::string_view key, ValueType element, const std::vector<T>& values) {
  Bytes bytes;
  bytes.text(key).put(uint32_t(ValueType::array)).put(uint32_t(element));
  bytes.put(uint64_t(values.size()));
  for (const T& value : values) bytes.put(value);
  return bytes;
}

struct RawTensor {
  std::string name = "w";
  std::vector<uint64_t> dims = {32};
  uint32_t type = 0;
  uint64_t offset = 0;
  std::optional<uint32_t> dim_count = std::nullopt;  // What the file declares, if it lies.
};

struct RawFile {
  uint32_t version = 3;
  std::vector<Bytes> fields = {};
  std::vector<RawTensor> tensors = {};
  size_t data_bytes = 0;
  std::optional<uint64_t> field_count = std::nullopt;
  std::optional<uint64_t> tensor_count = std::nullopt;
  size_t alignment = 32;

  std::vector<std::byte> build() const {
    Bytes bytes;
    bytes.raw("GGUF").put(version);
    bytes.put(tensor_count.value_or(tensors.size())).put(field_count.value_or(fields.size()));
    for (const Bytes& field : fields) bytes.add(field);
    for (const RawTensor& tensor : tensors) {
      bytes.text(tensor.name).put(tensor.dim_count.value_or(uint32_t(tensor.dims.size())));
      for (const uint64_t dim : tensor.dims) bytes.put(dim);
      bytes.put(tensor.type).put(tensor.offset);
    }
    if (data_bytes != 0) bytes.pad(alignment, data_bytes);
    return bytes.get();
  }
};

// The error of opening these bytes; "opened" if there is none.
inline std::string open_error(const std::vector<std::byte>& bytes,
                              OpenMode mode = OpenMode::strict) {
  auto file = File::from_bytes(bytes, "x.gguf", mode);
  return file ? "opened" : file.error().message;
}

inline std::string open_error(const RawFile& file) {
  return open_error(file.build());
}

}  // namespace cairn::gguf::raw
