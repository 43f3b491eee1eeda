// `cairn route`: its options, and what is started in which order.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "base/result.h"
#include "cli/commands/commands.h"
#include "cli/options/listen_arguments.h"
#include "cli/options/sandbox_argument.h"
#include "command_line/exit_codes.h"
#include "route/fleet.h"
#include "route/node_link.h"
#include "route/route_app.h"
#include "serve/http/server.h"
#include "serve/keys.h"
#include "serve/request_log.h"
#include "tls/server_trust.h"

namespace cairn::cli {

namespace {

constexpr size_t kListBytesMax = size_t(1) << 20;

struct RouteArguments {
  std::vector<std::string> nodes;
  std::string nodes_path, node_key_path, authority_path;
  ListenArguments listen{"router"};
  std::string metrics_key_path, log_path = "-";
  int32_t requests_max = 1024;
  std::string table_budget = "256M";
  SandboxChoice sandbox;
};

Result<std::vector<route::ListedNode>> read_nodes(const RouteArguments& arguments) {
  if (!arguments.nodes_path.empty()) {
    CAIRN_TRY(const std::string text, read_file(arguments.nodes_path, kListBytesMax));
    return route::parse_nodes(arguments.nodes_path, text);
  }
  std::string text;
  for (const std::string& node : arguments.nodes) text += node + "\n";
  return route::parse_nodes("--node", text);
}

// The first line.
Result<std::string> read_node_key(const std::string& path) {
  if (path.empty()) return std::string();
  serve::Keys checked;  // What a file of keys has to be like.
  CAIRN_TRY(checked.add_file(path, serve::Role::user));
  CAIRN_TRY(const std::string text, read_file(path, kListBytesMax));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line.front() == '#') continue;
    const size_t blank = line.rfind(' ');
    return blank == line.npos ? line : line.substr(blank + 1);
  }
  return fail(ErrorCode::invalid_argument, "{}: expected a key, found none", path);
}

SandboxRules sandbox_rules(const RouteArguments& arguments) {
  SandboxRules rules;
  rules.connects = true;
  allow_replaced(arguments.nodes_path, rules);
  arguments.listen.allow_in(rules);
  return rules;
}

// What is read again: the nodes and the certificate.
void read_again(const RouteArguments& arguments, route::Fleet& fleet, serve::http::Server& server) {
  Result<std::vector<route::ListedNode>> nodes = read_nodes(arguments);
  Result<ListenArguments::Identity> tls = arguments.listen.read_certificate();
  if (!nodes || !tls) {
    log::error("SIGHUP: what was read before stays in force: {}",
               nodes ? tls.error().message : nodes.error().message);
    return;
  }
  fleet.set_nodes(*nodes);
  if (*tls != nullptr) server.set_tls(std::move(*tls));
  log::warning("SIGHUP: nodes and certificates are read again");
}

// The server goes first, then the app, then what carries its requests.
Result<int> route_requests(const RouteArguments& arguments) {
  if (arguments.nodes.empty() == arguments.nodes_path.empty()) {
    return fail(ErrorCode::invalid_argument, "--node and --nodes: expected one of them, found {}",
                arguments.nodes.empty() ? "none" : "both");
  }
  CAIRN_TRY(const std::vector<route::ListedNode> nodes, read_nodes(arguments));
  CAIRN_TRY(const uint64_t table_bytes, parse_bytes("--table-budget", arguments.table_budget));
  CAIRN_TRY(std::string key, read_node_key(arguments.node_key_path));
  serve::Keys metrics_keys;
  if (!arguments.metrics_key_path.empty()) {
    CAIRN_TRY(metrics_keys.add_file(arguments.metrics_key_path, serve::Role::admin));
  }
  CAIRN_TRY(ListenArguments::Identity identity, arguments.listen.read_certificate());
  CAIRN_TRY(std::shared_ptr<const tls::ServerTrust> trust,
            tls::ServerTrust::read(arguments.authority_path));
  CAIRN_TRY(std::unique_ptr<serve::RequestLog> request_log,
            serve::RequestLog::open(arguments.log_path == "none" ? "" : arguments.log_path));
  CAIRN_TRY(const bool is_sandboxed, enter_sandbox(arguments.sandbox, sandbox_rules(arguments)));
  std::random_device device;
  route::Fleet fleet({.table_bytes_max = table_bytes, .seed = device()});
  fleet.set_nodes(nodes);
  route::NodeLink link(&fleet, {.trust = std::move(trust), .key = std::move(key)});
  route::RouteApp app(&fleet, &link, std::move(request_log),
                      {.origins = arguments.listen.origins(),
                       .metrics_keys = std::move(metrics_keys),
                       .requests_max = arguments.requests_max});
  CAIRN_TRY(std::unique_ptr<serve::http::Server> server,
            serve::http::Server::listen(arguments.listen.address(std::move(identity)),
                                        {.connections_max = 4096}, &app));
  if (is_sandboxed) CAIRN_TRY(seal_sandbox(true));
  server->catch_signals();
  if (!arguments.nodes_path.empty() || arguments.listen.has_certificate()) {
    server->catch_hangups([&] { read_again(arguments, fleet, *server); });
  }
  std::fprintf(stderr, "router: %s\n", printable(server->url()).c_str());
  const bool is_drained = server->run();
  server.reset();
  return is_drained ? command_line::kExitFine : command_line::kExitInterrupted;
}

