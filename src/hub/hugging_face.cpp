// Hugging Face's HTTP interface: a model's info names its commit, the tree of that commit its
// files, and "resolve" leads to each. Everything is asked of one commit, so that parts fit each
// other.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "hub/answers.h"
#include "hub/remote_model.h"

namespace cairn::hub {

namespace {

constexpr int kPagesMax = 100;
constexpr size_t kFilesMax = 100'000;

// What is asked of one repository.
struct Repository {
  std::string hub_url, name, revision;
  Credential credential;
  std::string token_source;

  std::string api(std::string_view path) const {
    return fmt::format("{}/api/models/{}{}", hub_url, name, path);
  }
};

Error refused(const Repository& repository, const Reply& reply) {
  const std::string_view code = reply.head.field("x-error-code");
  const std::string_view said = reply.head.field("x-error-message");
  const std::string words = said.empty() ? "" : fmt::format(" ({})", printable(said));
  const int status = reply.head.status;
  if (code == "GatedRepo") {
    return fail(ErrorCode::invalid_argument,
                "{}: its licence has to be accepted first: open {}/{} in a browser, accept it, and "
                "set HF_TOKEN to a token of yours{}",
                repository.name, repository.hub_url, repository.name, words);
  }
  if ((status == 401 || status == 403) && repository.credential.token.empty()) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a public repository, found none: it is private, or nothing has that "
                "name; for a private one set HF_TOKEN to a token of yours{}",
                repository.name, words);
  }
  if (status == 401 || status == 403) {
    return fail(ErrorCode::invalid_argument,
                "{}: the token of {} may not read it, or nothing has that name (HTTP status {}){}",
                repository.name, repository.token_source, status, words);
  }
  const ErrorCode kind = status == 404 || status == 410 ? ErrorCode::not_found : ErrorCode::io;
  return fail(kind, "{}: expected an answer, found HTTP status {}{}", repository.name, status,
              words);
}

// Names of the hub that are like the one that it has not; empty where it does not say.
std::string near_names(Web& web, const Repository& repository) {
  constexpr size_t kShown = 5;
  const std::string name = repository.name.substr(repository.name.find('/') + 1);
  auto url = parse_url(fmt::format("{}/api/models?search={}&limit={}", repository.hub_url,
                                   escape_path(name), kShown));
  if (!url) return {};
  const Web::Ask ask{.accept = "application/json", .bytes_max = kAnswerBytesMax};
  auto reply = web.get(*url, repository.credential, ask);
  if (!reply || reply->head.status != 200) return {};
  auto found = parse_search(reply->body);
  if (!found) return {};
  std::string names;
  for (size_t i = 0; i < std::min(found->size(), kShown); ++i) {
    names += (i > 0 ? ", " : "") + printable((*found)[i]);
  }
  return names;
}

// The hub says of a private repository what it says of none at all, to those who may not read it.
Error not_there(Web& web, const Repository& repository, const Reply& reply) {
  const std::string_view code = reply.head.field("x-error-code");
  if (code == "RevisionNotFound") {
    return fail(ErrorCode::not_found, "{}: expected a revision \"{}\", found none", repository.name,
                repository.revision);
  }
  const std::string near = near_names(web, repository);
  const std::string who = repository.credential.token.empty()
                              ? "everybody"
                              : fmt::format("the token of {}", repository.token_source);
  return fail(ErrorCode::not_found,
              "{}: expected a repository of that name on {} that {} may read, found none{}{}",
              repository.name, repository.hub_url, who,
              near.empty() ? "" : fmt::format("; there are {}", near),
              repository.credential.token.empty() ? "; a private one needs HF_TOKEN" : "");
}

Result<Reply> ask_json(Web& web, const Repository& repository, const WebUrl& url) {
  const Web::Ask ask{.accept = "application/json", .bytes_max = kAnswerBytesMax};
  CAIRN_TRY(Reply reply, web.get(url, repository.credential, ask));
  if (reply.head.status == 200) return reply;
  const std::string_view code = reply.head.field("x-error-code");
  if (reply.head.status == 404 || code == "RepoNotFound") {
    return not_there(web, repository, reply);
  }
  return refused(repository, reply);
}

