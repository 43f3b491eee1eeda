// Findings are collected as lines once, and printed in two ways.
#include "cli/reports/inspect_security.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "engine/model_text.h"
#include "gguf/hyperparameters.h"
#include "gguf/summary.h"
#include "json/value.h"
#include "serve/models/model_source.h"

namespace cairn::cli {

namespace {

constexpr size_t kTextMax = 120;   // Of a name or token, in bytes.
constexpr size_t kListedMax = 32;  // Of each kind of finding; the others are counted.

// Keys whose names begin so are read by cairn, or say what a file is to people.
constexpr std::string_view kKnownPrefixes[] = {"general.", "tokenizer.", "split.",
                                               "adapter.", "quantize.",  "imatrix."};

struct Findings {
  std::vector<std::pair<std::string, std::string>> digests;  // Of a file's name.
  std::vector<std::string> refusals;                         // Why it would not be loaded.
  std::vector<std::string> warnings;
};

std::string harmless(std::string_view text) {
  std::string line;
  for (const char c : printable(text.substr(0, kTextMax))) {
    line += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  }
  return text.size() > kTextMax ? line + "..." : line;
}

// As a warning: so many of them, and the first few.
void warn(std::vector<std::string>& warnings, std::string_view what,
          const std::vector<std::string>& found) {
  if (found.empty()) return;
  std::string line = fmt::format("{} {}:", found.size(), what);
  for (size_t i = 0; i < std::min(found.size(), kListedMax); ++i) line += " " + found[i];
  if (found.size() > kListedMax) line += " ...";
  warnings.push_back(std::move(line));
}

void add_digests(const std::string& path, Findings& findings) {
  for (const std::string& part : serve::plain_source("", path).parts) {
    Result<MappedFile> file = MappedFile::open(part);
    findings.digests.emplace_back(
        part, file ? hex_of(Sha256().add(file->bytes()).finish()) : file.error().message);
  }
}

// As loading it would find, up to its weights.
void add_refusals(const gguf::File& file, const std::string& path, Findings& findings) {
  for (const std::string& line : file.problems().lines) findings.refusals.push_back(line);
  const auto add = [&](const auto& result) {
    if (!result) findings.refusals.push_back(result.error().message);
  };
  if (findings.refusals.empty()) add(gguf::File::open(path));
  add(file.metadata());
  add(ModelText::load(file));
}

bool is_known(std::string_view key, std::string_view architecture) {
  const bool has_prefix = std::ranges::any_of(
      kKnownPrefixes, [&](std::string_view prefix) { return key.starts_with(prefix); });
  if (has_prefix) return true;
  if (architecture.empty() || !key.starts_with(architecture)) return false;
  key.remove_prefix(architecture.size());
  if (!key.starts_with('.')) return false;
  key.remove_prefix(1);
  const auto is_named = [&](const auto& range) { return range.name == key; };
  return std::ranges::any_of(gguf::count_ranges(), is_named) ||
         std::ranges::any_of(gguf::real_ranges(), is_named);
}

void add_keys(const gguf::File& file, std::string_view architecture, Findings& findings) {
  std::vector<std::string> unknown, steering;
  for (const gguf::Field& field : file.fields().all()) {
    if (!is_known(field.key, architecture)) unknown.push_back(harmless(field.key));
    const auto text = gguf::string_in(field.value);
    if (text && printable(*text) != *text) steering.push_back(harmless(field.key));
  }
  warn(findings.warnings, "keys that cairn has no range for, and mostly no use", unknown);
  warn(findings.warnings, "texts with characters that steer terminals, or that are no UTF-8",
       steering);
}

// Marks are special only where the file says so; one that is not may be written by any user.
bool looks_special(std::string_view piece) {
  return piece.size() > 4 && ((piece.starts_with("<|") && piece.ends_with("|>")) ||
                              (piece.starts_with("[") && piece.ends_with("]") &&
                               std::ranges::all_of(piece.substr(1, piece.size() - 2), [](char c) {
                                 return (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
                               })));
}

void add_tokens(const gguf::File& file, Findings& findings) {
  constexpr int64_t kNormal = 1, kByte = 6;
  auto pieces = file.fields().get<gguf::Strings>("tokenizer.ggml.tokens");
  auto types = file.fields().get<gguf::Integers>("tokenizer.ggml.token_type");
  if (!pieces || !types) return;
  std::vector<std::string> plain, odd, steering;
  size_t id = 0;
  for (const std::string_view piece : *pieces) {
    if (id >= types->size()) break;
    const int64_t type = (*types)[id];
    const std::string shown = fmt::format("{} \"{}\"", id, harmless(piece));
    if (type < kNormal || type > kByte) odd.push_back(fmt::format("{} (type {})", shown, type));
    if (type == kNormal && looks_special(piece)) plain.push_back(shown);
    if (piece.find('\x1b') != piece.npos) steering.push_back(shown);
    ++id;
  }
  warn(findings.warnings, "tokens that look special and are ordinary text", plain);
  warn(findings.warnings, "tokens of types that nobody knows", odd);
  warn(findings.warnings, "tokens with escape characters", steering);
}

std::string list_text(std::string_view head, const std::vector<std::string>& lines) {
  std::string text = fmt::format("\n{} ({})\n", head, lines.size());
  for (const std::string& line : lines) text += fmt::format("  {}\n", printable(line));
  return text;
}

std::string text_of(const Findings& findings, const gguf::Summary& summary) {
  std::string text = "SHA-256\n";
  for (const auto& [name, digest] : findings.digests) {
    text += fmt::format("  {}  {}\n", printable(digest), harmless(name));
  }
  text += list_text("Would be refused", findings.refusals);
  text += list_text("Unusual", findings.warnings);
  if (summary.tokenizer) {
    text += "\nKinds of tokens\n";
    for (const auto& [kind, count] : summary.tokenizer->kinds) {
      text += fmt::format("  {:<14}{}\n", kind, count);
    }
  }
  for (const auto& [key, source] : summary.templates) {
    text += fmt::format("\n{} ({} bytes)\n{}\n", harmless(key), source.size(), printable(source));
  }
  return text;
}

json::Value array_of(const std::vector<std::string>& lines) {
  json::Value all = json::Value::array();
  for (const std::string& line : lines) all.push_back(printable(line));
  return all;
}

std::string json_of(const Findings& findings, const gguf::Summary& summary) {
  json::Value digests = json::Value::array(), templates = json::Value::array();
  for (const auto& [name, digest] : findings.digests) {
    digests.push_back({{"file", printable(name)}, {"sha256", printable(digest)}});
  }
  for (const auto& [key, source] : summary.templates) {
    templates.push_back({{"key", printable(key)}, {"text", printable(source)}});
  }
  json::Value kinds = json::Value::object();
  if (summary.tokenizer) {
    for (const auto& [kind, count] : summary.tokenizer->kinds) kinds[kind] = count;
  }
  const json::Value all = {{"digests", std::move(digests)},
                           {"refused", array_of(findings.refusals)},
                           {"unusual", array_of(findings.warnings)},
                           {"token_kinds", std::move(kinds)},
                           {"templates", std::move(templates)}};
  return json::to_text(all) + "\n";
}

}  // namespace

std::string security_report(const gguf::File& file, const std::string& path, bool json) {
  Findings findings;
  const gguf::Summary summary = gguf::summarise(file);
  add_digests(path, findings);
  add_refusals(file, path, findings);
  add_keys(file, summary.architecture, findings);
  add_tokens(file, findings);
  return json ? json_of(findings, summary) : text_of(findings, summary);
}

}  // namespace cairn::cli
