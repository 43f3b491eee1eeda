// Reading small files and streams whole, or line by line, never more than a limit says.
// Thread rule: standard input belongs to one thread; files are thread-safe.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

#include "base/result.h"

namespace cairn {

// The whole file. Errors: not_found, invalid_argument (not a regular file), no_room (more than
// bytes_max bytes), io.
Result<std::string> read_file(const std::string& path, size_t bytes_max);

// The same of what a person names as input: "-" is standard input, and a pipe is read to its end,
// such as one that a shell makes for `<(command)`. A named pipe into which nobody writes is empty.
// Errors: as read_file(); invalid_argument for folders and devices.
Result<std::string> read_input(const std::string& path, size_t bytes_max);

// Of a regular file the first `count` bytes, or all where it has fewer. Errors: as
// read_file().
Result<std::string> read_beginning(const std::string& path, size_t count);

// All of standard input. Errors: no_room, io.
Result<std::string> read_standard_input(size_t bytes_max);

// The next line without its line feed; false at the end of `stream`. Errors: no_room, io.
Result<bool> read_line(std::FILE* stream, std::string& line, size_t bytes_max);

}  // namespace cairn
