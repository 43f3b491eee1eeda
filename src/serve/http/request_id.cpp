// Which ids of clients are taken, and those of one's own.
#include "serve/http/request_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace cairn::serve::http {

std::string request_id(const RequestHead& head) {
  const std::string* const wished = head.find("x-request-id");
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (wished != nullptr && !wished->empty() && wished->size() <= 128 &&
      std::all_of(wished->begin(), wished->end(), is_plain)) {
    return *wished;
  }
  std::random_device device;
  return fmt::format("req-{:08x}{:08x}", device(), device());
}

}  // namespace cairn::serve::http
