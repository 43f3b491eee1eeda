// Reading and comparing keys.
#include "serve/keys.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/constant_time.h"
#include "base/file.h"

namespace cairn::serve {

namespace {

constexpr size_t kKeyBytesMin = 16, kKeyBytesMax = 4096;
constexpr size_t kFileBytesMax = 1 << 20;
constexpr size_t kAddressesMax = 4096;

constexpr size_t kNameBytesMax = 64;

// Keys of people who are told apart by nothing else: "user-0123456789abcdef". The same when the
// file is read again, wherever the key stands in it.
std::string name_of(Role role, const Sha256Digest& digest) {
  return fmt::format("{}-{}", role == Role::admin ? "admin" : "user", hex_of(digest).substr(0, 16));
}

bool is_name(std::string_view text) {
  const auto may_stand = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return text.size() <= kNameBytesMax && std::all_of(text.begin(), text.end(), may_stand);
}

// Never 0. Enough among the tenants of one server, whose names only its owner chooses.
uint64_t tenant_of(std::string_view name) {
  const Sha256Digest digest = Sha256().add("cairn tenant name").add(name).finish();
  uint64_t number = 0;
  std::memcpy(&number, digest.data(), sizeof number);
  return number == 0 ? 1 : number;
}

}  // namespace

Status Keys::add_file(const std::string& path, Role role) {
  CAIRN_TRY(const std::string text, read_file(path, kFileBytesMax));
  struct stat found = {};
  if (::stat(path.c_str(), &found) == 0 && (found.st_mode & 077) != 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a file that its owner alone may read (chmod 600), found mode {:o}",
                path, unsigned(found.st_mode & 0777));
  }
  int line_number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string_view name = blank < line.size() ? line.substr(0, blank) : "";
    const std::string_view key = blank < line.size() ? line.substr(blank + 1) : line;
    if (const Status added = add(key, role, name); !added) {
      return fail(ErrorCode::invalid_argument, "{}: line {}: {}", path, line_number,
                  added.error().message);
    }
  }
  if (has_role(role)) return Ok{};
  return fail(ErrorCode::invalid_argument, "{}: expected a key in a line, found none", path);
}

Status Keys::add(std::string_view key, Role role, std::string_view tenant_name) {
  if (!is_name(tenant_name)) {
    return fail(ErrorCode::invalid_argument,
                "name of a key: expected at most {} letters, digits, \".\", \"_\" and \"-\"",
                kNameBytesMax);
  }
  const bool is_plain = std::all_of(key.begin(), key.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f;
  });
  if (!is_plain || key.size() < kKeyBytesMin || key.size() > kKeyBytesMax) {
    return fail(ErrorCode::invalid_argument,
                "API key: expected at least {} characters of ASCII without blanks, found {}",
                kKeyBytesMin, is_plain ? fmt::format("{}", key.size()) : "others");
  }
  const Sha256Digest digest = Sha256().add(key).finish();
  const bool has_name = !tenant_name.empty();
  std::string name = has_name ? std::string(tenant_name) : name_of(role, digest);
  tenant_names_.insert(name);
  const uint64_t tenant = tenant_of(name);
  std::string owner = hex_of(Sha256().add("cairn-owner/1").add(name).finish());
  entries_.push_back({digest, {role, std::move(name), tenant, std::move(owner)}, has_name});
  return Ok{};
}

bool Keys::has_role(Role role) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.holder.role == role; });
}

std::vector<uint64_t> Keys::tenants() const {
  std::vector<uint64_t> tenants;
  for (const std::string& name : tenant_names_) tenants.push_back(tenant_of(name));
  return tenants;
}

std::optional<Keys::Holder> Keys::find(std::string_view key) const {
  const Sha256Digest digest = Sha256().add(key.substr(0, kKeyBytesMax + 1)).finish();
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (is_equal_in_constant_time(entry.digest, digest)) found = &entry;
  }
  if (found == nullptr) return std::nullopt;
  Holder holder = found->holder;
  if (tenant_count() == 1 && !found->has_name) holder.tenant = 0;
  return holder;
}

bool FailureCounts::is_blocked(const std::string& address, Clock::time_point now) {
  const auto found = counts_.find(address);
  if (found == counts_.end()) return false;
  if (now - found->second.begin > kSpan) {
    counts_.erase(found);
    return false;
  }
  return found->second.failures >= kFailuresMax;
}

void FailureCounts::add(const std::string& address, Clock::time_point now) {
  if (counts_.size() >= kAddressesMax) {
    std::erase_if(counts_, [&](const auto& entry) { return now - entry.second.begin > kSpan; });
  }
  // So many addresses at a time are no person's.
  if (counts_.size() >= kAddressesMax) counts_.clear();
  Count& count = counts_[address];
  if (count.failures == 0) count.begin = now;
  // The span counts from the failure that filled it.
  if (++count.failures == kFailuresMax) count.begin = now;
}

}  // namespace cairn::serve
