// Names of options, and what their words mean.
#include "cli/options/tier_arguments.h"

#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "cli/options/listen_arguments.h"

namespace cairn::cli {

void TierArguments::add_to(command_line::Options& command) {
  command.begin_group("A store that several machines share (docs/tier.md)");
  command
      .add("--tier", options_.url,
           "where it is: redis://HOST:PORT, rediss://HOST:PORT (TLS) or unix:PATH")
      .takes("URL");
  command
      .add("--tier-login", options_.login_file,
           "a file with USER:PASSWORD, or with the password alone")
      .takes("FILE");
  command
      .add("--tier-key", options_.key_file,
           "a file with a secret of 32 bytes or more, the same on all machines: records that were "
           "written without it are refused")
      .takes("FILE");
  command
      .add("--tier-cacert", options_.authority_path,
           "certificates (PEM) by which the server of a rediss:// URL is believed; default: those "
           "of the system")
      .takes("FILE");
  command
      .add("--tier-publish", publishing_,
           "what is sent there: what was used twice, all of it, or nothing")
      .one_of({"second-use", "all", "nothing"})
      .shows_default();
  command
      .add("--tier-fetch", fetching_,
           "when a prompt is fetched from there: where computing it would take longer, or always")
      .one_of({"cheaper", "always"})
      .shows_default();
  command
      .add("--peer-listen", options_.peers.listen,
           "lend what this machine has in memory and on its disk to others that share the tier, on "
           "this address and port, and borrow from them")
      .takes("HOST:PORT");
  command
      .add("--peer-address", options_.peers.address,
           "where others find that, if they see another address; port 0: the same")
      .takes("HOST:PORT");
  command.add("--peer-rate", megabytes_, "megabytes a second that are lent, at most")
      .takes("N")
      .in_range(1, 100000)
      .shows_default();
  add_certificate(command, "peer-tls",
                  "this machine's certificate in PEM for that port, and those that vouch for it: "
                  "records are lent and borrowed under TLS then",
                  options_.peers.certificate_path, options_.peers.tls_key_path);
  command
      .add("--peer-cacert", options_.peers.authority_path,
           "certificates (PEM) by which other machines are believed; default: those of the system")
      .takes("FILE");
  command
      .add("--peer-name", options_.peers.name,
           "what the certificates of all machines are for; default: for the address of each")
      .takes("NAME");
  command.add("--tier-ttl", seconds_, "seconds after which what nobody uses goes from there")
      .takes("N")
      .in_range(1, 30 * 86400)
      .shows_default();
}

Status TierArguments::check_peers(const tier::PeerOptions& peers) {
  const auto lacks = [](std::string_view option, std::string_view other) {
    return fail(ErrorCode::invalid_argument, "{}: expected {} beside it, found none", option,
                other);
  };
  const std::pair<std::string_view, const std::string*> settings[] = {
      {"--peer-address", &peers.address},
      {"--peer-tls-cert", &peers.certificate_path},
      {"--peer-tls-key", &peers.tls_key_path},
      {"--peer-cacert", &peers.authority_path},
      {"--peer-name", &peers.name}};
  for (const auto& [name, value] : settings) {
    if (peers.listen.empty() && !value->empty()) return lacks(name, "--peer-listen");
  }
  CAIRN_TRY(check_certificate("peer-tls", peers.certificate_path, peers.tls_key_path));
  for (const auto& [name, value] : std::span(settings).subspan(3)) {
    if (peers.certificate_path.empty() && !value->empty()) return lacks(name, "--peer-tls-cert");
  }
  return Ok{};
}

// Errors name the option. What is not there is found out by using it.
Result<tier::TierOptions> TierArguments::read() const {
  tier::TierOptions tier = options_;
  if (tier.url.empty()) {
    const std::pair<std::string_view, const std::string*> files[] = {
        {"--tier-login", &tier.login_file},
        {"--tier-key", &tier.key_file},
        {"--tier-cacert", &tier.authority_path}};
    for (const auto& [name, file] : files) {
      if (file->empty()) continue;
      return fail(ErrorCode::invalid_argument, "{}: expected --tier beside it, found none", name);
    }
    if (!tier.peers.listen.empty()) {
      return fail(ErrorCode::invalid_argument,
                  "--peer-listen: expected --tier beside it, where others learn of it, found none");
    }
    CAIRN_TRY(check_peers(tier.peers));
    return tier;
  }
  CAIRN_TRY(check_peers(tier.peers));
  tier.peers.bytes_per_second = uint64_t(megabytes_) * 1'000'000;
  tier.publishing = publishing_ == "all"       ? tier::Publishing::all
                    : publishing_ == "nothing" ? tier::Publishing::nothing
                                               : tier::Publishing::second_use;
  tier.fetching = fetching_ == "always" ? tier::Fetching::always : tier::Fetching::cheaper;
  tier.times.kept = std::chrono::seconds(seconds_);
  return tier;
}

}  // namespace cairn::cli
