// The chat templates of the shared fixtures, by name, sorted; empty where they are absent.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "chat/chat_template.h"

namespace cairn::chat {

struct NamedTemplate {
  std::string name;
  chat::ChatTemplate chat_template;
};

inline std::vector<NamedTemplate> shared_templates() {
  const std::filesystem::path folder =
      std::filesystem::path(CAIRN_FIXTURES) / "shared" / "chat_templates";
  std::vector<NamedTemplate> templates;
  if (!std::filesystem::exists(folder)) return templates;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream source;
    source << file.rdbuf();
    auto made = chat::ChatTemplate::parse(source.str());
    if (made) templates.push_back({entry.path().stem().string(), std::move(made).value()});
  }
  std::sort(templates.begin(), templates.end(),
            [](const NamedTemplate& a, const NamedTemplate& b) { return a.name < b.name; });
  return templates;
}

}  // namespace cairn::chat
