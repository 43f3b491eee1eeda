// libcurl's multi interface: it polls the sockets, and calls back with lines of headers and pieces
// of bodies. HTTP/1.1 alone: each range has a connection of its own.
#include "hub/transfers.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/output_file.h"
#include "base/printable.h"

namespace cairn::hub {

namespace {

constexpr size_t kHeaderBytesMax = size_t(64) << 10;
constexpr long kStallBytes = 64;  // In a second; less is a stall.

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin));
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return out;
}

bool is_about_certificate(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_ISSUER_ERROR ||
         code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM;
}

bool is_about_header(CURLcode code) {
  // What it says of a line of more than 100 KB.
  return code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY ||
         code == CURLE_OUT_OF_MEMORY;
}

}  // namespace

std::string_view Head::field(const std::string& name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

struct Transfers::Engine {
  CURLM* multi = nullptr;
  ~Engine() {
    if (multi != nullptr) curl_multi_cleanup(multi);
    curl_global_cleanup();
  }
};

struct Transfers::Running {
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
  curl_slist* headers = nullptr;
  uint64_t id = 0;
  Sink sink;
  Head head;
  size_t header_bytes = 0;
  bool is_enough = false, is_header_too_large = false;
  char error[CURL_ERROR_SIZE] = "";

  ~Running() {
    if (easy != nullptr) {
      curl_multi_remove_handle(multi, easy);
      curl_easy_cleanup(easy);
    }
    curl_slist_free_all(headers);
  }

  // A line of the header. Lines of an answer before the last one (100, a proxy's) are forgotten.
  static size_t take_header(char* data, size_t, size_t count, void* self) {
    auto* const running = static_cast<Running*>(self);
    const std::string_view line(data, count);
    running->header_bytes += count;
    if (running->header_bytes > kHeaderBytesMax) {
      running->is_header_too_large = true;
      return 0;
    }
    if (line.starts_with("HTTP/")) {
      long status = 0;
      curl_easy_getinfo(running->easy, CURLINFO_RESPONSE_CODE, &status);
      running->head = {.status = int(status)};
      return count;
    }
    const size_t colon = line.find(':');
    if (colon != line.npos) {
      running->head.fields[lower(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
    }
    return count;
  }

  static size_t take_body(char* data, size_t, size_t count, void* self) {
    auto* const running = static_cast<Running*>(self);
    if (running->sink(running->head, {data, count})) return count;
    running->is_enough = true;
    return CURL_WRITEFUNC_ERROR;
  }

  Outcome outcome(CURLcode code) const {
    Outcome ended{.id = id, .head = head, .trouble = Trouble::none, .what = {}};
    if (code == CURLE_OK) return ended;
    ended.what = printable(error[0] != '\0' ? error : curl_easy_strerror(code));
    if (is_enough) {
      ended.trouble = Trouble::enough;
    } else if (is_header_too_large) {
      ended.trouble = Trouble::header;
      ended.what =
          fmt::format("expected a header of at most {} bytes, found more", kHeaderBytesMax);
    } else if (is_about_certificate(code)) {
      ended.trouble = Trouble::certificate;
    } else {
      ended.trouble = is_about_header(code) ? Trouble::header : Trouble::connection;
    }
    return ended;
  }
};

Transfers::Transfers(TransferOptions options, std::unique_ptr<Engine> engine)
    : options_(std::move(options)), engine_(std::move(engine)) {}

Transfers::~Transfers() {
  stop();
}

Result<std::unique_ptr<Transfers>> Transfers::make(const TransferOptions& options) {
  if (!options.authority_path.empty() && !identity_of(options.authority_path)) {
    return fail(ErrorCode::not_found, "{}: expected a file of certificates, found none",
                options.authority_path);
  }
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return fail(ErrorCode::io, "libcurl: cannot be started");
  }
  auto engine = std::make_unique<Engine>();
  engine->multi = curl_multi_init();
  if (engine->multi == nullptr) return fail(ErrorCode::memory_full, "libcurl: no memory");
  return std::unique_ptr<Transfers>(new Transfers(options, std::move(engine)));
}

Status Transfers::start(uint64_t id, const Request& request, Sink sink) {
  CHECK(running_.count(id) == 0);
  auto running = std::make_unique<Running>();
  running->id = id;
  running->sink = std::move(sink);
  running->multi = engine_->multi;
  CURL* const easy = running->easy = curl_easy_init();
  if (easy == nullptr) return fail(ErrorCode::memory_full, "libcurl: no memory");
  const auto add_header = [&](const std::string& line) {
    running->headers = curl_slist_append(running->headers, line.c_str());
  };
  if (!request.accept.empty()) add_header("Accept: " + request.accept);
  if (!request.token.empty()) add_header("Authorization: Bearer " + request.token);
  if (!request.if_range.empty()) add_header("If-Range: " + request.if_range);
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, long(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, long(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "cairn/" CAIRN_VERSION);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, long(options_.connect_max.count()));
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, kStallBytes);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, long(options_.stall_max.count()));
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, running->headers);
  if (!options_.authority_path.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, options_.authority_path.c_str());
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  if (request.range) {
    const std::string range = fmt::format("{}-{}", request.range->first, request.range->last);
    curl_easy_setopt(easy, CURLOPT_RANGE, range.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, Running::take_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, running.get());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, Running::take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, running.get());
  curl_easy_setopt(easy, CURLOPT_PRIVATE, running.get());
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, running->error);
  if (const CURLMcode code = curl_multi_add_handle(engine_->multi, easy); code != CURLM_OK) {
    return fail(ErrorCode::io, "libcurl: {}", curl_multi_strerror(code));
  }
  running_.emplace(id, std::move(running));
  return Ok{};
}

Result<std::vector<Outcome>> Transfers::wait(std::chrono::milliseconds time) {
  int still_running = 0;
  CURLMcode code = curl_multi_perform(engine_->multi, &still_running);
  if (code == CURLM_OK && size_t(still_running) == running_.size()) {
    code = curl_multi_poll(engine_->multi, nullptr, 0, int(time.count()), nullptr);
    if (code == CURLM_OK) code = curl_multi_perform(engine_->multi, &still_running);
  }
  if (code != CURLM_OK) return fail(ErrorCode::io, "libcurl: {}", curl_multi_strerror(code));
  std::vector<Outcome> ended;
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(engine_->multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Running* running = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &running);
    ended.push_back(running->outcome(message->data.result));
  }
  for (const Outcome& outcome : ended) running_.erase(outcome.id);
  return ended;
}

void Transfers::stop() {
  running_.clear();
}

}  // namespace cairn::hub