// Pages follow each other by a header, within the hub.
Result<std::vector<ListedFile>> list_files(Web& web, const Repository& repository,
                                           std::string_view commit) {
  CAIRN_TRY(WebUrl url,
            parse_url(repository.api(fmt::format("/tree/{}?recursive=true", escape_path(commit)))));
  std::vector<ListedFile> files;
  for (int page = 0; page < kPagesMax; ++page) {
    CAIRN_TRY(const Reply reply, ask_json(web, repository, url));
    CAIRN_TRY(parse_tree_page(reply.body, files));
    if (files.size() > kFilesMax) break;
    const std::string next = next_link(reply.head.field("link"));
    if (next.empty()) return files;
    CAIRN_TRY(WebUrl next_url, follow_url(reply.url, next));
    if (next_url.origin != url.origin) {
      return fail(ErrorCode::invalid_data, "{}: expected the next page on {}, found it on {}",
                  repository.name, url.origin, next_url.origin);
    }
    url = std::move(next_url);
  }
  return fail(ErrorCode::no_room, "{}: expected at most {} files on {} pages, found more",
              repository.name, kFilesMax, kPagesMax);
}

Error no_gguf(const Repository& repository, const std::vector<ListedFile>& files) {
  constexpr size_t kShown = 8;
  if (!choose_folder(files).empty()) {
    return fail(ErrorCode::unsupported,
                "{0}: expected a GGUF file, found safetensors; `cairn pull {0} --convert` fetches "
                "and converts them",
                repository.name);
  }
  std::string names;
  for (size_t i = 0; i < std::min(files.size(), kShown); ++i) {
    names += (i > 0 ? ", " : "") + printable(files[i].path);
  }
  return fail(ErrorCode::unsupported,
              "{}: expected a GGUF file, or safetensors with a config.json; found {}{}",
              repository.name, names.empty() ? "no files" : names,
              files.size() > kShown ? fmt::format(" and {} more", files.size() - kShown) : "");
}

void add_file(RemoteModel& model, const Repository& repository, const ListedFile& file) {
  model.files.push_back(
      {.name = file.path,
       .url = fmt::format("{}/{}/resolve/{}/{}", repository.hub_url, repository.name,
                          escape_path(model.revision), escape_path(file.path)),
       .bytes = file.bytes,
       .sha256 = file.sha256});
  model.paths.push_back(file.path);
}

}  // namespace

Result<RemoteModel> find_on_hugging_face(Web& web, const HubSettings& settings,
                                         const ModelReference& reference,
                                         const FindOptions& options) {
  CAIRN_TRY(const WebUrl hub, parse_url(settings.hub_url));
  if (!settings.token.empty() && !hub.is_secure && !hub.is_here) {
    log::warning(
        "{}: expected https, found http: the token of {} is not shown, since others could "
        "read it",
        settings.hub_url, settings.token_source);
  }
  const Repository repository{.hub_url = settings.hub_url,
                              .name = reference.repo,
                              .revision = reference.revision.empty() ? "main" : reference.revision,
                              .credential = {.origin = hub.origin, .token = settings.token},
                              .token_source = settings.token_source};
  CAIRN_TRY(
      const WebUrl info_url,
      parse_url(repository.api(fmt::format("/revision/{}", escape_path(repository.revision)))));
  CAIRN_TRY(const Reply reply, ask_json(web, repository, info_url));
  CAIRN_TRY(const ModelInfo info, parse_model_info(reply.body));
  RemoteModel model{.reference = reference,
                    .revision = info.commit.empty() ? repository.revision : info.commit};
  model.credential = repository.credential;
  model.explain = [repository](const Reply& refusal) { return refused(repository, refusal); };
  CAIRN_TRY(const std::vector<ListedFile> files, list_files(web, repository, model.revision));
  if (!has_gguf(files)) {
    const std::vector<size_t> folder = choose_folder(files);
    if (!options.takes_folder || folder.empty()) return no_gguf(repository, files);
    model.is_folder = true;
    for (const size_t place : folder) add_file(model, repository, files[place]);
    return model;
  }
  CAIRN_TRY(FileChoice choice, choose_gguf(reference.repo, files, reference.pick));
  for (const size_t place : choice.files) add_file(model, repository, files[place]);
  model.reference.pick = model.paths.front();
  model.left_out = std::move(choice.left_out);
  return model;
}

}  // namespace cairn::hub
