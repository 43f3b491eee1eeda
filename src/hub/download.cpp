// Ranges are as many as connections; each goes on from its last byte when it is cut off. Where a
// signed address behind a redirect has expired, the way there is asked for again.
#include "hub/download.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "hub/answers.h"
#include "hub/partial_file.h"

namespace cairn::hub {

namespace {

constexpr std::chrono::milliseconds kWait(100);

std::string unquoted(std::string_view text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

Error changed(const RemoteFile& file) {
  return fail(ErrorCode::invalid_data, "{}: the file has changed while it was fetched; try again",
              printable(file.name));
}

class Download {
 public:
  Download(Web* web, const RemoteFile* file, const Credential* credential,
           const DownloadOptions* options, const ExplainStatus* explain)
      : web_(*web),
        file_(*file),
        credential_(*credential),
        options_(*options),
        explain_(*explain),
        patience_(web->options().patience) {}
  // Sinks point into this object.
  ~Download() { web_.transfers().stop(); }
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  Result<Downloaded> run(const std::string& path);

 private:
  using Clock = std::chrono::steady_clock;
  struct Chunk {
    size_t number = 0;
    uint64_t at = 0, end = 0;
    Clock::time_point started = {};
    Status status = Ok{};  // Of the disk, or of what came.
  };

  Status find();
  Status find_again();
  Status fetch_ranges(PartialFile& partial);
  Status fetch_whole(PartialFile& partial, uint64_t& bytes);
  Status start(Chunk chunk, PartialFile& partial);
  bool is_of_another(const Head& part) const;
  Status check_range(const Head& head, const Chunk& chunk) const;
  Status end(const Outcome& outcome, PartialFile& partial);
  Status retry(const Outcome& outcome, Clock::time_point started);
  Status check(const PartialFile& partial, Downloaded& done) const;
  void tell(uint64_t done, uint64_t total) const {
    if (options_.on_progress) options_.on_progress(done, total);
  }

  Web& web_;
  const RemoteFile& file_;
  const Credential& credential_;
  const DownloadOptions& options_;
  const ExplainStatus& explain_;
  Patience patience_;
  WebUrl url_;
  FileHead head_;
  std::deque<Chunk> waiting_;
  std::map<uint64_t, Chunk> running_;  // By the transfer's id, which is the chunk's number.
  uint64_t fetched_ = 0;
  size_t connections_max_ = 1;
  bool needs_find_ = false;
  Clock::time_point last_failure_ = {}, not_before_ = {};  // Nothing is started earlier.
};

// Where the file is now, and that it is the one that was declared.
Status Download::find() {
  CAIRN_TRY(url_, parse_url(file_.url));
  const std::string before = head_.identity;
  CAIRN_TRY(head_, ask_head(web_, url_, credential_));
  const int status = head_.reply.head.status;
  if (status != 200 && status != 206) return explain_(head_.reply);
  if (!before.empty() && before != head_.identity) return changed(file_);
  if (file_.bytes > 0 && head_.bytes > 0 && file_.bytes != head_.bytes) {
    return fail(ErrorCode::invalid_data, "{}: expected {} bytes, as is declared, found {}",
                printable(file_.name), file_.bytes, head_.bytes);
  }
  return Ok{};
}

// Whether a part says that it is of another content than the first answer was. A digest tells more
// than what servers say, who may spell one file differently. Many have no ETag that If-Range takes,
// and some do not look at If-Range.
bool Download::is_of_another(const Head& part) const {
  if (!file_.sha256.empty()) return false;
  for (const char* const name : {"etag", "last-modified"}) {
    const std::string_view before = head_.reply.head.field(name), now = part.field(name);
    if (!before.empty() && !now.empty()) return unquoted(before) != unquoted(now);
  }
  return false;
}

// The way is asked for alone; the others go on from where they were.
Status Download::find_again() {
  needs_find_ = false;
  web_.transfers().stop();
  for (auto& [id, chunk] : running_) waiting_.push_back(std::move(chunk));
  running_.clear();
  return find();
}

Status Download::check_range(const Head& head, const Chunk& chunk) const {
  CAIRN_TRY(const ContentRange range, parse_content_range(head.field("content-range")));
  if (range.total != head_.bytes || is_of_another(head)) return changed(file_);
  if (range.first == chunk.at && range.last == chunk.end - 1) return Ok{};
  return fail(ErrorCode::invalid_data, "{}: expected bytes {}-{}, found {}-{}",
              printable(file_.name), chunk.at, chunk.end - 1, range.first, range.last);
}

Status Download::start(Chunk chunk, PartialFile& partial) {
  const uint64_t id = chunk.number;
  chunk.started = Clock::now();
  const auto [place, is_new] = running_.emplace(id, std::move(chunk));
  CHECK(is_new);
  Chunk* const kept = &place->second;
  bool is_checked = false;
  const auto take = [this, kept, &partial, is_checked](const Head& head,
                                                       std::string_view bytes) mutable {
    if (head.status != 206) return false;
    if (!is_checked) kept->status = check_range(head, *kept);
    is_checked = true;
    if (kept->status && bytes.size() > kept->end - kept->at) {
      kept->status = fail(ErrorCode::invalid_data, "{}: expected {} bytes, found more",
                          printable(file_.name), kept->end - kept->at);
    }
    if (kept->status) kept->status = partial.write(kept->at, std::as_bytes(std::span(bytes)));
    if (!kept->status) return false;
    kept->at += bytes.size();
    fetched_ += bytes.size();
    patience_.succeed();
    return true;
  };
  const std::string etag(head_.reply.head.field("etag"));
  return web_.transfers().start(id,
                                {.url = head_.reply.url.text,
                                 .token = token_for(credential_, head_.reply.url),
                                 .if_range = etag.starts_with('"') ? etag : "",
                                 .range = ByteRange{.first = kept->at, .last = kept->end - 1}},
                                take);
}

// What failed waits, and is asked for by fewer connections; those that do not fail go on meanwhile.
// Several that fail at once are one failure.
Status Download::retry(const Outcome& outcome, Clock::time_point started) {
  const int status = outcome.head.status;
  needs_find_ |= status == 401 || status == 403 || status == 404 || status == 410;
  if (started <= last_failure_) return Ok{};
  connections_max_ = std::max<size_t>(connections_max_ / 2, 1);
  CAIRN_TRY(const std::chrono::milliseconds wait,
            time_to_retry(patience_, head_.reply.url, outcome));
  last_failure_ = Clock::now();
  not_before_ = last_failure_ + wait;
  return Ok{};
}

Status Download::end(const Outcome& outcome, PartialFile& partial) {
  const auto found = running_.find(outcome.id);
  CHECK(found != running_.end());
  Chunk chunk = std::move(found->second);
  running_.erase(found);
  CAIRN_TRY(chunk.status);
  if (chunk.at == chunk.end) return partial.finish_chunk(chunk.number);
  const Clock::time_point started = chunk.started;
  waiting_.push_front(std::move(chunk));
  const int status = outcome.head.status;
  if (outcome.trouble == Trouble::certificate || outcome.trouble == Trouble::header) {
    return fail(ErrorCode::invalid_data, "{}: {}", printable(head_.reply.url.origin), outcome.what);
  }
  if (outcome.trouble != Trouble::connection && (status == 200 || status == 412)) {
    return changed(file_);  // The server's answer to an If-Range that does not hold.
  }
  const bool is_signed = head_.reply.url.text != url_.text;
  const bool may_pass =
      outcome.trouble == Trouble::connection || is_passing(status) || status == 206 || is_signed;
  if (!may_pass) {
    return explain_({.head = outcome.head, .first = {}, .body = {}, .url = head_.reply.url});
  }
  return retry(outcome, started);
}

Status Download::fetch_ranges(PartialFile& partial) {
  for (size_t number = 0; number < partial.chunk_count(); ++number) {
    if (partial.is_done(number)) continue;
    waiting_.push_back(
        {.number = number, .at = partial.chunk_begin(number), .end = partial.chunk_end(number)});
  }
  const uint64_t total = head_.bytes - partial.done_bytes();
  connections_max_ = size_t(std::max(options_.connections_max, 1));
  while (!waiting_.empty() || !running_.empty()) {
    const bool may_start = Clock::now() >= not_before_;
    if (may_start && needs_find_) CAIRN_TRY(find_again());
    while (may_start && !waiting_.empty() && running_.size() < connections_max_) {
      Chunk chunk = std::move(waiting_.front());
      waiting_.pop_front();
      CAIRN_TRY(start(std::move(chunk), partial));
    }
    const auto until_start =
        std::chrono::duration_cast<std::chrono::milliseconds>(not_before_ - Clock::now());
    const auto wait = std::clamp(until_start, std::chrono::milliseconds(1), kWait);
    CAIRN_TRY(const std::vector<Outcome> ended,
              web_.transfers().wait(running_.empty() ? wait : kWait));
    for (const Outcome& outcome : ended) CAIRN_TRY(end(outcome, partial));
    tell(fetched_, total);
  }
  return Ok{};
}

// A server that gives no parts: from the beginning each time.
Status Download::fetch_whole(PartialFile& partial, uint64_t& bytes) {
  for (;;) {
    bytes = 0;
    Status status = Ok{};
    const uint64_t bytes_max = head_.bytes > 0 ? head_.bytes : uint64_t(1) << 50;
    const auto take = [&](const Head& head, std::string_view piece) {
      if (head.status != 200) return false;
      if (piece.size() > bytes_max - bytes) {
        status = fail(ErrorCode::invalid_data, "{}: expected {} bytes, found more",
                      printable(file_.name), bytes_max);
      }
      if (status) status = partial.write(bytes, std::as_bytes(std::span(piece)));
      bytes += piece.size();
      return bool(status);
    };
    const Request request{.url = head_.reply.url.text,
                          .token = token_for(credential_, head_.reply.url)};
    CAIRN_TRY(web_.transfers().start(0, request, take));
    std::vector<Outcome> ended;
    while (ended.empty()) {
      CAIRN_TRY(ended, web_.transfers().wait(kWait));
      tell(bytes, head_.bytes);
    }
    CAIRN_TRY(status);
    const Outcome& outcome = ended.front();
    if (outcome.trouble == Trouble::none && outcome.head.status == 200) break;
    const bool may_pass = outcome.trouble == Trouble::connection || is_passing(outcome.head.status);
    if (!may_pass) {
      return fail(ErrorCode::io, "{}: expected the file, found {}", printable(file_.name),
                  describe(outcome));
    }
    CAIRN_TRY(wait_to_retry(patience_, head_.reply.url, outcome));
  }
  if (head_.bytes == 0 || head_.bytes == bytes) return Ok{};
  return fail(ErrorCode::invalid_data, "{}: expected {} bytes, found {}", printable(file_.name),
              head_.bytes, bytes);
}

// That all of it is what was declared.
Status Download::check(const PartialFile& partial, Downloaded& done) const {
  constexpr std::string_view kMagic = "GGUF";
  if (file_.bytes > 0 && file_.bytes != done.bytes) {
    return fail(ErrorCode::invalid_data, "{}: expected {} bytes, as is declared, found {}",
                printable(file_.name), file_.bytes, done.bytes);
  }
  CAIRN_TRY(const std::string begin, partial.beginning(16));
  if (options_.wants_gguf && !begin.starts_with(kMagic)) {
    return fail(ErrorCode::invalid_data,
                "{}: expected a GGUF file, found one that begins with \"{}\"",
                printable(file_.name), printable(begin));
  }
  CAIRN_TRY(done.sha256, partial.sha256(done.bytes, options_.on_check));
  if (file_.sha256.empty() || file_.sha256 == done.sha256) return Ok{};
  return fail(ErrorCode::invalid_data,
              "{}: expected SHA-256 {}, as is declared, found {}; nothing of it is kept",
              printable(file_.name), file_.sha256, done.sha256);
}

Result<Downloaded> Download::run(const std::string& path) {
  CAIRN_TRY(find());
  if (head_.bytes == 0) head_.bytes = file_.bytes;
  const bool is_ranged = head_.has_ranges && head_.bytes > 0;
  // A digest is the content; an ETag is believed for as long as one server gives it.
  const std::string identity = !file_.sha256.empty() ? file_.sha256
                               : head_.identity.empty()
                                   ? ""
                                   : fmt::format("{} {}", file_.url, head_.identity);
  CAIRN_TRY(PartialFile partial,
            PartialFile::open(path, {.bytes = head_.bytes,
                                     .chunk_bytes = is_ranged ? options_.chunk_bytes : 0,
                                     .identity = identity}));
  Downloaded done{.sha256 = {},
                  .bytes = head_.bytes,
                  .resumed_bytes = partial.done_bytes(),
                  .identity = head_.identity};
  if (is_ranged) {
    CAIRN_TRY(fetch_ranges(partial));
  } else {
    CAIRN_TRY(fetch_whole(partial, done.bytes));
  }
  if (const Status checked = check(partial, done); !checked) {
    CAIRN_TRY(partial.discard());
    return checked.error();
  }
  CAIRN_TRY(partial.commit(done.bytes));
  return done;
}

}  // namespace

// One byte is asked for, because addresses that are signed for GET know no HEAD.
Result<FileHead> ask_head(Web& web, const WebUrl& url, const Credential& credential) {
  FileHead head;
  CAIRN_TRY(head.reply, web.get(url, credential, {.range = ByteRange{0, 0}}));
  const Head& last = head.reply.head;
  const Head& first = head.reply.first;
  head.has_ranges = last.status == 206;
  if (head.has_ranges) {
    CAIRN_TRY(const ContentRange range, parse_content_range(last.field("content-range")));
    head.bytes = range.total;
  } else if (last.status == 200 && !last.field("content-length").empty()) {
    CAIRN_TRY(head.bytes, parse_count("Content-Length", last.field("content-length")));
  }
  for (const std::string_view etag :
       {first.field("x-linked-etag"), first.field("etag"), last.field("etag")}) {
    if (head.identity.empty()) head.identity = unquoted(etag);
  }
  return head;
}

Result<Downloaded> download(Web& web, const RemoteFile& file, const Credential& credential,
                            const std::string& path, const DownloadOptions& options,
                            const ExplainStatus& explain) {
  return Download(&web, &file, &credential, &options, &explain).run(path);
}

}  // namespace cairn::hub
