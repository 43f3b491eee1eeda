// Reading /proc: meminfo has lines of "Name:   12345 kB", limits has lines of
// "Max address space         1048576              unlimited            bytes".
#include "base/machine/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string>

#include "base/file.h"
#include "base/machine/control_groups.h"

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

constexpr size_t kTextBytesMax = size_t(1) << 16;

std::string text_of(const std::string& path) {
  Result<std::string> text = read_file(path, kTextBytesMax);
  return text ? std::move(*text) : std::string();
}

// The soft limit of that name; SIZE_MAX: none.
size_t process_limit(std::string_view limits, std::string_view name) {
  const size_t begin = limits.find(name);
  if (begin == std::string_view::npos) return SIZE_MAX;
  std::string_view rest = limits.substr(begin + name.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  size_t bytes = SIZE_MAX;  // Stays where the word is "unlimited".
  std::from_chars(rest.data(), rest.data() + rest.size(), bytes);
  return bytes;
}

size_t difference(size_t limit, size_t used) {
  return limit == SIZE_MAX ? SIZE_MAX : limit - std::min(limit, used);
}

// Pages, by what they are: of all addresses, resident, shared, code, 0, data and stack, 0.
struct ProcessSize {
  size_t address_bytes = 0, data_bytes = 0;
};
ProcessSize read_process_size(const std::string& root) {
  std::ifstream statm(root + "/proc/self/statm");
  size_t pages[6] = {};
  for (size_t& count : pages) statm >> count;
  const size_t page_bytes = size_t(::sysconf(_SC_PAGESIZE));
  return {pages[0] * page_bytes, pages[5] * page_bytes};
}

}  // namespace

MachineMemory parse_machine_memory(std::string_view meminfo) {
  return {.total_bytes = bytes_after(meminfo, "MemTotal:"),
          .available_bytes = bytes_after(meminfo, "MemAvailable:")};
}

MachineMemory read_machine_memory() {
  return parse_machine_memory(text_of("/proc/meminfo"));
}

MemoryRoom read_memory_room(const std::string& root) {
  const std::string meminfo = text_of(root + "/proc/meminfo");
  const std::string limits = text_of(root + "/proc/self/limits");
  const ProcessSize size = read_process_size(root);
  MemoryRoom room;
  room.address_bytes = difference(process_limit(limits, "Max address space"), size.address_bytes);
  size_t least = SIZE_MAX;
  const auto limit = [&](size_t bytes, std::string_view name) {
    if (bytes >= least) return;
    least = bytes;
    room.limited_by = name;
  };
  if (meminfo.find("MemAvailable:") != std::string::npos) {
    limit(bytes_after(meminfo, "MemAvailable:"), "MemAvailable");
  }
  limit(read_control_groups(root).free_bytes, "control group");
  limit(room.address_bytes, "ulimit -v");
  limit(difference(process_limit(limits, "Max data size"), size.data_bytes), "ulimit -d");
  const bool promises_no_more = text_of(root + "/proc/sys/vm/overcommit_memory").starts_with('2');
  if (promises_no_more) {
    limit(difference(bytes_after(meminfo, "CommitLimit:"), bytes_after(meminfo, "Committed_AS:")),
          "CommitLimit");
  }
  if (least == SIZE_MAX) return room;
  room.bytes = std::max<size_t>(least, 1);  // 0 would say that nobody knows.
  return room;
}

// Pages: of the address space, then of those that are resident.
namespace {

// In pages, in the order of proc(5): all addresses, resident ones, those of them that files back.
std::array<size_t, 3> read_statm() {
  std::array<size_t, 3> pages{};
  std::ifstream statm("/proc/self/statm");
  for (size_t& count : pages) statm >> count;
  return pages;
}

size_t page_bytes() {
  return size_t(::sysconf(_SC_PAGESIZE));
}

}  // namespace

size_t resident_bytes() {
  return read_statm()[1] * page_bytes();
}

size_t resident_file_bytes() {
  return read_statm()[2] * page_bytes();
}

}  // namespace cairn
