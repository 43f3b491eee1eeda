// `cairn inspect`: says all that a GGUF file holds, for people or as JSON. Reads metadata and the
// tensor table only. Refuses nothing that is readable: what is wrong with a file is listed first.
// Everything that comes from the file is made harmless for a terminal.
// Thread rule: pure but for the printing.
#pragma once

#include <string>

#include "gguf/gguf.h"

namespace cairn::cli {

// The report, ending in a line feed. JSON: one object, ASCII only (all else is escaped); numbers
// that JSON does not have are the strings "nan", "inf", "-inf"; arrays of more than 64 elements
// give their count and their first 8.
std::string inspect_report(const gguf::File& file, bool json);

}  // namespace cairn::cli
