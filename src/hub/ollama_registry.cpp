// Ollama's registry: a manifest lists layers by their digests, one of which is the GGUF file. Its
// template and parameters are other layers; cairn reads the model's own, which are in the file.
#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/sha256.h"
#include "hub/answers.h"
#include "hub/remote_model.h"

namespace cairn::hub {

namespace {

constexpr std::string_view kModel = "application/vnd.ollama.image.model";
constexpr std::string_view kProjector = "application/vnd.ollama.image.projector";
constexpr std::string_view kAdapter = "application/vnd.ollama.image.adapter";
constexpr std::string_view kManifestTypes =
    "application/vnd.docker.distribution.manifest.v2+json, "
    "application/vnd.oci.image.manifest.v1+json";

Error refused(const std::string& name, const std::string& registry, const Reply& reply) {
  const int status = reply.head.status;
  if (status == 404) {
    return fail(ErrorCode::not_found, "{}: expected a model of that name and tag on {}, found none",
                name, registry);
  }
  if (status == 401 || status == 403) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a public model on {}, found one that needs a login (HTTP status {})",
                name, registry, status);
  }
  return fail(ErrorCode::io, "{}: expected an answer of {}, found HTTP status {}", name, registry,
              status);
}

}  // namespace

Result<RemoteModel> find_in_ollama_registry(Web& web, const HubSettings& settings,
                                            const ModelReference& reference) {
  const std::string registry =
      reference.host.empty() ? settings.ollama_url : "https://" + reference.host;
  const std::string name = to_text(reference);
  const std::string base = fmt::format("{}/v2/{}", registry, reference.repo);
  CAIRN_TRY(const WebUrl url,
            parse_url(fmt::format("{}/manifests/{}", base, escape_path(reference.pick))));
  const Web::Ask ask{.accept = std::string(kManifestTypes), .bytes_max = kAnswerBytesMax};
  CAIRN_TRY(const Reply reply, web.get(url, {}, ask));
  if (reply.head.status != 200) return refused(name, registry, reply);
  CAIRN_TRY(const std::vector<ManifestLayer> layers, parse_manifest(reply.body));
  RemoteModel model{.reference = reference, .revision = hex_of(Sha256().add(reply.body).finish())};
  model.explain = [name, registry](const Reply& refusal) {
    return refused(name, registry, refusal);
  };
  for (const ManifestLayer& layer : layers) {
    if (layer.media_type == kProjector) model.left_out.emplace_back("a projector for pictures");
    if (layer.media_type == kAdapter) model.left_out.emplace_back("an adapter");
    if (layer.media_type != kModel) continue;
    model.files.push_back({.name = name,
                           .url = fmt::format("{}/blobs/sha256:{}", base, layer.sha256),
                           .bytes = layer.bytes,
                           .sha256 = layer.sha256});
    model.paths.push_back(reference.pick + ".gguf");
  }
  if (model.files.size() == 1) return model;
  return fail(ErrorCode::unsupported, "{}: expected one GGUF file among its {} layers, found {}",
              name, layers.size(), model.files.size());
}

}  // namespace cairn::hub
