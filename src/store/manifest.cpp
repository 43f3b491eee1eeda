// The manifest's fields, in the order in which they lie.
#include "store/manifest.h"

#include <algorithm>

#include "store/bytes.h"

namespace cairn::store {
namespace {

constexpr size_t kModelNameMax = 256;
constexpr size_t kAnchorBytes = 6, kRunBytes = 8, kPieceBytes = 72;

Error bad_field(std::string_view field) {
  return fail(ErrorCode::invalid_data, "manifest: {} is damaged", field);
}

uint8_t flags_of(bool has_state, bool has_hidden) {
  return uint8_t((has_state ? 1 : 0) | (has_hidden ? 2 : 0));
}

void write_outline(const memory::Outline& outline, ByteWriter& out) {
  out.u32(uint32_t(outline.log_begin));
  out.u32(uint32_t(outline.protected_from));
  out.u8(flags_of(outline.has_state, outline.has_hidden));
  out.u32(outline.anchors.size());
  for (const memory::OutlineAnchor& anchor : outline.anchors) {
    out.u32(uint32_t(anchor.position));
    out.u8(uint8_t(anchor.kind));
    out.u8(flags_of(anchor.has_state, anchor.has_hidden));
  }
  out.u32(outline.runs.size());
  for (const std::vector<memory::PageRun>& runs : outline.runs) {
    out.u32(runs.size());
    for (const memory::PageRun& run : runs) {
      out.u32(uint32_t(run.first));
      out.u32(uint32_t(run.count));
    }
  }
}

Status read_outline(ByteReader& in, memory::Outline& outline) {
  outline.log_begin = int32_t(in.u32());
  outline.protected_from = int32_t(in.u32());
  const uint8_t flags = in.u8();
  outline.has_state = (flags & 1) != 0;
  outline.has_hidden = (flags & 2) != 0;
  const uint32_t anchor_count = in.u32();
  if (flags > 3 || !in.could_have(anchor_count, kAnchorBytes)) return bad_field("the anchors");
  for (uint32_t index = 0; index < anchor_count; ++index) {
    memory::OutlineAnchor anchor{.position = int32_t(in.u32()),
                                 .kind = memory::AnchorKind(in.u8())};
    const uint8_t has = in.u8();
    if (has > 3) return bad_field("an anchor");
    anchor.has_state = (has & 1) != 0;
    anchor.has_hidden = (has & 2) != 0;
    outline.anchors.push_back(anchor);
  }
  const uint32_t group_count = in.u32();
  if (!in.could_have(group_count, sizeof(uint32_t))) return bad_field("the groups");
  for (uint32_t group = 0; group < group_count; ++group) {
    std::vector<memory::PageRun>& runs = outline.runs.emplace_back();
    const uint32_t run_count = in.u32();
    if (!in.could_have(run_count, kRunBytes)) return bad_field("the pages");
    for (uint32_t index = 0; index < run_count; ++index) {
      const int32_t first = int32_t(in.u32());
      runs.push_back({.first = first, .count = int32_t(in.u32())});
    }
  }
  return Ok{};
}

}  // namespace

std::vector<std::byte> encode(const Manifest& manifest) {
  ByteWriter out;
  const std::string_view model = std::string_view(manifest.model).substr(0, kModelNameMax);
  out.u16(model.size());
  out.raw(std::as_bytes(std::span(model)));
  write_outline(manifest.outline, out);
  out.u32(manifest.pieces.size());
  for (const PieceRef& piece : manifest.pieces) {
    out.digest(piece.name);
    out.digest(piece.digest);
    out.u64(piece.file_bytes);
  }
  out.u32(manifest.hidden_row_bytes);
  out.raw(manifest.hidden_rows);
  if (manifest.tenant != 0) out.u64(manifest.tenant);
  return std::move(out).take();
}

Result<Manifest> decode_manifest(std::span<const std::byte> payload, std::vector<Token> tokens) {
  Manifest manifest;
  manifest.outline.tokens = std::move(tokens);
  ByteReader in(payload);
  const uint16_t model_bytes = in.u16();
  if (model_bytes > kModelNameMax) return bad_field("the model's name");
  for (const std::byte byte : in.raw(model_bytes)) manifest.model += char(byte);
  CAIRN_TRY(read_outline(in, manifest.outline));
  const uint32_t piece_count = in.u32();
  if (!in.could_have(piece_count, kPieceBytes)) return bad_field("the list of records");
  for (uint32_t index = 0; index < piece_count; ++index) {
    PieceRef piece{.name = in.digest(), .digest = in.digest()};
    piece.file_bytes = in.u64();
    manifest.pieces.push_back(piece);
  }
  manifest.hidden_row_bytes = in.u32();
  const uint64_t rows_bytes =
      manifest.outline.hidden_positions().size() * uint64_t(manifest.hidden_row_bytes);
  const bool has_tenant = in.left() == rows_bytes + sizeof(manifest.tenant);
  if (!in.is_whole() || (!has_tenant && in.left() != rows_bytes)) return bad_field("the length");
  const auto rows = in.raw(size_t(rows_bytes));
  manifest.hidden_rows.assign(rows.begin(), rows.end());
  if (has_tenant) manifest.tenant = in.u64();
  if (has_tenant && manifest.tenant == 0) return bad_field("the tenant");
  return manifest;
}

RecordHeader manifest_header(const Chain& chain, const Manifest& manifest, uint32_t layout,
                             std::span<const std::byte> payload) {
  const int32_t length = manifest.outline.length();
  return {.type = RecordType::manifest,
          .payload_bytes = payload.size(),
          .fingerprint = chain.fingerprint(),
          .key_at_begin = chain.link(0),
          .key_at_end = chain.key_at(length),
          .begin = 0,
          .end = length,
          .group = 0,
          .kind = 0,
          .layout = layout,
          .first_layer = 0,
          .last_layer = 0,
          .token_count = uint32_t(length),
          .payload_digest = Sha256().add(payload).finish(),
          .flags = manifest.tenant == 0 ? 0 : kIsTenants};
}

}  // namespace cairn::store
