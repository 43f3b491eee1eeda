// From keys of a file to options, with the place where each stands.
#include "cli/options/preset_values.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "hub/model_folder.h"
#include "hub/settings.h"

namespace cairn::cli {

Result<std::vector<command_line::PresetText>> read_preset(const std::string& named) {
  std::vector<command_line::PresetText> values;
  std::error_code error;
  if (!hub::is_alias(named) || std::filesystem::exists(named, error)) return values;
  CAIRN_TRY(const hub::HubSettings settings, hub::read_settings());
  if (settings.folder.empty()) return values;
  CAIRN_TRY(std::optional<hub::Preset> preset, hub::ModelFolder(settings.folder).preset(named));
  if (!preset) return values;
  for (hub::PresetValue& value : preset->values) {
    values.push_back({.option = std::move(value.key),
                      .texts = std::move(value.texts),
                      .source = fmt::format("{}:{}", printable(preset->path), value.line)});
  }
  return values;
}

}  // namespace cairn::cli