void add_node_options(command_line::Options& command, RouteArguments& arguments) {
  command.begin_group("Nodes");
  command
      .add("--node", arguments.nodes,
           "a server: http://HOST:PORT, https://HOST:PORT or unix:FILE; given once for each")
      .takes("URL")
      .repeatable();
  command
      .add(
          "--nodes", arguments.nodes_path,
          "a file with a server in each line, read again on SIGHUP; those that are gone from it or "
          "have \"drain \" before them finish what they have and get nothing new")
      .takes("FILE");
  command
      .add("--node-key-file", arguments.node_key_path,
           "a key by which the router sees the servers' metrics, where they have keys")
      .takes("FILE");
  command
      .add("--node-cacert", arguments.authority_path,
           "by whose certificates servers under https are believed; default: the system's")
      .takes("FILE");
}

void add_router_options(command_line::Options& command, RouteArguments& arguments) {
  command.begin_group("Router");
  arguments.listen.add_address_to(command, "keys are asked for by the servers, not by the router");
  command
      .add("--requests-max", arguments.requests_max,
           "requests that are on their way at a time; more are refused with status 429")
      .in_range(1, 65535)
      .shows_default();
  command
      .add("--table-budget", arguments.table_budget,
           "memory for what the servers are known to have read, at most; 192 KiB for each server "
           "are used, and no less than 24 MiB")
      .takes("SIZE")
      .shows_default();
  command
      .add("--request-log", arguments.log_path,
           "a line of JSON for each request, without prompts: a file, - for stdout, or none")
      .takes("FILE")
      .shows_default();
  command
      .add("--metrics-key-file", arguments.metrics_key_path,
           "keys of those who may see the router's /metrics; without it this machine alone may")
      .takes("FILE");
  arguments.listen.add_certificate_to(command);
  arguments.listen.add_allowed_hosts_to(command);
  arguments.listen.add_origins_to(command);
}

command_line::Action add_route(command_line::Options& command) {
  const auto arguments = std::make_shared<RouteArguments>();
  add_node_options(command, *arguments);
  add_router_options(command, *arguments);
  add_sandbox(command, arguments->sandbox);
  command.set_notes(
      "Each request goes to the server where its answer begins soonest: (what of its prompt was "
      "not "
      "read there) x pace + queue. Replies say why (X-Cairn-Route); docs/routing.md explains it.\n"
      "Servers are to be told of the router: cairn serve --trusted-proxy ADDRESS.\n"
      "The first SIGTERM ends the listening and finishes what is on its way, the second one ends "
      "at "
      "once.\n");
  command.add_example("cairn route --node http://10.0.0.1:8080 --node http://10.0.0.2:8080",
                      "on http://127.0.0.1:8080");
  command.add_example(
      "cairn route --nodes NODES --host 0.0.0.0 --tls-cert CHAIN.pem --tls-key KEY.pem",
      "for other machines");
  return [arguments]() -> Result<int> { return route_requests(*arguments); };
}

}  // namespace

const command_line::Command kRouteCommand = {
    "route", "send requests to the server that answers soonest", add_route};

}  // namespace cairn::cli
