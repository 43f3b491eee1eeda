// Asking a web server as a person would: redirects are followed, what passes is waited for, a token
// is shown to one origin only, whatever redirects say. Bodies are small here; large files come by
// download.h. Knows no hub. Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/patience.h"
#include "hub/transfers.h"
#include "hub/web_url.h"

namespace cairn::hub {

struct WebOptions {
  TransferOptions transfer = {};
  PatienceOptions patience = {};
};

// Who is asked for: shown to servers of the origin, over TLS or within this machine.
struct Credential {
  std::string origin, token;  // token empty: none.
};

struct Reply {
  Head head;
  Head first;        // Of the first answer, a redirect perhaps: hubs describe the file there.
  std::string body;  // Empty where only the head was wanted.
  WebUrl url;        // Behind all redirects.
};

class Web {
 public:
  static Result<std::unique_ptr<Web>> make(const WebOptions& options);

  struct Ask {
    std::string accept = {};
    std::optional<ByteRange> range = {};
    size_t bytes_max = 0;  // Of the body; 0: only the head is wanted, and the rest not read.
  };
  // Any answer that is no redirect and none that passes is a reply, whatever its status. Errors:
  // io: no connection, a redirect that does not end, or still "try later"; invalid_data: a
  // certificate or a header that is not believed; no_room: a longer body. REQUIRES: no transfer is
  // running.
  Result<Reply> get(const WebUrl& url, const Credential& credential, const Ask& ask);

  Transfers& transfers() { return *transfers_; }
  const WebOptions& options() const { return options_; }

 private:
  Web(WebOptions options, std::unique_ptr<Transfers> transfers)
      : options_(std::move(options)), transfers_(std::move(transfers)) {}
  Result<Outcome> ask_once(const Request& request, size_t bytes_max, std::string& body);
  Result<Outcome> ask_patiently(const Request& request, const WebUrl& url, size_t bytes_max,
                                std::string& body);

  WebOptions options_;
  std::unique_ptr<Transfers> transfers_;
};

// The token where the URL is of its origin and nobody on the way can read it; else nothing.
std::string token_for(const Credential& credential, const WebUrl& url);

// How long patience says to wait after a failure. Errors: io, in words: what was asked, how often,
// and what came.
Result<std::chrono::milliseconds> time_to_retry(Patience& patience, const WebUrl& url,
                                                const Outcome& outcome);
// The same, and waits.
Status wait_to_retry(Patience& patience, const WebUrl& url, const Outcome& outcome);

// For people: "HTTP status 429", or what went wrong before there was one.
std::string describe(const Outcome& outcome);

}  // namespace cairn::hub
