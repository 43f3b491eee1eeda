// A stored sequence as one file, to be carried elsewhere: its manifest's record, then those that it
// names, as they lie in the store, one after another. What comes in is checked as strangers' bytes
// are. Thread rule: that of a DiskStore's writer.
#pragma once

#include <string>

#include "base/output_file.h"
#include "base/result.h"
#include "store/disk_store.h"

namespace cairn::store {

// Errors: those of reading, and of writing the file; it is not committed then.
Status export_sequence(DiskStore& store, const Sha256Digest& name, OutputFile& out);
// The name of the manifest. Nothing is visible before all of it is on the disk.
// Errors: not_found, invalid_data (damage, records that the manifest does not name), unsupported,
// no_room, io.
Result<Sha256Digest> import_sequence(DiskStore& store, const std::string& path);

}  // namespace cairn::store
