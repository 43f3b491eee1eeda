// Plain URLs are known here; the hubs have files of their own.
#include "hub/remote_model.h"

#include <fmt/core.h>

#include <utility>

#include "base/check.h"
#include "base/printable.h"

namespace cairn::hub {

Result<RemoteModel> find_at_url(const HubSettings& settings, const ModelReference& reference) {
  CAIRN_TRY(const WebUrl url, parse_url(reference.repo));
  CAIRN_TRY(const WebUrl hub, parse_url(settings.hub_url));
  const std::string path = url.path.substr(url.path.find_first_not_of('/') == std::string::npos
                                               ? url.path.size()
                                               : url.path.find_first_not_of('/'));
  if (!is_safe_path(path) || !path.ends_with(".gguf")) {
    return fail(ErrorCode::invalid_argument, "{}: expected the URL of a file NAME.gguf",
                printable(without_query(url)));
  }
  RemoteModel model{.reference = reference, .revision = {}};
  model.files.push_back({.name = without_query(url), .url = url.text});
  model.paths.push_back(path);
  model.credential = {.origin = hub.origin, .token = settings.token};
  model.explain = [name = without_query(url)](const Reply& reply) {
    const int status = reply.head.status;
    const ErrorCode code = status == 404 || status == 410 ? ErrorCode::not_found : ErrorCode::io;
    return fail(code, "{}: expected the file, found HTTP status {}", printable(name), status);
  };
  return model;
}

Result<RemoteModel> find_model(Web& web, const HubSettings& settings,
                               const ModelReference& reference, const FindOptions& options) {
  if (settings.is_offline) {
    return fail(ErrorCode::not_found,
                "{}: expected it on this machine, since HF_HUB_OFFLINE is set; found none",
                to_text(reference));
  }
  switch (reference.kind) {
    case SourceKind::hugging_face:
      return find_on_hugging_face(web, settings, reference, options);
    case SourceKind::ollama:
      return find_in_ollama_registry(web, settings, reference);
    case SourceKind::url:
      return find_at_url(settings, reference);
  }
  CHECK(false);
  return fail(ErrorCode::invalid_argument, "no such source");
}

}  // namespace cairn::hub
