// Writes GGUF version 3: first say what the file will hold, then stream the tensors' bytes in that
// order. Memory stays with the metadata and the tensor table; models of any size pass through.
// Obeys the reader's limits: what it writes, gguf/gguf.h opens.
// Thread rule: a Writer and its TensorStream belong to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "gguf/fields.h"
#include "gguf/limits.h"
#include "gguf/tensor.h"

namespace cairn::gguf {

// Takes the file's bytes, front to back.
using Sink = std::function<Status(std::span<const std::byte>)>;

// The open end of a file: takes the bytes of the declared tensors, one tensor after another.
class TensorStream {
 public:
  TensorStream(TensorStream&&) noexcept;
  TensorStream& operator=(TensorStream&&) noexcept;
  // Without finish() the file never comes to be.
  ~TensorStream();

  // The next bytes of the tensor at hand, in pieces of any size that do not cross its end; padding
  // between tensors is added here. Errors: invalid_argument (more bytes than the tensor has), io.
  Status append(std::span<const std::byte> bytes);
  // Ends the file. Errors: invalid_argument (a tensor has fewer bytes than declared), io.
  Status finish();

 private:
  friend class Writer;
  struct State;
  explicit TensorStream(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

class Writer {
 public:
  // Alignment of tensor data; a power of two from 8. Stands in the file as general.alignment if it
  // is not the default; a general.alignment added by hand must agree.
  explicit Writer(uint32_t alignment = uint32_t(kAlignmentDefault));

  // Metadata in the order of the calls. A bad or repeated key is an error of open().
  void add(std::string_view key, bool value);
  void add(std::string_view key, uint8_t value);
  void add(std::string_view key, int8_t value);
  void add(std::string_view key, uint16_t value);
  void add(std::string_view key, int16_t value);
  void add(std::string_view key, uint32_t value);
  void add(std::string_view key, int32_t value);
  void add(std::string_view key, uint64_t value);
  void add(std::string_view key, int64_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, double value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  // A value of another file, as it is.
  void add(std::string_view key, const Value& value);

  // T: any of the number types above.
  template <class T>
  void add_array(std::string_view key, std::span<const T> values);
  void add_array(std::string_view key, std::span<const std::string> values);
  void add_booleans(std::string_view key, const std::vector<bool>& values);

  // A tensor that will follow. dims[0] is the length of a row. Errors are open()'s.
  void declare(std::string_view name, std::span<const int64_t> dims, uint32_t type_id);

  // Writes header, metadata and tensor table; the tensors' bytes follow through the stream.
  // Errors: invalid_argument (a rule of the reader is broken; names the key or tensor), io.
  // The stream does not need the Writer any more.
  Result<TensorStream> open(Sink sink) const;
  // The file is committed when the stream finishes.
  Result<TensorStream> open_file(OutputFile file) const;
  Result<TensorStream> open_file(const std::string& path) const;
  // Appends to `bytes`, which must outlive the stream.
  Result<TensorStream> open_memory(std::vector<std::byte>& bytes) const;

  // Size of the file to be, in bytes. Errors as in open().
  Result<uint64_t> file_bytes() const;

 private:
  struct Declared {
    std::string name;
    std::vector<uint64_t> dims;
    uint32_t type_id;
  };

  void start_field(std::string_view key, ValueType type);
  template <class T>
  void add_number(std::string_view key, T value);
  // Keeps the first error for open().
  void note(Status status);
  Status check_names() const;
  Result<TensorStream> open(Sink sink, std::function<Status()> commit) const;
  // Bytes of each declared tensor.
  Result<std::vector<uint64_t>> extents() const;
  Result<std::vector<std::byte>> head(std::span<const uint64_t> extents) const;

  uint32_t alignment_;
  std::optional<uint64_t> stated_alignment_;
  std::optional<Error> error_;
  std::vector<std::string> keys_;
  std::vector<std::byte> fields_;  // As they will lie in the file.
  std::vector<Declared> tensors_;
};

}  // namespace cairn::gguf
