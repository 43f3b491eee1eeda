// Ranges that double, until the reader of headers has all that it wants.
#include "hub/remote_header.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/printable.h"
#include "gguf/part.h"
#include "hub/remote_model.h"

namespace cairn::hub {

namespace {

// Vocabularies make headers of 5 to 20 MiB; others are small.
constexpr uint64_t kFirstBytes = uint64_t(1) << 20;
constexpr uint64_t kBytesMax = uint64_t(256) << 20;

Status has_whole_header(const std::string& bytes) {
  gguf::Problems problems;
  Result<gguf::Part> part =
      gguf::read_part(std::as_bytes(std::span(bytes)), gguf::OpenMode::inspect, problems);
  if (!part) return std::move(part).error();
  return Ok{};
}

Result<std::string> fetch_range(Web& web, const RemoteModel& model, const RemoteFile& file,
                                ByteRange range) {
  CAIRN_TRY(const WebUrl url, parse_url(file.url));
  const Web::Ask ask{.range = range, .bytes_max = size_t(range.last - range.first + 1)};
  CAIRN_TRY(Reply reply, web.get(url, model.credential, ask));
  if (reply.head.status == 206) return std::move(reply.body);
  // A file that is shorter than the range may come whole.
  if (reply.head.status == 200 && range.first == 0) return std::move(reply.body);
  if (reply.head.status == 200) {
    return fail(ErrorCode::io, "{}: expected a server that gives ranges, found one that does not",
                printable(file.name));
  }
  return model.explain(reply);
}

Result<std::string> fetch_header_of(Web& web, const RemoteModel& model, const RemoteFile& file) {
  std::string bytes;
  for (uint64_t wanted = kFirstBytes;; wanted *= 2) {
    if (file.bytes > 0) wanted = std::min(wanted, file.bytes);
    CAIRN_TRY(const std::string more,
              fetch_range(web, model, file, {.first = bytes.size(), .last = wanted - 1}));
    bytes += more;
    const bool is_all = more.empty() || bytes.size() < wanted || bytes.size() == file.bytes;
    Status whole = has_whole_header(bytes);
    if (whole) return bytes;
    if (!is_all && wanted < kBytesMax) continue;
    return fail(ErrorCode::invalid_data, "{}: {}", printable(file.name), whole.error().message);
  }
}

}  // namespace

Result<RemoteHeader> fetch_header(const HubSettings& settings, const ModelReference& reference,
                                  const WebOptions& options) {
  WebOptions web_options = options;
  web_options.transfer.authority_path = settings.authority_path;
  CAIRN_TRY(const std::unique_ptr<Web> web, Web::make(web_options));
  CAIRN_TRY(const RemoteModel model, find_model(*web, settings, reference, {}));
  RemoteHeader header{.name = to_text(model.reference)};
  for (const RemoteFile& file : model.files) {
    CAIRN_TRY(std::string part, fetch_header_of(*web, model, file));
    header.fetched_bytes += part.size();
    header.parts.push_back(std::move(part));
  }
  return header;
}

}  // namespace cairn::hub
