// API keys: who has one, and what it allows. A key is a tenant, unless a name says that several are
// one's. Keys are kept as their SHA-256; comparing takes as long whatever is wrong.
// Thread-safe: constant once made, but for FailureCounts.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace cairn::serve {

enum class Role : uint8_t { user, admin };

class Keys {
 public:
  // One key in each line, with its tenant's name and a blank before it where it has one; empty
  // lines and those that begin with # are left out. Errors: what read_file() says;
  // invalid_argument: others may read the file, or a key has fewer than 16 characters or others
  // than ASCII's without blanks, or a name others than letters, digits, ".", "_" and "-".
  Status add_file(const std::string& path, Role role);
  // Errors: invalid_argument, the same.
  Status add(std::string_view key, Role role, std::string_view tenant_name = "");

  bool is_empty() const { return entries_.empty(); }
  bool has_role(Role role) const;
  struct Holder {
    Role role;
    std::string name;  // The tenant's, for logs and shares; without one of the key's digest.
    // What tells its cache from others', the same in every run. 0: nothing, where the only tenant
    // has no name.
    uint64_t tenant = 0;
    std::string owner;  // Of what it makes here: a digest of the name.
  };
  size_t tenant_count() const { return tenant_names_.size(); }
  // As holders have them; REQUIRES: there are several.
  std::vector<uint64_t> tenants() const;
  // Nothing where it is no key.
  std::optional<Holder> find(std::string_view key) const;

 private:
  struct Entry {
    Sha256Digest digest;
    Holder holder;
    bool has_name;  // That of a tenant.
  };
  std::vector<Entry> entries_;
  std::set<std::string> tenant_names_;
};

// How often an address has shown wrong keys. Thread rule: one thread.
class FailureCounts {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int32_t kFailuresMax = 10;  // Of an address in a minute; then none is looked at.
  static constexpr std::chrono::seconds kSpan{60};

  bool is_blocked(const std::string& address, Clock::time_point now);
  void add(const std::string& address, Clock::time_point now);

 private:
  struct Count {
    int32_t failures = 0;
    Clock::time_point begin;
  };
  std::map<std::string, Count> counts_;
};

}  // namespace cairn::serve
