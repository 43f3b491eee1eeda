// Folders, aliases, budgets.
#include "cli/commands/serve_models.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/quantities.h"
#include "cli/commands/find_model.h"
#include "cli/commands/load.h"
#include "cli/commands/serve.h"
#include "hub/model_folder.h"

namespace cairn::cli {

namespace {

constexpr char kBuiltinName[] = "cairn-nano";

bool is_folder(const std::string& path) {
  std::error_code error;
  return !path.empty() && std::filesystem::is_directory(path, error);
}

bool has_target(const std::string& alias) {
  return alias.find('=') != std::string::npos;
}

// The model that MODEL names, where it is no folder.
Result<serve::ModelSource> first_source(const ServeOptions& options) {
  std::string name = kBuiltinName;
  if (!options.model_path.empty()) {
    name = options.model_name.empty() ? std::filesystem::path(options.model_path).stem().string()
                                      : options.model_name;
  }
  CAIRN_TRY(name, only_name(options.models, name));
  if (!options.model_path.empty()) return serve::source_of(std::move(name), options.model_path);
  CAIRN_TRY(const gguf::File file, open_model(""));
  return serve::ModelSource{.name = std::move(name),
                            .path = "",
                            .parts = {""},
                            .digests = {""},
                            .card = serve::ModelCard::of(file)};
}

// Another name, for what an alias stands for; one of a model that is not here is left out.
void add_name(const std::string& name, const std::string& target,
              std::vector<serve::ModelSource>& models) {
  const auto is_meant = [&](const serve::ModelSource& model) {
    return model.name == target || model.path == target;
  };
  const auto model = std::find_if(models.begin(), models.end(), is_meant);
  if (model != models.end() && model->name != name) model->aliases.push_back(name);
}

// Those that `cairn list` shows, by the names that it shows. What is no model that runs (an
// adapter, a file that cannot be read) is left out.
Result<std::vector<serve::ModelSource>> listed_models(const ListedModels& listed) {
  std::vector<serve::ModelSource> models;
  for (const hub::KeptModel& kept : listed.kept) {
    if (kept.is_partial) continue;
    serve::ModelSource source = serve::source_of(kept.name, kept.paths.front());
    if (!source.card.architecture.empty()) models.push_back(std::move(source));
  }
  if (models.empty()) {
    return fail(ErrorCode::not_found,
                "--all-models: expected models that `cairn list` shows, found none");
  }
  for (const auto& [name, target] : listed.aliases) {
    add_name(name, target, models);
  }
  return models;
}

// Files that aliases stand for and no folder of models has, by the first of these names.
void add_named_files(ListedModels& listed) {
  for (const auto& alias : listed.aliases) {
    const std::string& target = alias.second;
    const auto is_meant = [&target](const hub::KeptModel& kept) {
      return kept.name == target || kept.paths.front() == target;
    };
    std::error_code error;
    const bool is_file = std::filesystem::is_regular_file(target, error);
    if (!is_file || std::any_of(listed.kept.begin(), listed.kept.end(), is_meant)) continue;
    hub::KeptModel named;
    named.name = alias.first;
    named.paths = {target};
    listed.kept.push_back(std::move(named));
  }
}

Result<std::vector<serve::ModelSource>> find_models(const ServeOptions& options) {
  std::vector<serve::ModelSource> models;
  const bool has_folder = is_folder(options.model_path) || options.models.takes_all;
  if (options.models.takes_all) {
    if (!options.model_path.empty()) {
      return fail(ErrorCode::invalid_argument, "--all-models: expected it or MODEL, found both");
    }
    CAIRN_TRY(models, listed_models(options.models.listed));
  } else if (has_folder) {
    CAIRN_TRY(models, serve::models_in(options.model_path));
  } else {
    CAIRN_TRY(serve::ModelSource first, first_source(options));
    models.push_back(std::move(first));
  }
  for (const std::string& alias : options.models.aliases) {
    if (!has_folder && !has_target(alias)) continue;
    CAIRN_TRY(serve::add_alias(alias, models));
  }
  for (const std::string& digest : options.models.digests) {
    CAIRN_TRY(serve::expect_digest(digest, models));
  }
  return models;
}

}  // namespace

Result<ListedModels> list_all_models() {
  CAIRN_TRY(const hub::HubSettings settings, hub::read_settings());
  ListedModels listed{.kept = hub::list_models(settings),
                      .aliases = hub::ModelFolder(settings.folder).aliases()};
  add_named_files(listed);
  return listed;
}

void add_models_options(command_line::Options& command, ServeModelsOptions& models) {
  command
      .add(
          "--alias,-a", models.aliases,
          "the model's name for clients; default: the file's. NAME=MODEL: another name for a model "
          "of the folder, or for that of a file, which is served too; may be given several times")
      .takes("NAME")
      .repeatable();
  command.add_flag("--all-models", models.takes_all,
                   "all models that `cairn list` shows, by these names and their aliases; they are "
                   "loaded when they are asked for");
  command
      .add("--expect-sha256", models.digests,
           "refuse a file that has another SHA-256: HEX, or NAME=HEX with the name of a model or "
           "file; may be given several times")
      .takes("HEX")
      .repeatable();
  command
      .add(
          "--models-budget", models.budget,
          "several models: largest memory for the weights, steps and conversations of all that are "
          "loaded, such as 24G; default: what is free at the start")
      .takes("SIZE");
  command
      .add(
          "--unload-after", models.unload_seconds,
          "unload a model that nobody has asked for so long, in seconds; 0: when another one needs "
          "the room")
      .in_range(0, 1 << 30)
      .shows_default();
}

Status find_alias_models(ServeModelsOptions& models) {
  for (std::string& alias : models.aliases) {
    const size_t equals = alias.find('=');
    const std::string target = equals == alias.npos ? "" : alias.substr(equals + 1);
    if (!hub::is_reference(target)) continue;
    CAIRN_TRY(const std::string path, find_model(target));
    alias = alias.substr(0, equals + 1) + path;
  }
  return Ok{};
}

bool has_several_models(const ServeOptions& options) {
  const auto& aliases = options.models.aliases;
  return options.models.takes_all || is_folder(options.model_path) ||
         options.models.unload_seconds > 0 ||
         std::any_of(aliases.begin(), aliases.end(), has_target);
}

Result<std::string> only_name(const ServeModelsOptions& options, const std::string& otherwise) {
  std::string name;
  for (const std::string& alias : options.aliases) {
    if (has_target(alias)) continue;
    if (name.empty()) {
      name = alias;
      continue;
    }
    return fail(ErrorCode::invalid_argument,
                "--alias: expected one name for the model, found \"{}\" and \"{}\"", name, alias);
  }
  return name.empty() ? otherwise : name;
}

Status check_only_digest(const ServeOptions& options) {
  if (options.models.digests.empty()) return Ok{};
  CAIRN_TRY(const std::vector<serve::ModelSource> models, find_models(options));
  return serve::check_digests(models.front(), [](serve::LoadStage, int) {});
}

Result<std::unique_ptr<serve::ModelRegistry>> start_models(const ServeOptions& options) {
  if (!options.pooling.empty() || !options.engine.adapters.empty()) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected one model that stays, found several or one that is unloaded",
                options.pooling.empty() ? "--lora" : "--pooling");
  }
  CAIRN_TRY(std::vector<serve::ModelSource> models, find_models(options));
  if (const int32_t most = options.engine.context_tokens; most > 0) {
    for (serve::ModelSource& model : models) model.context_tokens_max = most;
  }
  serve::RegistryOptions registry{.budget = read_memory_room()};
  if (!options.models.budget.empty()) {
    CAIRN_TRY(registry.budget.bytes, parse_bytes("--models-budget", options.models.budget));
    registry.budget.limited_by = "--models-budget";
  }
  if (options.models.unload_seconds > 0) {
    registry.idle_max = std::chrono::seconds(options.models.unload_seconds);
  }
  serve::LoadTerms terms{.engine = options.engine,
                         .sampling = options.sampling,
                         .turns = {},
                         .open = [](const std::string& path) { return open_model(path); }};
  return serve::ModelRegistry::start(std::move(models), std::move(terms), registry);
}

}  // namespace cairn::cli
