// /proc/self/cgroup says which groups, /proc/self/mountinfo where their files are.
#include "base/machine/control_groups.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace cairn {

namespace {

constexpr size_t kTextBytesMax = size_t(4) << 20;

std::string text_of(const std::string& path) {
  Result<std::string> text = read_file(path, kTextBytesMax);
  return text ? std::move(*text) : std::string();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The number that a file begins with; none where there is another word ("max") or no file.
std::optional<int64_t> number_at(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range && end != text.data()) return INT64_MAX;
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// Of lines "name number", the number behind one of the names.
int64_t field_of(std::string_view text, std::string_view name) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.size() <= name.size() || !line.starts_with(name) || line[name.size()] != ' ') continue;
    return number_at(line.substr(name.size() + 1)).value_or(0);
  }
  return 0;
}

// A hierarchy of groups, and the process's place in it.
struct Hierarchy {
  std::string mount;  // Its folder.
  std::string path;   // Of the process's group, below it; "" or beginning with a slash.
};

// The path of the process's group, of version 2 or of a controller of version 1; none: not in one.
std::optional<std::string_view> group_path(std::string_view groups, std::string_view controller) {
  for (const std::string_view line : split(groups, '\n')) {  // "4:memory:/path", "0::/path"
    const size_t first = line.find(':');
    const size_t second = line.find(':', std::min(first, line.size() - 1) + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::vector<std::string_view> names =
        split(line.substr(first + 1, second - first - 1), ',');
    const bool is_it = controller.empty()
                           ? names.empty() && line.starts_with("0:")
                           : std::find(names.begin(), names.end(), controller) != names.end();
    if (is_it) return line.substr(second + 1);
  }
  return std::nullopt;
}

// Inside a container the mounted folder may be the group itself, whatever its path says.
std::string below(std::string_view path, std::string_view mounted_root) {
  if (mounted_root == "/") return std::string(path == "/" ? "" : path);
  if (!path.starts_with(mounted_root)) return "";
  path.remove_prefix(mounted_root.size());
  return std::string(path.starts_with("/") ? path : "");
}

std::optional<Hierarchy> find_hierarchy(const std::string& root, std::string_view controller) {
  const std::string groups = text_of(root + "/proc/self/cgroup");
  const std::optional<std::string_view> path = group_path(groups, controller);
  if (!path) return std::nullopt;
  const std::string mounts = text_of(root + "/proc/self/mountinfo");
  // "35 31 0:32 ROOT FOLDER rw,relatime - TYPE SOURCE rw,memory", with fields between that vary.
  for (const std::string_view line : split(mounts, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const std::vector<std::string_view> before = split(line.substr(0, dash), ' ');
    const std::vector<std::string_view> behind = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || behind.size() < 3) continue;
    const std::vector<std::string_view> options = split(behind[2], ',');
    const bool is_it = controller.empty()
                           ? behind[0] == "cgroup2"
                           : behind[0] == "cgroup" && std::find(options.begin(), options.end(),
                                                                controller) != options.end();
    if (is_it) return Hierarchy{root + std::string(before[4]), below(*path, before[3])};
  }
  return std::nullopt;
}

// Calls body(folder) for the process's group and each one above it.
template <class Body>
void for_groups(const std::string& root, std::string_view controller, const Body& body) {
  std::optional<Hierarchy> found = find_hierarchy(root, controller);
  if (!found) return;
  for (std::string path = found->path;;) {
    body(found->mount + path);
    if (path.empty()) return;
    path.resize(std::min(path.rfind('/'), path.size()));
  }
}

struct MemoryFiles {
  const char *limit, *soft_limit, *use, *inactive, *active;
};
constexpr MemoryFiles kMemoryFiles2 = {"/memory.max", "/memory.high", "/memory.current",
                                       "inactive_file", "active_file"};
constexpr MemoryFiles kMemoryFiles1 = {"/memory.limit_in_bytes", nullptr, "/memory.usage_in_bytes",
                                       "total_inactive_file", "total_active_file"};

size_t free_bytes(const std::string& folder, const MemoryFiles& files) {
  int64_t limit = number_at(text_of(folder + files.limit)).value_or(INT64_MAX);
  if (files.soft_limit != nullptr) {
    limit = std::min(limit, number_at(text_of(folder + files.soft_limit)).value_or(INT64_MAX));
  }
  // Version 1 says "none" by a number near 2^63.
  if (limit > INT64_MAX / 2) return SIZE_MAX;
  const int64_t use = number_at(text_of(folder + files.use)).value_or(0);
  const std::string statistics = text_of(folder + "/memory.stat");
  const int64_t cached = field_of(statistics, files.inactive) + field_of(statistics, files.active);
  return size_t(std::max<int64_t>(limit - std::max<int64_t>(use - cached, 0), 0));
}

double share(std::optional<int64_t> quota, std::optional<int64_t> period) {
  const bool is_limit = quota && period && *quota > 0 && *period > 0;
  return is_limit ? double(*quota) / double(*period) : ControlGroupLimits().cpus;
}

}  // namespace

ControlGroupLimits read_control_groups(const std::string& root) {
  ControlGroupLimits limits;
  for_groups(root, "", [&](const std::string& folder) {
    limits.free_bytes = std::min(limits.free_bytes, free_bytes(folder, kMemoryFiles2));
    const std::string cpu = text_of(folder + "/cpu.max");
    const std::vector<std::string_view> words = split(cpu, ' ');  // "150000 100000"
    if (words.size() != 2) return;
    limits.cpus = std::min(limits.cpus, share(number_at(words[0]), number_at(words[1])));
  });
  for_groups(root, "memory", [&](const std::string& folder) {
    limits.free_bytes = std::min(limits.free_bytes, free_bytes(folder, kMemoryFiles1));
  });
  for_groups(root, "cpu", [&](const std::string& folder) {
    limits.cpus = std::min(limits.cpus, share(number_at(text_of(folder + "/cpu.cfs_quota_us")),
                                              number_at(text_of(folder + "/cpu.cfs_period_us"))));
  });
  return limits;
}

}  // namespace cairn
