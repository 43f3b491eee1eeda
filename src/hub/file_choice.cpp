// Files are grouped to models first; then a pick is looked for, the most exact way first.
#include "hub/file_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/text/nearest_name.h"
#include "gguf/split.h"
#include "hub/model_reference.h"

namespace cairn::hub {

namespace {

constexpr std::string_view kUsual[] = {"Q4_K_M", "Q8_0"};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return out;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0.
}

struct Group {
  std::string stem;  // Of a split model without its numbers; else the path without ".gguf".
  uint32_t part_count = 1;
  std::vector<size_t> parts;  // Places in the list; of a split model by number.
  std::vector<bool> is_there;
};

bool is_gguf(std::string_view path) {
  return lower(path).ends_with(".gguf");
}

bool is_projector(std::string_view path) {
  return lower(base_name(path)).find("mmproj") != std::string::npos;
}

// Measurements for quantizers, in the same format.
bool is_importance(std::string_view path) {
  return lower(base_name(path)).find("imatrix") != std::string::npos;
}

void add_to(std::vector<Group>& groups, const ListedFile& file, size_t place) {
  const std::optional<gguf::SplitName> split = gguf::parse_split_name(file.path);
  if (!split) {
    groups.push_back(
        {.stem = file.path.substr(0, file.path.size() - 5), .parts = {place}, .is_there = {true}});
    return;
  }
  constexpr uint32_t kPartsMax = 1000;
  if (split->part_count > kPartsMax) return;
  auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& one) {
    return one.stem == split->stem && one.part_count == split->part_count;
  });
  if (group == groups.end()) {
    groups.push_back({.stem = split->stem,
                      .part_count = split->part_count,
                      .parts = std::vector<size_t>(split->part_count),
                      .is_there = std::vector<bool>(split->part_count)});
    group = groups.end() - 1;
  }
  group->parts[split->part - 1] = place;
  group->is_there[split->part - 1] = true;
}

// Whether the word stands in the text between letters that are no part of such a word.
bool has_word(std::string_view text, std::string_view word) {
  const auto is_inside = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !is_inside(text[at - 1]);
    if (begins && (end == text.size() || !is_inside(text[end]))) return true;
  }
  return false;
}

bool is_named(const Group& group, std::span<const ListedFile> files, std::string_view wanted) {
  const auto is_it = [&](std::string_view path) {
    return path == wanted || base_name(path) == wanted;
  };
  if (is_it(group.stem)) return true;
  for (size_t part = 0; part < group.parts.size(); ++part) {
    if (group.is_there[part] && is_it(files[group.parts[part]].path)) return true;
  }
  return false;
}

// As a file, then as the end of a name, then as a word in it or in its folder's name.
std::vector<const Group*> matching(const std::vector<Group>& groups,
                                   std::span<const ListedFile> files, std::string_view pick) {
  std::vector<const Group*> found;
  const auto keep = [&](auto&& is_meant) {
    for (const Group& group : groups) {
      if (is_meant(group)) found.push_back(&group);
    }
    return !found.empty();
  };
  if (keep([&](const Group& group) { return is_named(group, files, pick); })) return found;
  const std::string word = lower(pick);
  if (keep([&](const Group& group) {
        const std::string stem = lower(base_name(group.stem));
        return stem == word || stem.ends_with("-" + word) || stem.ends_with("." + word);
      })) {
    return found;
  }
  keep([&](const Group& group) { return has_word(lower(group.stem), word); });
  return found;
}

std::string name_of(const Group& group) {
  return printable(group.part_count > 1 || group.stem.empty()
                       ? fmt::format("{} ({} parts)", group.stem, group.part_count)
                       : group.stem + ".gguf");
}

std::string names_of(const std::vector<const Group*>& groups) {
  constexpr size_t kShown = 12;
  std::string names;
  for (size_t i = 0; i < std::min(groups.size(), kShown); ++i) {
    names += (i > 0 ? ", " : "") + name_of(*groups[i]);
  }
  if (groups.size() > kShown) names += fmt::format(" and {} more", groups.size() - kShown);
  return names;
}

std::vector<const Group*> all_of(const std::vector<Group>& groups) {
  std::vector<const Group*> all;
  for (const Group& group : groups) all.push_back(&group);
  return all;
}

