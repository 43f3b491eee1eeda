// A GGUF model: its metadata and its tensors, read from a mapped file (or the files of a split
// model) without copying. Every part of it was checked when it was opened (docs/formats.md lists
// the rules); what the values mean is for others to say.
// All views (fields, names, tensor bytes) live as long as the File and survive its being moved.
// Thread-safe once open: constant data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "base/sha256.h"
#include "gguf/fields.h"
#include "gguf/metadata.h"
#include "gguf/part.h"
#include "gguf/tensor.h"

namespace cairn::gguf {

class File {
 public:
  // Version 2 or 3, little-endian. A split model is opened by its first file,
  // NAME-00001-of-0000N.gguf; the others are found beside it.
  // Errors: not_found, io, invalid_data, unsupported; the message starts with the path and names
  // the key or tensor, and what was expected and found.
  static Result<File> open(const std::string& path, OpenMode mode = OpenMode::strict);
  // The same from bytes that must outlive the File; `name` stands in errors. Not for split models.
  static Result<File> from_bytes(std::span<const std::byte> bytes, std::string name,
                                 OpenMode mode = OpenMode::strict);

  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  const std::string& name() const;  // The path that was opened.
  uint32_t version() const;
  uint64_t alignment() const;
  uint64_t file_bytes() const;  // Of all parts.
  int32_t part_count() const;   // 1 for a whole file.
  // Of all parts, for outputs, which must not be written over them; empty for bytes.
  std::vector<FileIdentity> identities() const;

  const Fields& fields() const;  // Of the first part.
  Result<Metadata> metadata() const;

  std::span<const Tensor> tensors() const;          // Of all parts, in the files' order.
  const Tensor* find(std::string_view name) const;  // Null if there is none.
  // A tensor whose type this program can decode. Errors: not_found, unsupported (another type),
  // invalid_data (a file opened for inspection that lacks its bytes).
  Result<const Tensor*> weight(std::string_view name) const;

  // What is wrong with a file opened for inspection; empty for one opened strictly.
  const Problems& problems() const;

  // Advice about bytes of tensors. Bytes that are not a mapped file's are left alone.
  // They will be read soon: the kernel starts reading the disk.
  void will_need(std::span<const std::byte> bytes) const;
  // They will not be read again soon: their pages leave this process …
  void forget(std::span<const std::byte> bytes) const;
  // … and the page cache: reading them again reads the disk again.
  void drop(std::span<const std::byte> bytes) const;

  // Tells this file from others, without reading all of it: a digest of the metadata, of the parts'
  // sizes and times of change, and of samples of every tensor. A change of a few weights that keeps
  // size and time may stay unseen.
  uint64_t digest() const;
  // The same for fingerprints: the SHA-256 of all metadata of the first part and of a page from
  // each end and the middle of every tensor. Copies of a file have the same one.
  Sha256Digest identity() const;

 private:
  struct Contents;
  explicit File(std::unique_ptr<Contents> contents);

  std::unique_ptr<Contents> contents_;
};

}  // namespace cairn::gguf
