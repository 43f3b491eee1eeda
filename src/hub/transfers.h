// Requests under way, several at a time on one thread: one hop each, no redirect is followed and
// nothing is asked twice. Bounds the header of an answer; the sink bounds its body. Knows no hub.
// Only transfers.cpp includes libcurl for it. Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cairn::hub {

struct TransferOptions {
  std::string authority_path = {};  // Whose certificates are believed; empty: the system's.
  std::chrono::milliseconds connect_max{20'000};
  std::chrono::seconds stall_max{30};  // So long hardly a byte: the connection is given up.
};

// Status and fields of an answer; names in lower case.
struct Head {
  int status = 0;
  std::map<std::string, std::string> fields = {};

  // Empty where there is none.
  std::string_view field(const std::string& name) const;
};

struct ByteRange {
  uint64_t first = 0, last = 0;  // Both are wanted.
};

struct Request {
  std::string url;
  std::string accept = {};    // Empty: anything.
  std::string token = {};     // Shown as Authorization: Bearer; empty: none.
  std::string if_range = {};  // An ETag: the range only of this very file.
  std::optional<ByteRange> range = {};
};

enum class Trouble {
  none,
  connection,   // None was made, or it broke off, stalled, or ended early.
  certificate,  // The server's is not believed: nothing was asked.
  header,       // Too large, or no HTTP.
  enough,       // The sink wanted no more.
};

struct Outcome {
  uint64_t id = 0;
  Head head;
  Trouble trouble = Trouble::none;
  std::string what;  // Of the trouble, for people.
};

class Transfers {
 public:
  // Takes bytes of a body as they come; false: no more are wanted.
  using Sink = std::function<bool(const Head& head, std::string_view bytes)>;

  // Errors: not_found: the file of authorities; io.
  static Result<std::unique_ptr<Transfers>> make(const TransferOptions& options);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // REQUIRES: no other of this id runs.
  Status start(uint64_t id, const Request& request, Sink sink);
  // Works for so long, or until some have ended: these.
  Result<std::vector<Outcome>> wait(std::chrono::milliseconds time);
  size_t running() const { return running_.size(); }
  // Drops all that run; no sink is called again.
  void stop();

 private:
  struct Running;
  struct Engine;
  explicit Transfers(TransferOptions options, std::unique_ptr<Engine> engine);

  TransferOptions options_;
  std::unique_ptr<Engine> engine_;
  std::map<uint64_t, std::unique_ptr<Running>> running_;
};

}  // namespace cairn::hub
