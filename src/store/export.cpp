// Records one after another.
#include "store/export.h"

#include <vector>

#include "base/mapped_file.h"

namespace cairn::store {
namespace {

// The first record of the bytes.
Result<std::span<const std::byte>> first_record(std::span<const std::byte> bytes) {
  CAIRN_TRY(const RecordHeader header, decode_header(bytes));
  if (header.file_bytes() <= bytes.size()) return bytes.first(size_t(header.file_bytes()));
  return fail(ErrorCode::invalid_data, "record: expected {} bytes, found {}", header.file_bytes(),
              bytes.size());
}

}  // namespace

Status export_sequence(DiskStore& store, const Sha256Digest& name, OutputFile& out) {
  CAIRN_TRY(const Manifest manifest, store.read_manifest(name));
  CAIRN_TRY(const std::vector<std::byte> first, store.read_whole(Place::manifests, name));
  CAIRN_TRY(out.append(first));
  for (const PieceRef& piece : manifest.pieces) {
    CAIRN_TRY(const std::vector<std::byte> record, store.read_whole(Place::objects, piece.name));
    CAIRN_TRY(out.append(record));
  }
  return Ok{};
}

Result<Sha256Digest> import_sequence(DiskStore& store, const std::string& path) {
  CAIRN_TRY(const MappedFile file, MappedFile::open(path));
  CAIRN_TRY(const std::span<const std::byte> first, first_record(file.bytes()));
  CAIRN_TRY(const RecordHeader header, decode_header(first));
  CAIRN_TRY(const RecordFront front, decode_front(first.first(size_t(header.payload_offset()))));
  if (header.type != RecordType::manifest) {
    return fail(ErrorCode::invalid_data, "{}: expected a manifest first, found another record",
                path);
  }
  CAIRN_TRY(const Manifest manifest,
            decode_manifest(first.subspan(size_t(header.payload_offset())), front.tokens));
  std::span<const std::byte> rest = file.bytes().subspan(first.size());
  for (const PieceRef& piece : manifest.pieces) {
    CAIRN_TRY(const std::span<const std::byte> record, first_record(rest));
    CAIRN_TRY(const RecordHeader found, decode_header(record));
    if (name_of(found) != piece.name || found.payload_digest != piece.digest) {
      return fail(ErrorCode::invalid_data, "{}: expected the records that its manifest names",
                  path);
    }
    CAIRN_TRY(store.adopt(record));
    rest = rest.subspan(record.size());
  }
  if (!rest.empty()) {
    return fail(ErrorCode::invalid_data,
                "{}: expected nothing behind the last record, found {} "
                "bytes",
                path, rest.size());
  }
  return store.adopt(first);
}

}  // namespace cairn::store
