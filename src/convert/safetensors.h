// The tensors of a model directory: model.safetensors, or its parts named by an index. Trusts
// nothing: each range is compared with the file's real size and with its shape and type; tensors
// may not overlap. Reads headers; the bytes stay mapped and are looked at when they are wanted.
// Invariant: every tensor handed out lies inside its file and has shape times width bytes.
// Thread-safe: constant once open. Views live as long as the Checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace cairn::convert {

enum class Number : uint8_t { f64, f32, f16, bf16, other };

struct SourceTensor {
  std::string name;
  Number number;
  std::string dtype;           // As the file says it: "BF16".
  std::vector<int64_t> shape;  // The outermost dimension first; empty for a single number.
  std::span<const std::byte> bytes;
  uint32_t part;

  int64_t number_count() const;
};

// The tensors of one file, by name. Errors name the file and the tensor: invalid_data, unsupported.
// `part` is what the tensors will say.
Result<std::vector<SourceTensor>> read_safetensors(std::span<const std::byte> file,
                                                   std::string_view file_name, uint32_t part);

class Checkpoint {
 public:
  // Errors: not_found (no safetensors in the folder; a part of the index is missing), invalid_data.
  static Result<Checkpoint> open(const std::string& folder);
  // A file of tensors beside the model's own, which are kept apart.
  Status add_module(const std::string& path);

  // Part after part, in each by name.
  std::span<const SourceTensor> tensors() const { return tensors_; }
  const SourceTensor* find(std::string_view name) const;
  // Those that add_module() brought, in the order of the calls.
  std::span<const SourceTensor> module_tensors() const { return module_tensors_; }
  // Takes the tensor's pages out of this process again.
  void forget(const SourceTensor& tensor) const;

 private:
  Checkpoint() = default;
  Status add_file(const std::string& path, std::vector<SourceTensor>& tensors);

  std::vector<MappedFile> parts_;
  std::vector<SourceTensor> tensors_, module_tensors_;
  std::vector<uint32_t> by_name_;
};

}  // namespace cairn::convert