Error none_matches(std::string_view name, const std::vector<Group>& groups, std::string_view pick) {
  std::vector<std::string> known;
  for (const Group& group : groups) {
    const std::string stem(base_name(group.stem));
    known.push_back(stem + ".gguf");
    // A quantization is most often what stands behind the last hyphen or dot.
    known.push_back(stem.substr(stem.find_last_of("-.") + 1));
  }
  const std::string nearest = nearest_name(pick, known);
  const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
  return fail(ErrorCode::not_found, "{}: expected a file or quantization \"{}\", found {}{}", name,
              printable(pick), names_of(all_of(groups)), printable(hint));
}

Result<FileChoice> choice_of(std::string_view name, const Group& group) {
  for (size_t part = 0; part < group.is_there.size(); ++part) {
    if (!group.is_there[part]) {
      return fail(ErrorCode::invalid_data, "{}: expected {} parts of {}, found no part {}", name,
                  group.part_count, printable(group.stem), part + 1);
    }
  }
  return FileChoice{.files = group.parts, .left_out = {}};
}

Result<FileChoice> choose(std::string_view name, const std::vector<Group>& groups,
                          std::span<const ListedFile> files, std::string_view pick) {
  if (!pick.empty()) {
    const std::vector<const Group*> found = matching(groups, files, pick);
    if (found.size() == 1) return choice_of(name, *found.front());
    if (found.empty()) return none_matches(name, groups, pick);
    return fail(ErrorCode::invalid_argument, "{}: expected one file for \"{}\", found {}", name,
                printable(pick), names_of(found));
  }
  if (groups.size() == 1) return choice_of(name, groups.front());
  for (const std::string_view usual : kUsual) {
    const std::vector<const Group*> found = matching(groups, files, usual);
    if (found.size() == 1) return choice_of(name, *found.front());
  }
  return fail(ErrorCode::invalid_argument, "{}: expected :FILE or :QUANT behind it, found {}", name,
              names_of(all_of(groups)));
}

}  // namespace

bool has_gguf(std::span<const ListedFile> files) {
  return std::any_of(files.begin(), files.end(), [](const ListedFile& file) {
    return is_gguf(file.path) && is_safe_path(file.path) && !is_projector(file.path) &&
           !is_importance(file.path);
  });
}

Result<FileChoice> choose_gguf(std::string_view name, std::span<const ListedFile> files,
                               std::string_view pick) {
  std::vector<Group> groups;
  std::vector<std::string> left_out;
  for (size_t place = 0; place < files.size(); ++place) {
    const ListedFile& file = files[place];
    if (!is_gguf(file.path) || !is_safe_path(file.path) || is_importance(file.path)) continue;
    if (!is_projector(file.path)) {
      add_to(groups, file, place);
      continue;
    }
    if (!pick.empty() && (file.path == pick || base_name(file.path) == pick)) {
      return fail(ErrorCode::invalid_argument,
                  "{}: expected a language model, found {}, which only prepares pictures for one",
                  name, printable(file.path));
    }
    left_out.push_back(file.path);
  }
  if (groups.empty()) {
    return fail(ErrorCode::not_found, "{}: expected a GGUF file, found none in {} files", name,
                files.size());
  }
  CAIRN_TRY(FileChoice choice, choose(name, groups, files, pick));
  choice.left_out = std::move(left_out);
  return choice;
}

std::vector<size_t> choose_folder(std::span<const ListedFile> files) {
  constexpr std::string_view kEndings[] = {".safetensors", ".json", ".model", ".jinja", ".txt"};
  bool has_weights = false, has_config = false;
  std::vector<size_t> chosen;
  for (size_t place = 0; place < files.size(); ++place) {
    const std::string& path = files[place].path;
    const bool is_read = std::any_of(std::begin(kEndings), std::end(kEndings),
                                     [&](std::string_view end) { return path.ends_with(end); });
    // Folders of repositories are other forms of the same model, but for modules of sentence
    // models: 1_Pooling, 2_Dense.
    const bool is_deep = path.find('/') != path.npos;
    const bool is_module = path.size() > 2 && path[0] >= '0' && path[0] <= '9' && path[1] == '_' &&
                           path.find('/') == path.rfind('/');
    const bool is_empty = files[place].bytes == 0;
    if (!is_read || is_empty || !is_safe_path(path) || (is_deep && !is_module)) continue;
    has_weights |= path.ends_with(".safetensors") && !is_deep;
    has_config |= path == "config.json";
    chosen.push_back(place);
  }
  return has_weights && has_config ? chosen : std::vector<size_t>();
}

}  // namespace cairn::hub
