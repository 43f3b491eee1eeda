// GET /, /page/*. Nothing of it is secret: it has no key, its requests do.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "serve/page/page_files.h"
#include "serve/refusal.h"
#include "serve/routes/routes.h"

namespace cairn::serve {

namespace {

// Scripts and styles are this server's own files, nothing else is loaded or asked, nobody shows the
// page in a frame, and no text becomes markup.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

std::string_view type_of(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".svg", "image/svg+xml"},
  };
  for (const auto& [ending, type] : kTypes) {
    if (name.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

// The name of a file's content, by which a browser asks whether it has changed.
const std::string& tag_of(size_t file) {
  static const std::vector<std::string> tags = [] {
    std::vector<std::string> made;
    for (const PageFile& each : page_files()) {
      const std::string digest = hex_of(Sha256().add(each.bytes).finish());
      made.push_back(fmt::format("\"{}\"", std::string_view(digest).substr(0, 32)));
    }
    return made;
  }();
  return tags[file];
}

}  // namespace

std::unique_ptr<http::Reply> get_page(const ServerContext&, http::Request& request) {
  constexpr std::string_view kFolder = "/page/";
  const std::string_view path = request.head.path;
  const std::string_view name = path == "/" ? "index.html" : path.substr(kFolder.size());
  for (size_t file = 0; file < page_files().size(); ++file) {
    const PageFile& found = page_files()[file];
    if (found.name != name) continue;
    http::ReplyHead head{.content_type = std::string(type_of(name)),
                         .headers = {{"etag", tag_of(file)},
                                     {"cache-control", "no-cache"},
                                     {"content-security-policy", std::string(kPolicy)},
                                     {"referrer-policy", "no-referrer"},
                                     {"cross-origin-opener-policy", "same-origin"},
                                     {"cross-origin-resource-policy", "same-origin"}}};
    const std::string* const known = request.head.find("if-none-match");
    if (known != nullptr && known->find(tag_of(file)) != known->npos) {
      head.status = 304;
      head.content_type.clear();
      return std::make_unique<http::WholeReply>(std::move(head), "");
    }
    return std::make_unique<http::WholeReply>(std::move(head), std::string(found.bytes));
  }
  return refusal_reply({.status = 404,
                        .type = "not_found_error",
                        .message = "path: expected one of those in /openapi.json"});
}

}  // namespace cairn::serve
