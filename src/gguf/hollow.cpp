// The header is written again, and anonymous memory stands for what would follow.
#include "gguf/hollow.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "gguf/writer.h"

namespace cairn::gguf {

namespace {

Writer header_of(std::span<const File* const> parts, std::span<const quant::Type* const> types) {
  Writer writer(uint32_t(parts.front()->alignment()));
  for (const Field& field : parts.front()->fields().all()) {
    // It is one file now.
    if (!field.key.starts_with("split.")) writer.add(field.key, field.value);
  }
  size_t index = 0;
  for (const File* part : parts) {
    for (const Tensor& tensor : part->tensors()) {
      const quant::Type* type = index < types.size() ? types[index] : nullptr;
      ++index;
      writer.declare(tensor.name, std::span(tensor.dims).first(size_t(tensor.dim_count)),
                     type == nullptr ? tensor.type_id : type->gguf_id);
    }
  }
  return writer;
}

}  // namespace

Result<HollowModel> make_hollow(std::span<const File* const> parts,
                                std::span<const quant::Type* const> types) {
  CHECK(!parts.empty());
  const Writer writer = header_of(parts, types);
  CAIRN_TRY(const uint64_t file_bytes, writer.file_bytes());
  CAIRN_TRY(Arena zeros, Arena::reserve(size_t(file_bytes)));
  size_t end = 0;
  const Sink sink = [&](std::span<const std::byte> bytes) -> Status {
    std::copy(bytes.begin(), bytes.end(), zeros.data() + end);
    end += bytes.size();
    return Ok{};
  };
  // Only the head is written; the stream that wants the weights goes.
  CAIRN_TRY(const TensorStream unfinished, writer.open(sink));
  CAIRN_TRY(File file,
            File::from_bytes(std::span(zeros.data(), size_t(file_bytes)), parts.front()->name()));
  return HollowModel{std::move(zeros), std::move(file)};
}

}  // namespace cairn::gguf
