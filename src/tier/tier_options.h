// What a tier is and how it is used, as people say it. Thread-safe: values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cairn::tier {

// What is sent to the tier of what a machine has computed.
enum class Publishing : uint8_t {
  // What was used twice, what another machine waits for, and what somebody asked to be kept; all
  // while the tier has room.
  second_use,
  all,      // Every prompt, and every answer when its turn has ended.
  nothing,  // Only reads.
};

// When a prefix that the tier has is fetched.
enum class Fetching : uint8_t {
  cheaper,  // Where that takes less time than computing it.
  always,
};

struct TierTimes {
  // A server that answers is near: what takes longer costs less when it is computed.
  std::chrono::milliseconds connect{50};
  std::chrono::milliseconds look_up{50};
  std::chrono::milliseconds first_fetch{2000};  // While nobody knows how fast the server is.
  std::chrono::milliseconds write{2000};        // Of one record; nobody waits for it.
  std::chrono::seconds kept{1800};              // Without use.
};

// How records are lent to other machines, and borrowed from them.
struct PeerOptions {
  std::string listen;   // HOST:PORT, by numbers; empty: nothing is lent or borrowed.
  std::string address;  // As others see it; empty: the same.
  uint64_t bytes_per_second = 250'000'000;  // That are lent at most.
  // TLS: this machine's certificate and its key, in PEM; empty: none. Whose certificates are
  // believed, empty: the system's; and for which name, empty: the address where a machine is found.
  std::string certificate_path, tls_key_path, authority_path, name;
};

struct TierOptions {
  // redis://HOST[:PORT], rediss://HOST[:PORT] (TLS), unix:PATH; empty: none.
  std::string url;
  std::string login_file;      // "USER:PASSWORD" or "PASSWORD"; empty: none is needed.
  std::string key_file;        // The secret of those who share the tier; empty: they have none.
  std::string authority_path;  // Certificates that are believed; empty: the system's.
  Publishing publishing = Publishing::second_use;
  Fetching fetching = Fetching::cheaper;
  bool uses_leases = true;  // Machines tell each other what they compute.
  TierTimes times;
  PeerOptions peers;
};

}  // namespace cairn::tier
