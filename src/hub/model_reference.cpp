// By hand: the forms are short, and each error says which one was meant.
#include "hub/model_reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace cairn::hub {

namespace {

constexpr std::string_view kHuggingFace = "hf:";
constexpr std::string_view kOllama = "ollama:";
constexpr size_t kNameBytesMax = 96;      // As the hubs themselves allow.
constexpr size_t kSegmentBytesMax = 200;  // With the endings of partial files below the usual 255.
constexpr std::string_view kHubPages[] = {"https://huggingface.co/", "https://hf.co/"};

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// [A-Za-z0-9_][A-Za-z0-9._-]*, without two dots in a row.
bool is_name(std::string_view text) {
  const auto is_fine = [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kNameBytesMax && text[0] != '.' && text[0] != '-' &&
         text.find("..") == text.npos && std::all_of(text.begin(), text.end(), is_fine);
}

// What stands before `separator`, and what behind it; all and nothing where there is none.
std::pair<std::string_view, std::string_view> split_at(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == text.npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

Error expected_hub_form(std::string_view text) {
  return fail(ErrorCode::invalid_argument,
              "{}: expected hf:OWNER/REPO, hf:OWNER/REPO:FILE or hf:OWNER/REPO:QUANT", text);
}

// `rest`: OWNER/REPO[@REVISION][:PICK]
Result<ModelReference> parse_hub(std::string_view text, std::string_view rest) {
  ModelReference reference{.kind = SourceKind::hugging_face};
  const size_t colon = rest.find(':');
  if (colon != rest.npos) {
    reference.pick = rest.substr(colon + 1);
    if (!is_safe_path(reference.pick)) return expected_hub_form(text);
  }
  const auto [repo, revision] = split_at(rest.substr(0, std::min(colon, rest.size())), '@');
  const auto [owner, name] = split_at(repo, '/');
  const bool has_revision = repo.size() < std::min(colon, rest.size());
  if (!is_name(owner) || !is_name(name) || (has_revision && !is_name(revision))) {
    return expected_hub_form(text);
  }
  reference.repo = repo;
  reference.revision = revision;
  return reference;
}

// A first part with a dot or a port is a registry's name.
bool is_host(std::string_view segment) {
  return segment.find('.') != segment.npos || segment.find(':') != segment.npos;
}

bool is_host_name(std::string_view host) {
  const auto [name, port] = split_at(host, ':');
  const bool has_port = name.size() < host.size();
  const bool is_port =
      !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_name(name) && (!has_port || is_port);
}

Result<ModelReference> parse_ollama(std::string_view text, std::string_view rest) {
  const Error wrong = fail(ErrorCode::invalid_argument,
                           "{}: expected ollama:NAME, ollama:NAME:TAG or "
                           "ollama:HOST/NAMESPACE/NAME:TAG",
                           text);
  ModelReference reference{.kind = SourceKind::ollama};
  const size_t slash = rest.find('/');
  if (slash != rest.npos && is_host(rest.substr(0, slash))) {
    reference.host = rest.substr(0, slash);
    if (!is_host_name(reference.host)) return wrong;
    rest = rest.substr(slash + 1);
  }
  const auto [path, tag] = split_at(rest, ':');
  const bool has_tag = path.size() < rest.size();
  const bool has_namespace = path.find('/') != path.npos;
  const auto [first, second] = split_at(path, '/');
  const std::string_view name_space = has_namespace ? first : std::string_view("library");
  const std::string_view name = has_namespace ? second : first;
  if (!is_name(name_space) || !is_name(name) || (has_tag && !is_name(tag))) return wrong;
  reference.repo = fmt::format("{}/{}", name_space, name);
  reference.pick = has_tag ? tag : std::string_view("latest");
  return reference;
}

// A page or a file of the hub's own site says the same as a reference, and more can be checked
// then. Nothing where it is another page.
Result<ModelReference> parse_hub_page(std::string_view text, std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  const auto [owner, behind_owner] = split_at(path, '/');
  const auto [name, behind_name] = split_at(behind_owner, '/');
  std::string form = fmt::format("{}/{}", owner, name);
  if (!behind_name.empty()) {
    const auto [verb, behind_verb] = split_at(behind_name, '/');
    const auto [revision, file] = split_at(behind_verb, '/');
    if (verb != "resolve" && verb != "blob" && verb != "tree") return expected_hub_form(text);
    if (revision != "main") form += fmt::format("@{}", revision);
    if (verb != "tree" && !file.empty()) form += fmt::format(":{}", file);
  }
  return parse_hub(text, form);
}

bool is_url(std::string_view text) {
  return text.starts_with("https://") || text.starts_with("http://");
}

}  // namespace

bool is_safe_segment(std::string_view segment) {
  return !segment.empty() && segment.size() <= kSegmentBytesMax && segment[0] != '.' &&
         std::none_of(segment.begin(), segment.end(), [](char c) {
           return uint8_t(c) < 0x20 || c == 0x7f || c == '/' || c == '\\' || c == ':';
         });
}

bool is_safe_path(std::string_view path) {
  constexpr size_t kPathBytesMax = 1000;
  if (path.empty() || path.size() > kPathBytesMax) return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (!is_safe_segment(path.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

bool is_reference(std::string_view text) {
  return text.starts_with(kHuggingFace) || text.starts_with(kOllama) || is_url(text);
}

Result<ModelReference> parse_reference(std::string_view text) {
  if (text.starts_with(kHuggingFace)) return parse_hub(text, text.substr(kHuggingFace.size()));
  if (text.starts_with(kOllama)) return parse_ollama(text, text.substr(kOllama.size()));
  for (const std::string_view page : kHubPages) {
    if (text.starts_with(page)) return parse_hub_page(text, text.substr(page.size()));
  }
  if (is_url(text)) return ModelReference{.kind = SourceKind::url, .repo = std::string(text)};
  return fail(ErrorCode::invalid_argument,
              "{}: expected hf:OWNER/REPO, ollama:NAME or a URL of a file", text);
}

Result<ModelReference> parse_pull_reference(std::string_view text) {
  return is_reference(text) ? parse_reference(text) : parse_hub(text, text);
}

std::string to_text(const ModelReference& reference) {
  if (reference.kind == SourceKind::url) {
    return reference.repo.substr(0, reference.repo.find_first_of("?#"));
  }
  std::string text;
  if (reference.kind == SourceKind::hugging_face) {
    text = fmt::format("{}{}", kHuggingFace, reference.repo);
    if (!reference.revision.empty()) text += "@" + reference.revision;
  } else {
    std::string_view repo = reference.repo;
    if (reference.host.empty() && repo.starts_with("library/")) repo.remove_prefix(8);
    text =
        fmt::format("{}{}{}{}", kOllama, reference.host, reference.host.empty() ? "" : "/", repo);
  }
  return reference.pick.empty() ? text : text + ":" + reference.pick;
}

}  // namespace cairn::hub
