// libcurl reads the dates of HTTP.
#include "hub/patience.h"

#include <curl/curl.h>

#include <algorithm>
#include <string>

namespace cairn::hub {

namespace {

// Seconds that a server asks to wait; nothing where it does not say.
std::optional<int64_t> asked_seconds(const Head& head, int64_t now) {
  const std::string text(head.field("retry-after"));
  if (text.empty()) return std::nullopt;
  const bool is_number = text.size() <= 9 && std::all_of(text.begin(), text.end(), [](char c) {
                           return c >= '0' && c <= '9';
                         });
  if (is_number) return std::stoll(text);
  const int64_t date = curl_getdate(text.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return std::max<int64_t>(date - now, 0);
}

}  // namespace

std::optional<std::chrono::milliseconds> Patience::wait_after(const Head& head, int64_t now) {
  if (++failure_count_ > options_.failures_max) return std::nullopt;
  const auto asked = asked_seconds(head, now);
  if (asked && *asked > 0) {
    if (*asked > options_.asked_max.count()) return std::nullopt;
    return std::chrono::milliseconds(*asked * 1000);
  }
  const int doublings = std::min(failure_count_ - 1, 20);
  return std::min(options_.wait_first * (int64_t(1) << doublings), options_.wait_max);
}

bool is_passing(int status) {
  return status == 408 || status == 425 || status == 429 || status == 500 || status == 502 ||
         status == 503 || status == 504;
}

}  // namespace cairn::hub
