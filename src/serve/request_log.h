// A line of JSON for each request, without what was said in it. A reader of the log that does not
// read loses lines, and holds up nobody. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "serve/http/server.h"

namespace cairn::serve {

class RequestLog {
 public:
  // Adds to a file, which only its owner may read; "-" is standard output; empty: no log. Errors:
  // io.
  static Result<std::unique_ptr<RequestLog>> open(const std::string& path);
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void add(const http::Request& request, const http::Reply& reply,
           const http::Handler::Outcome& outcome);

 private:
  explicit RequestLog(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  uint64_t lost_count_ = 0;  // Since the last line that was written.
};

}  // namespace cairn::serve
