// What every source checks of a manifest.
#include "store/record_source.h"

#include "store/pieces.h"

namespace cairn::store {

Status check_manifest(const Manifest& manifest, uint32_t layout, const memory::Layout& wanted) {
  if (layout != layout_id(wanted) || manifest.hidden_row_bytes != wanted.hidden_bytes()) {
    return fail(ErrorCode::unsupported, "manifest: expected another layout of pages");
  }
  CAIRN_TRY(check(manifest.outline, wanted));
  if (pieces_of(manifest.outline, wanted).size() != manifest.pieces.size()) {
    return fail(ErrorCode::invalid_data, "manifest: the number of records does not fit");
  }
  return Ok{};
}

}  // namespace cairn::store
