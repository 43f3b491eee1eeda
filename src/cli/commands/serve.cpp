// The options of `cairn serve`, and what is started in which order.
#include "cli/commands/serve.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/machine/descriptor.h"
#include "base/machine/memory_reserve.h"
#include "base/printable.h"
#include "base/trace/trace.h"
#include "cli/commands/commands.h"
#include "cli/commands/find_model.h"
#include "cli/commands/load.h"
#include "cli/options/engine_arguments.h"
#include "cli/options/model_argument.h"
#include "cli/options/preset_values.h"
#include "cli/options/sampling_arguments.h"
#include "cli/options/tier_arguments.h"
#include "command_line/exit_codes.h"
#include "hub/model_folder.h"
#include "serve/app.h"
#include "session/service.h"
#include "tier/tier_member.h"

namespace cairn::cli {

namespace {

Result<serve::Keys> read_keys(const ServeOptions& options) {
  serve::Keys keys;
  if (!options.api_key.empty()) {
    if (!options.is_variable_key) {
      log::warning("--api-key: others on this machine can see it; use --api-key-file");
    }
    CAIRN_TRY(keys.add(options.api_key, serve::Role::user));
  }
  if (!options.api_key_path.empty()) {
    CAIRN_TRY(keys.add_file(options.api_key_path, serve::Role::user));
  }
  if (!options.admin_key_path.empty()) {
    CAIRN_TRY(keys.add_file(options.admin_key_path, serve::Role::admin));
  }
  return keys;
}

// Where others can reach it, a server without keys would be everybody's.
Status check_address(const ServeOptions& options, const serve::Keys& keys) {
  if (options.listen.is_unix()) return Ok{};
  CAIRN_TRY(const bool is_local, serve::http::is_loopback(options.listen.host()));
  if (is_local || !keys.is_empty()) return Ok{};
  if (options.has_no_keys) {
    log::warning("--insecure-no-auth: whoever can reach {} can use this server",
                 options.listen.host());
    return Ok{};
  }
  return fail(ErrorCode::invalid_argument,
              "host: expected this machine's own address where there are no keys, found {}; give "
              "the server keys (--api-key-file), or --insecure-no-auth",
              options.listen.host());
}

// What is read again while the server runs.
struct AccessFiles {
  serve::Keys keys;
  ListenArguments::Identity tls;
};

Result<AccessFiles> read_access(const ServeOptions& options) {
  AccessFiles files;
  CAIRN_TRY(files.keys, read_keys(options));
  if (const Status may = check_address(options, files.keys); !may)
    return command_line::as_option(may.error());
  CAIRN_TRY(files.tls, options.listen.read_certificate());
  return files;
}

// Where nothing of it is a file, SIGHUP means what it means to other programs: the terminal has
// gone.
bool has_access_files(const ServeOptions& options) {
  return !options.api_key_path.empty() || !options.admin_key_path.empty() ||
         options.listen.has_certificate() || !options.tier.peers.certificate_path.empty();
}

void read_access_again(const ServeOptions& options, serve::App& app, serve::http::Server& server,
                       tier::PeerServer* peers) {
  Result<AccessFiles> files = read_access(options);
  const Status of_peers = files && peers != nullptr ? peers->read_again() : Status(Ok{});
  if (!files || !of_peers) {
    log::error("SIGHUP: what was read before stays in force: {}",
               files ? of_peers.error().message : files.error().message);
    return;
  }
  app.set_keys(std::move((*files).keys));
  if ((*files).tls != nullptr) server.set_tls(std::move((*files).tls));
  log::warning("SIGHUP: keys and certificates are read again");
}

// What the model is for: text, unless the file says how its vectors are pooled.
Result<std::optional<Pooling>> pooling_for(const ServeOptions& options, const gguf::File& file) {
  if (options.pooling.empty()) return pooling_of(file);
  CAIRN_TRY(const Pooling pooling, parse_pooling("--pooling", options.pooling));
  return std::optional(pooling);
}

std::string file_stem(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

// The only model, which is loaded now. Its app goes before the service, and this before the engine.
struct OnlyModel {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<session::Service> service;
};

Result<std::unique_ptr<serve::ModelRegistry>> load_only_model(const ServeOptions& options,
                                                              OnlyModel& only) {
  CAIRN_TRY(check_model_name(options.model_path));
  CAIRN_TRY(check_only_digest(options));
  CAIRN_TRY(gguf::File file, open_model(options.model_path));
  EngineOptions engine_options = options.engine;
  CAIRN_TRY(engine_options.pooling, pooling_for(options, file));
  const bool is_builtin = options.model_path.empty();
  CAIRN_TRY(std::string name,
            only_name(options.models, is_builtin                   ? "cairn-nano"
                                      : options.model_name.empty() ? file_stem(file.name())
                                                                   : options.model_name));
  CAIRN_TRY(only.engine, load_engine(std::move(file), std::move(engine_options)));
  CAIRN_TRY(
      sample::SamplingParams sampling,
      session::effective_sampling(only.engine->file().fields(), is_builtin, options.sampling));
  const Status biased = sample::check_logit_bias(sampling, only.engine->size().vocabulary_count);
  if (!biased) return command_line::as_option(biased.error());
  CAIRN_TRY(only.service, session::Service::start(only.engine.get()));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return serve::ModelRegistry::of(
      {.service = only.service.get(),
       .name = std::move(name),
       .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
       .sampling = std::move(sampling),
       .has_seed = options.sampling.seed.has_value()});
}

// All that the server opens from here on. Keys and certificates are read again, from files that may
// have taken their names.
SandboxRules sandbox_rules(const ServeOptions& options) {
  SandboxRules rules;
  allow_model(options.model_path, rules);
  for (const std::string& alias : options.models.aliases) {
    if (const size_t equals = alias.find('='); equals != alias.npos) {
      allow_model(alias.substr(equals + 1), rules);
    }
  }
  for (const hub::KeptModel& kept : options.models.listed.kept) {
    for (const std::string& path : kept.paths) allow_model(path, rules);
  }
  allow_engine(options.engine, rules);
  allow_tier(options.tier, rules);
  allow_replaced(options.api_key_path, rules);
  allow_replaced(options.admin_key_path, rules);
  options.listen.allow_in(rules);
  if (options.log_path != "-" && options.log_path != "none") {
    // It is there from now on. What is wrong with it, the log says when it opens it.
    const Descriptor made(::open(options.log_path.c_str(),
                                 O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                                 0600));
    rules.writable.push_back(options.log_path);
  }
  return rules;
}

serve::AppOptions app_options(const ServeOptions& options, serve::Keys keys) {
  serve::AppOptions app{.keys = std::move(keys),
                        .requests_max = options.requests_max,
                        .tenant_share_percent = options.tenant_share_percent,
                        .request_seconds_max = double(options.request_seconds_max),
                        .log_path = options.log_path == "none" ? "" : options.log_path};
  app.sessions.unused_max = std::chrono::seconds(options.session_seconds_max);
  if (!options.engine.cache_dir.empty()) {
    app.session_folder = options.engine.cache_dir + "/sessions";
  }
  app.proxies = options.proxies;
  app.origins = options.listen.origins();
  return app;
}

void add_server_options(command_line::Options& command, ServeOptions& serve) {
  command.begin_group("Server");
  add_model(command, serve.model_path);
  add_models_options(command, serve.models);
  serve.listen.add_address_to(command, "any but this machine's own needs keys");
  command
      .add("--pooling", serve.pooling,
           "serve embeddings, pooled so: mean, cls or last; default: what the file says")
      .takes("KIND")
      .suggests({"mean", "cls", "last"});
  command
      .add("--requests-max", serve.requests_max,
           "requests that are answered at a time; more are refused with status 429")
      .in_range(1, 1024)
      .shows_default();
  command
      .add("--timeout", serve.request_seconds_max,
           "the longest time for an answer, in seconds; 0: no limit")
      .in_range(0, 1 << 20)
      .shows_default();
  command
      .add("--session-ttl", serve.session_seconds_max,
           "forget a session (/v1/sessions) that nobody has used for so many seconds, on the disk "
           "too; 0: never")
      .in_range(0, 1 << 30)
      .takes("SECONDS")
      .shows_default();
  command
      .add("--drain-seconds", serve.drain_seconds,
           "after SIGTERM, take new requests for so long, while /health says 503: as long as a "
           "proxy needs to notice")
      .in_range(0, 3600)
      .takes("SECONDS")
      .shows_default();
  command
      .add("--request-log", serve.log_path,
           "a line of JSON for each request, without prompts: a file, - for stdout, or none")
      .takes("FILE")
      .shows_default();
  command
      .add("--trace", serve.trace_path,
           "write when the engine computed, read and loaded what, and how long requests waited, to "
           "this file, which Perfetto (ui.perfetto.dev) shows; no prompts; at most 256 MiB")
      .takes("FILE");
}

void add_access_options(command_line::Options& command, ServeOptions& serve) {
  command.begin_group("Access");
  command
      .add("--api-key-file", serve.api_key_path,
           "keys, one in each line, of which requests must show one (Authorization: Bearer KEY); "
           "its owner alone may read the file")
      .takes("FILE");
  command
      .add("--admin-key-file", serve.admin_key_path,
           "the same for those who may see the server's metrics; others may not then")
      .takes("FILE");
  command.add("--api-key", serve.api_key, "one key; better as the variable CAIRN_API_KEY")
      .takes("KEY")
      .notes_variable(serve.is_variable_key);
  command
      .add("--tenant-share", serve.tenant_share_percent,
           "what the tenants of several keys each keep of memory and of the disk's budget whatever "
           "others ask, in percent of an even part; 0: nothing")
      .in_range(0, 100)
      .takes("PERCENT")
      .shows_default();
  serve.listen.add_certificate_to(command);
  command.add_flag("--insecure-no-auth", serve.has_no_keys,
                   "listen on any address without keys: whoever reaches the server may use it");
  serve.listen.add_allowed_hosts_to(command);
  command
      .add("--trusted-proxy", serve.proxies,
           "the address of a router or proxy (unix: whoever uses the Unix socket), which may have "
           "as "
           "many connections as it likes and is believed for whom it asks (X-Forwarded-For): wrong "
           "keys count for them; may be given several times")
      .takes("ADDRESS")
      .repeatable();
  serve.listen.add_origins_to(command);
}

struct ServeArguments {
  ServeOptions serve;
  EngineArguments engine;
  TierArguments tier;
  SamplingArguments sampling;
};

command_line::Action add_serve(command_line::Options& command) {
  const auto a = std::make_shared<ServeArguments>();
  add_server_options(command, a->serve);
  add_access_options(command, a->serve);
  a->sampling.add_to(command);
  a->engine.add_to(command);
  a->engine.add_program_to(command);
  a->engine.add_memory_to(command);
  a->engine.add_store_to(command);
  a->tier.add_to(command);
  a->engine.add_drafts_to(command);
  command.set_preset([a] { return read_preset(a->serve.model_path); });
  add_sandbox(command, a->serve.sandbox);
  command.set_notes(
      "The interface is OpenAI's: POST /v1/chat/completions, /v1/responses, /v1/completions, "
      "/v1/embeddings; and those of Anthropic, Ollama and llama.cpp's server. /openapi.json "
      "describes it, docs/server.md explains it. Sampling options are the defaults of requests.\n"
      "After the first SIGTERM /health says 503, nothing new is begun (--drain-seconds), and what "
      "is "
      "being answered is finished; the second one ends at once. SIGHUP reads the files of keys and "
      "certificates again.\n");
  command.add_example("cairn serve MODEL.gguf", "on http://127.0.0.1:8080");
  command.add_example("cairn serve DIR", "all models of a folder, loaded when they are asked for");
  command.add_example("cairn serve --all-models", "all models that `cairn list` shows");
  command.add_example("cairn serve MODEL.gguf --host 0.0.0.0 --api-key-file KEYS",
                      "for other machines");
  command.add_example(
      "cairn serve MODEL.gguf --host 0.0.0.0 --api-key-file KEYS --tls-cert CHAIN.pem "
      "--tls-key KEY.pem",
      "where the network is not trusted");
  return [a]() -> Result<int> {
    CAIRN_TRY(a->serve.engine, a->engine.read("f16"));
    CAIRN_TRY(a->serve.tier, a->tier.read());
    CAIRN_TRY(a->serve.sampling, a->sampling.read());
    const std::string named = a->serve.model_path;
    CAIRN_TRY(a->serve.model_path, find_model(named));
    if (a->serve.model_path != named && hub::is_alias(named)) a->serve.model_name = named;
    CAIRN_TRY(find_alias_models(a->serve.models));
    return serve_model(a->serve);
  };
}

}  // namespace

// The server goes before the app, and this before the models: who stands later uses who stands
// earlier.
Result<int> serve_model(const ServeOptions& given) {
  keep_memory_reserve();
  ServeOptions options = given;
  // Goes last: whatever is served tells it something.
  std::unique_ptr<Trace> trace;
  if (!options.trace_path.empty()) {
    CAIRN_TRY(trace, Trace::open(options.trace_path));
  }
  options.engine.trace = trace.get();
  CAIRN_TRY(AccessFiles access, read_access(options));
  // While nobody listens, the files are read anyway, or not needed any more.
  const auto outlive_hangups = [&] {
    if (has_access_files(options)) (void)std::signal(SIGHUP, SIG_IGN);
  };
  outlive_hangups();
  if (options.models.takes_all) {
    CAIRN_TRY(options.models.listed, list_all_models());
  }
  CAIRN_TRY(const bool is_sandboxed, enter_sandbox(options.sandbox, sandbox_rules(options)));
  options.engine.is_cache_lent = !options.tier.peers.listen.empty();
  std::shared_ptr<tier::PeerServer> peers;
  if (!options.tier.peers.listen.empty()) {
    CAIRN_TRY(peers, tier::PeerServer::listen(options.tier));
    log::info("records are lent at {}", peers->address());
  }
  options.engine.open_tier = tier::opener_of(options.tier, peers);
  OnlyModel only;
  CAIRN_TRY(std::unique_ptr<serve::ModelRegistry> models,
            has_several_models(options) ? start_models(options) : load_only_model(options, only));
  const size_t model_count = models->list().size();
  const std::string name = model_count == 1 ? models->list().front().source->name
                                            : fmt::format("{} models", model_count);
  CAIRN_TRY(const std::unique_ptr<serve::App> app,
            serve::App::make(std::move(models), app_options(options, std::move(access.keys))));
  CAIRN_TRY(
      std::unique_ptr<serve::http::Server> server,
      serve::http::Server::listen(
          options.listen.address(std::move(access.tls)),
          {.drain_seconds = double(options.drain_seconds), .proxies = options.proxies}, app.get()));
  if (is_sandboxed) CAIRN_TRY(seal_sandbox(!options.tier.url.empty()));
  server->catch_signals();
  if (has_access_files(options)) {
    server->catch_hangups([&] { read_access_again(options, *app, *server, peers.get()); });
  }
  std::fprintf(stderr, "%s: %s\n", printable(name).c_str(), printable(server->url()).c_str());
  const bool is_drained = server->run();
  server.reset();
  outlive_hangups();
  // A load that goes on ends with the app.
  return is_drained ? command_line::kExitFine : command_line::kExitInterrupted;
}

const command_line::Command kServeCommand = {
    "serve", "answer requests over HTTP, as OpenAI's API and others", add_serve};

}  // namespace cairn::cli
