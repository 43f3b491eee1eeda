// Names of options, and what their words mean.
#include "cli/options/listen_arguments.h"

#include <filesystem>
#include <utility>

#include "cli/options/sandbox_argument.h"

namespace cairn::cli {

void add_certificate(command_line::Options& command, const std::string& name,
                     const std::string& doc, std::string& certificate_path, std::string& key_path) {
  command.add("--" + name + "-cert", certificate_path, doc).takes("FILE");
  command.add("--" + name + "-key", key_path, "its key in PEM, without a password").takes("FILE");
}

Status check_certificate(std::string_view name, const std::string& certificate_path,
                         const std::string& key_path) {
  if (certificate_path.empty() == key_path.empty()) return Ok{};
  const bool has_key = certificate_path.empty();
  return fail(ErrorCode::invalid_argument, "--{0}-{1}: expected --{0}-{2} beside it, found none",
              name, has_key ? "key" : "cert", has_key ? "cert" : "key");
}

void ListenArguments::add_address_to(command_line::Options& command, const std::string& of_keys) {
  command.add("--host", host_, "the address to listen on; " + of_keys)
      .takes("ADDRESS")
      .shows_default();
  command.add("--port", port_, "the port to listen on; 0: one that is free")
      .in_range(0, 65535)
      .shows_default();
  command
      .add("--unix-socket", unix_path_,
           "listen on this socket instead, which its owner alone may use")
      .takes("FILE");
}

void ListenArguments::add_certificate_to(command_line::Options& command) {
  add_certificate(command, "tls",
                  "the " + program_ +
                      "'s certificate in PEM, and those that vouch for it: connections are TLS "
                      "then",
                  certificate_path_, key_path_);
}

void ListenArguments::add_allowed_hosts_to(command_line::Options& command) {
  command
      .add("--allowed-host", hosts_,
           "a name by which clients reach the " + program_ +
               ", beside localhost and addresses; may be given several times")
      .takes("NAME")
      .repeatable();
}

void ListenArguments::add_origins_to(command_line::Options& command) {
  command
      .add("--cors-origin", origins_,
           "a web page's origin, such as https://chat.example.org, from which browsers may ask; "
           "may be given several times; none: not even pages of this machine")
      .takes("ORIGIN")
      .repeatable();
}

Result<ListenArguments::Identity> ListenArguments::read_certificate() const {
  CAIRN_TRY(check_certificate("tls", certificate_path_, key_path_));
  if (!has_certificate()) return Identity();
  if (is_unix()) {
    return fail(ErrorCode::invalid_argument,
                "--tls-cert: expected an address to listen on, found a Unix socket");
  }
  return tls::ServerIdentity::read(certificate_path_, key_path_);
}

serve::http::Address ListenArguments::address(Identity identity) const {
  return {
      .host = host_, .port = uint16_t(port_), .unix_path = unix_path_, .tls = std::move(identity)};
}

serve::http::OriginRules ListenArguments::origins() const {
  serve::http::OriginRules rules{.hosts = hosts_};
  for (const std::string& origin : origins_) {
    if (origin == "none") {
      rules.allows_local_origins = false;
    } else {
      rules.origins.push_back(origin);
    }
  }
  return rules;
}

void ListenArguments::allow_in(SandboxRules& rules) const {
  allow_replaced(certificate_path_, rules);
  allow_replaced(key_path_, rules);
  if (!is_unix()) return;
  const auto folder = std::filesystem::path(unix_path_).parent_path();
  rules.sockets.push_back(folder.empty() ? "." : folder.string());
}

}  // namespace cairn::cli
