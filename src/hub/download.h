// One file from a URL to the disk: in ranges, several at a time, where the server can; resumed
// where an earlier run was cut off; tried again where the way fails; under its name only when it is
// whole and what was declared. Knows no hub. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/web.h"

namespace cairn::hub {

struct RemoteFile {
  std::string name;  // For people.
  std::string url;
  uint64_t bytes = 0;  // As declared; 0: not declared.
  std::string sha256;  // As declared, in hex; empty: not declared.
};

struct DownloadOptions {
  int connections_max = 4;
  uint64_t chunk_bytes = uint64_t(16) << 20;
  bool wants_gguf = false;  // The first bytes must say so.
  // Of what this run has to fetch.
  std::function<void(uint64_t done, uint64_t total)> on_progress = {};
  // Of what is checked afterwards.
  std::function<void(uint64_t done, uint64_t total)> on_check = {};
};

struct Downloaded {
  std::string sha256;  // Of what is there.
  uint64_t bytes = 0;
  uint64_t resumed_bytes = 0;  // That an earlier run had fetched.
  std::string identity;        // As FileHead's.
};

// What a server says of a file that it has; the status decides whether that is one.
struct FileHead {
  Reply reply;
  bool has_ranges = false;
  uint64_t bytes = 0;    // 0: not said.
  std::string identity;  // The hub's name for the content, else its ETag; empty: none.
};
Result<FileHead> ask_head(Web& web, const WebUrl& url, const Credential& credential);

// Whom to ask for the words when a server refuses: hubs know more than a status says.
using ExplainStatus = std::function<Error(const Reply& reply)>;

// Errors: those of Web::get(); what `explain` says of a status; invalid_data: not what was declared
// (nothing is kept then); no_room: the disk; cancelled: another process fetches it.
Result<Downloaded> download(Web& web, const RemoteFile& file, const Credential& credential,
                            const std::string& path, const DownloadOptions& options,
                            const ExplainStatus& explain);

}  // namespace cairn::hub
