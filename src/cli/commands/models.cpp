// `cairn list`, `show`, `rm` and `cp`: the models of this machine, and names for them.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/quantities.h"
#include "base/text/nearest_name.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "command_line/exit_codes.h"
#include "gguf/gguf.h"
#include "gguf/summary.h"
#include "hub/model_folder.h"
#include "json/value.h"
#include "serve/models/model_source.h"
#include "terminal/terminal.h"

namespace cairn::cli {

namespace {

struct ModelArguments {
  std::string model, alias, folder;
  bool json = false;
};

void add_folder(command_line::Options& command, ModelArguments& a) {
  command
      .add("--models", a.folder,
           "the folder of models; default: cairn/models in the folder of caches")
      .takes("DIR");
}

Result<hub::HubSettings> settings_of(const ModelArguments& a) {
  CAIRN_TRY(hub::HubSettings settings, hub::read_settings());
  if (!a.folder.empty()) settings.folder = a.folder;
  if (!settings.folder.empty()) return settings;
  return fail(ErrorCode::not_found,
              "CAIRN_MODELS: expected a folder for models, found neither it nor HOME set");
}

Result<int> print(const std::string& text) {
  terminal::TextOut out(stdout);
  out.write(text);
  CAIRN_TRY(out.finish());
  return command_line::kExitFine;
}

std::string date_of(int64_t seconds) {
  const std::time_t time = std::time_t(seconds);
  std::tm parts = {};
  if (::gmtime_r(&time, &parts) == nullptr) return "";
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

json::Value json_of(const hub::KeptModel& model) {
  return {{"name", model.name},          {"fetched_by", hub::name(model.keeper)},
          {"path", model.paths.front()}, {"parts", model.paths.size()},
          {"bytes", model.bytes},        {"modified", model.modified_seconds},
          {"sha256", model.sha256},      {"unfinished", model.is_partial}};
}

Result<int> list(const ModelArguments& a) {
  CAIRN_TRY(const hub::HubSettings settings, settings_of(a));
  const std::vector<hub::KeptModel> models = hub::list_models(settings);
  const auto aliases = hub::ModelFolder(settings.folder).aliases();
  const auto presets = hub::ModelFolder(settings.folder).preset_names();
  if (a.json) {
    json::Value all = json::Value::array(), names = json::Value::array();
    for (const hub::KeptModel& model : models) all.push_back(json_of(model));
    for (const auto& [alias, target] : aliases) {
      names.push_back({{"alias", alias}, {"model", target}});
    }
    const json::Value value = {{"models", all}, {"aliases", names}, {"presets", presets}};
    return print(json::to_text(value) + "\n");
  }
  std::string text =
      fmt::format("{:>10}  {:<12}{:<14}{}\n", "size", "changed", "fetched by", "name");
  for (const hub::KeptModel& model : models) {
    text += fmt::format("{:>10}  {:<12}{:<14}{}{}\n", show_bytes(model.bytes),
                        date_of(model.modified_seconds), hub::name(model.keeper),
                        printable(model.name), model.is_partial ? " (unfinished)" : "");
  }
  for (const auto& [alias, target] : aliases) {
    text += fmt::format("{:>10}  {:<12}{:<14}{} -> {}\n", "", "", "alias", printable(alias),
                        printable(target));
  }
  for (const std::string& preset : presets) {
    text += fmt::format("{:>10}  {:<12}{:<14}{}\n", "", "", "preset", printable(preset));
  }
  if (models.empty() && aliases.empty() && presets.empty()) {
    text = fmt::format("no models in {}, nor in the folders of other programs\n",
                       printable(settings.folder));
  }
  return print(text);
}

// By its name as the list has it, by a reference that means it, or by its path. Errors: not_found,
// with the nearest name.
Result<hub::KeptModel> find_listed(const hub::HubSettings& settings, const std::string& named,
                                   bool takes_partial) {
  std::vector<hub::KeptModel> models = hub::list_models(settings);
  std::vector<std::string> known;
  for (hub::KeptModel& model : models) {
    const bool is_meant = model.name == named || model.paths.front() == named;
    if (is_meant && (takes_partial || !model.is_partial)) return std::move(model);
    known.push_back(model.name);
  }
  if (Result<hub::ModelReference> reference = hub::parse_pull_reference(named)) {
    if (auto kept = hub::find_kept(settings, *reference)) return std::move(*kept);
  }
  const std::string nearest = nearest_name(named, known);
  return fail(ErrorCode::not_found, "{}: expected a model or alias that `cairn list` shows{}",
              printable(named),
              nearest.empty() ? ", found none" : fmt::format("; did you mean {}?", nearest));
}

// The model that an alias or a preset means; else the name itself.
Result<std::string> without_alias(const hub::HubSettings& settings, const std::string& named) {
  CAIRN_TRY(const std::optional<std::string> target,
            hub::ModelFolder(settings.folder).model_of(named));
  return target.value_or(named);
}

// A file that an alias or a preset names, and no folder of models has.
hub::KeptModel unlisted(const std::string& path) {
  hub::KeptModel model;
  model.name = path;
  model.paths = serve::plain_source(path, path).parts;
  hub::measure(model);
  return model;
}

// What the file itself says, where it can be read.
void add_contents(json::Value& value, const std::string& path) {
  Result<gguf::File> file = gguf::File::open(path, gguf::OpenMode::inspect);
  if (!file) return;
  const gguf::Summary summary = gguf::summarise(*file);
  value.set("architecture", summary.architecture);
  value.set("weights", summary.weight_count);
  value.set("bits_per_weight", summary.bits_per_weight);
}

std::string as_lines(const json::Value& value) {
  std::string text;
  for (const json::Value::Member& member : value.members()) {
    const auto words = member.value.as_text();
    text += fmt::format("{:<16}{}\n", member.key,
                        printable(words ? std::string(*words) : json::to_text(member.value)));
  }
  return text;
}

Result<int> show(const ModelArguments& a) {
  CAIRN_TRY(const hub::HubSettings settings, settings_of(a));
  CAIRN_TRY(const std::string named, without_alias(settings, a.model));
  Result<hub::KeptModel> listed = find_listed(settings, named, true);
  std::error_code error;
  const bool is_unlisted =
      !listed && named != a.model && std::filesystem::is_regular_file(named, error);
  if (is_unlisted) listed = unlisted(named);
  CAIRN_TRY(const hub::KeptModel model, std::move(listed));
  json::Value value = json_of(model);
  if (is_unlisted) value.set("fetched_by", "");
  CAIRN_TRY(const std::optional<hub::ModelRecord> record,
            hub::ModelFolder(settings.folder).read_record(model.paths.front()));
  if (record) {
    value.set("revision", record->revision);
    value.set("converted", record->is_converted);
    if (!record->files.empty()) value.set("url", record->files.front().url);
  }
  add_contents(value, model.paths.front());
  return print(a.json ? json::to_text(value) + "\n" : as_lines(value));
}

Result<int> remove(const ModelArguments& a) {
  CAIRN_TRY(const hub::HubSettings settings, settings_of(a));
  const hub::ModelFolder folder(settings.folder);
  CAIRN_TRY(const bool was_alias, folder.remove_alias(a.model));
  if (was_alias) return command_line::kExitFine;
  CAIRN_TRY(const hub::KeptModel model, find_listed(settings, a.model, true));
  if (model.keeper != hub::Keeper::cairn) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a model that cairn has fetched, found one of {}, which has to remove "
                "it",
                printable(a.model), hub::name(model.keeper));
  }
  CAIRN_TRY(folder.remove(model));
  std::fprintf(stderr, "cairn: %s: %s removed\n", printable(model.name).c_str(),
               show_bytes(model.bytes).c_str());
  return command_line::kExitFine;
}

// Weights are not copied: a second name costs nothing.
Result<int> copy(const ModelArguments& a) {
  CAIRN_TRY(const hub::HubSettings settings, settings_of(a));
  CAIRN_TRY(std::string target, without_alias(settings, a.model));
  std::error_code error;
  if (std::filesystem::is_regular_file(target, error)) {
    target = std::filesystem::absolute(target, error).string();
  } else {
    CAIRN_TRY(const hub::KeptModel model, find_listed(settings, target, false));
    target = hub::is_reference(model.name) ? model.name : model.paths.front();
  }
  CAIRN_TRY(hub::ModelFolder(settings.folder).set_alias(a.alias, target));
  return command_line::kExitFine;
}

command_line::Action add_list(command_line::Options& command) {
  const auto a = std::make_shared<ModelArguments>();
  command.add_flag("--json", a->json, "as JSON");
  add_folder(command, *a);
  command.set_notes(
      "Models that cairn has fetched, and those of llama.cpp, Hugging Face's programs, LM Studio "
      "and Ollama, which cairn only reads. `cairn run NAME` takes the names.\n");
  return [a]() -> Result<int> { return list(*a); };
}

command_line::Action add_show(command_line::Options& command) {
  const auto a = std::make_shared<ModelArguments>();
  command.add("NAME", a->model, "a model, alias or preset, as `cairn list` shows it")
      .takes("NAME")
      .required();
  command.add_flag("--json", a->json, "as JSON");
  add_folder(command, *a);
  return [a]() -> Result<int> { return show(*a); };
}

command_line::Action add_rm(command_line::Options& command) {
  const auto a = std::make_shared<ModelArguments>();
  command.add("NAME", a->model, "a model that cairn has fetched, or an alias")
      .takes("NAME")
      .required();
  add_folder(command, *a);
  return [a]() -> Result<int> { return remove(*a); };
}

command_line::Action add_cp(command_line::Options& command) {
  const auto a = std::make_shared<ModelArguments>();
  command.add("MODEL", a->model, "a model, alias or preset as `cairn list` shows it, or a file")
      .takes("FILE")
      .required();
  command.add("ALIAS", a->alias, "the other name: letters, digits, dots, colons and hyphens")
      .takes("ALIAS")
      .required();
  add_folder(command, *a);
  command.set_notes(
      "Nothing is copied: the alias stands for the model, wherever it was fetched. Of a preset it "
      "has the model alone.\n");
  return [a]() -> Result<int> { return copy(*a); };
}

}  // namespace

const command_line::Command kListCommand = {"list", "the models of this machine", add_list};
const command_line::Command kShowCommand = {"show", "what is known of a model of this machine",
                                            add_show};
const command_line::Command kRmCommand = {
    "rm", "remove a model that cairn has fetched, or an alias", add_rm};
const command_line::Command kCpCommand = {"cp", "give a model another name", add_cp};

}  // namespace cairn::cli
