// Reading /proc/meminfo: lines of "Name:   12345 kB".
#include "base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

#include "base/file.h"

namespace cairn {

namespace {

size_t bytes_after(std::string_view text, std::string_view name) {
  const size_t begin = text.find(name);
  if (begin == std::string_view::npos) return 0;
  std::string_view rest = text.substr(begin + name.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  size_t kibibytes = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kibibytes);
  return kibibytes * 1024;
}

}  // namespace

MachineMemory parse_machine_memory(std::string_view meminfo) {
  return {.total_bytes = bytes_after(meminfo, "MemTotal:"),
          .available_bytes = bytes_after(meminfo, "MemAvailable:")};
}

MachineMemory read_machine_memory() {
  constexpr size_t kTextBytesMax = size_t(1) << 16;
  Result<std::string> text = read_file("/proc/meminfo", kTextBytesMax);
  return text ? parse_machine_memory(*text) : MachineMemory{};
}

// Pages: of the address space, then of those that are resident.
size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total_pages = 0, resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * size_t(::sysconf(_SC_PAGESIZE));
}

}  // namespace cairn
