// Redirects are followed here and not by libcurl, so that one place decides who sees the token.
#include "hub/web.h"

#include <fmt/core.h>

#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "base/quantities.h"

namespace cairn::hub {

namespace {

constexpr int kRedirectsMax = 8;
constexpr uint64_t kOnlyId = 0;
constexpr std::chrono::milliseconds kWait(200);

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

std::string token_for(const Credential& credential, const WebUrl& url) {
  const bool is_private = url.is_secure || url.is_here;
  return is_private && url.origin == credential.origin ? credential.token : std::string();
}

std::string describe(const Outcome& outcome) {
  if (outcome.trouble != Trouble::none && outcome.trouble != Trouble::enough) return outcome.what;
  return fmt::format("HTTP status {}", outcome.head.status);
}

Result<std::chrono::milliseconds> time_to_retry(Patience& patience, const WebUrl& url,
                                                const Outcome& outcome) {
  const auto wait = patience.wait_after(outcome.head, std::time(nullptr));
  if (!wait) {
    const std::string_view asked = outcome.head.field("retry-after");
    return fail(ErrorCode::io, "{}: expected an answer, found {} after {} attempts{}",
                printable(without_query(url)), describe(outcome), patience.failure_count(),
                asked.empty() ? "" : fmt::format(" (Retry-After: {})", printable(asked)));
  }
  log::info("{}: {}; once more in {}", printable(without_query(url)), describe(outcome),
            show_seconds(double(wait->count()) / 1000));
  return *wait;
}

Status wait_to_retry(Patience& patience, const WebUrl& url, const Outcome& outcome) {
  CAIRN_TRY(const std::chrono::milliseconds wait, time_to_retry(patience, url, outcome));
  std::this_thread::sleep_for(wait);
  return Ok{};
}

Result<std::unique_ptr<Web>> Web::make(const WebOptions& options) {
  CAIRN_TRY(std::unique_ptr<Transfers> transfers, Transfers::make(options.transfer));
  return std::unique_ptr<Web>(new Web(options, std::move(transfers)));
}

Result<Outcome> Web::ask_once(const Request& request, size_t bytes_max, std::string& body) {
  CHECK(transfers_->running() == 0);
  body.clear();
  bool is_too_long = false;
  const auto keep = [&](const Head&, std::string_view bytes) {
    if (bytes_max == 0) return false;
    is_too_long = bytes.size() > bytes_max - body.size();
    if (!is_too_long) body += bytes;
    return !is_too_long;
  };
  CAIRN_TRY(transfers_->start(kOnlyId, request, keep));
  for (;;) {
    CAIRN_TRY(std::vector<Outcome> ended, transfers_->wait(kWait));
    if (ended.empty()) continue;
    if (!is_too_long) return std::move(ended.front());
    return fail(ErrorCode::no_room, "{}: expected an answer of at most {} bytes, found more",
                printable(request.url.substr(0, request.url.find('?'))), bytes_max);
  }
}

Result<Outcome> Web::ask_patiently(const Request& request, const WebUrl& url, size_t bytes_max,
                                   std::string& body) {
  Patience patience(options_.patience);
  for (;;) {
    CAIRN_TRY(Outcome outcome, ask_once(request, bytes_max, body));
    if (outcome.trouble == Trouble::certificate || outcome.trouble == Trouble::header) {
      return fail(ErrorCode::invalid_data, "{}: {}", printable(url.origin), outcome.what);
    }
    const bool has_come = outcome.trouble == Trouble::none || outcome.trouble == Trouble::enough;
    if (has_come && !is_passing(outcome.head.status)) return outcome;
    CAIRN_TRY(wait_to_retry(patience, url, outcome));
  }
}

Result<Reply> Web::get(const WebUrl& url, const Credential& credential, const Ask& ask) {
  Reply reply{.head = {}, .first = {}, .body = {}, .url = url};
  for (int hop = 0; hop <= kRedirectsMax; ++hop) {
    const Request request{.url = reply.url.text,
                          .accept = ask.accept,
                          .token = token_for(credential, reply.url),
                          .range = ask.range};
    CAIRN_TRY(Outcome outcome, ask_patiently(request, reply.url, ask.bytes_max, reply.body));
    if (hop == 0) reply.first = outcome.head;
    reply.head = std::move(outcome.head);
    const std::string_view location = reply.head.field("location");
    if (!is_redirect(reply.head.status) || location.empty()) return reply;
    CAIRN_TRY(reply.url, follow_url(reply.url, location));
  }
  return fail(ErrorCode::io, "{}: expected at most {} redirects, found more",
              printable(without_query(url)), kRedirectsMax);
}

}  // namespace cairn::hub
