// How a program that others ask listens, where its certificate is, and from which pages browsers
// may ask it: what `cairn serve` and `cairn route` have in common. Knows the options, and nothing
// of what is asked. Errors name the option. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/machine/sandbox.h"
#include "base/result.h"
#include "command_line/command_line.h"
#include "serve/http/origins.h"
#include "serve/http/server.h"
#include "tls/server_identity.h"

namespace cairn::cli {

// --NAME-cert and --NAME-key: a certificate, of which `doc` says whose it is and what for, and its
// key.
void add_certificate(command_line::Options& command, const std::string& name,
                     const std::string& doc, std::string& certificate_path, std::string& key_path);
// Errors: invalid_argument, one of them without the other.
Status check_certificate(std::string_view name, const std::string& certificate_path,
                         const std::string& key_path);

class ListenArguments {
 public:
  // "server" or "router", as the help calls it.
  explicit ListenArguments(std::string program) : program_(std::move(program)) {}

  // --host, with what it says of keys; --port and --unix-socket.
  void add_address_to(command_line::Options& command, const std::string& of_keys);
  void add_certificate_to(command_line::Options& command);
  void add_allowed_hosts_to(command_line::Options& command);
  void add_origins_to(command_line::Options& command);

  const std::string& host() const { return host_; }
  bool is_unix() const { return !unix_path_.empty(); }
  bool has_certificate() const { return !certificate_path_.empty(); }

  using Identity = std::shared_ptr<const tls::ServerIdentity>;
  // Null: connections are plain. Errors: of what does not go together, and of the files.
  Result<Identity> read_certificate() const;
  serve::http::Address address(Identity identity) const;
  serve::http::OriginRules origins() const;
  // The folder of the socket, and the files of the certificate, which is read again.
  void allow_in(SandboxRules& rules) const;

 private:
  std::string program_;
  std::string host_ = serve::http::Address().host, unix_path_;
  int32_t port_ = serve::http::Address().port;
  std::string certificate_path_, key_path_;  // Both, or neither.
  std::vector<std::string> hosts_;           // Allowed, beside addresses.
  std::vector<std::string> origins_;         // Allowed; "none": not even this machine's pages.
};

}  // namespace cairn::cli
