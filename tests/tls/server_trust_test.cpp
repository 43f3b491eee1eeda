// `cairn run --server https://…`: whom it believes, and what it says of those whom it does not; to
// these nothing is said.
#include "tls/server_trust.h"

#include <gtest/gtest.h>

#include "tests/serve/certificates.h"
#include "tests/serve/server_program.h"
#include "tests/terminal_chat/terminal_program.h"
#include "tests/tls/certificate_shower.h"

namespace cairn::tls::server_trust_test {
namespace {

using cli::Finished;
using cli::run_program;
using test::ScratchFolder;

using serve::CertificateTerms;
using serve::make_pair_in;
using serve::Pair;
using serve::ServerProgram;

constexpr char kHere[] = "DNS:localhost,IP:127.0.0.1";

Finished ask(const std::string& url, const std::string& authority) {
  std::vector<std::string> words = {"run", "--server", url, "-p", "What is the capital of France?"};
  if (!authority.empty()) words.insert(words.end(), {"--cacert", authority});
  return run_program(words);
}

TEST(ServerTrust, WhomAnAuthorityVouchesForIsBelieved) {
  const ScratchFolder folder;
  const Pair authority = make_pair_in(folder.path(), "authority", {.is_authority = true});
  const Pair pair =
      make_pair_in(folder.path(), "server", {.names = kHere, .authority = &authority});
  const ServerProgram server({"--tls-cert", pair.certificate, "--tls-key", pair.key});
  const std::string port = std::to_string(server.port());
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const Finished asked = ask("https://" + host + ":" + port, authority.certificate);
    EXPECT_EQ(asked.out, "The capital of France is Paris.\n") << asked.err;
    EXPECT_EQ(asked.exit_code, 0);
  }
  // The server's own certificate may stand for an authority.
  EXPECT_EQ(ask("https://localhost:" + port, pair.certificate).exit_code, 0);
  // It is the same conversation as over a plain connection.
  const Finished chat = run_program({"run", "--chat", "--server", "https://localhost:" + port,
                                     "--server-ca", authority.certificate},
                                    "My name is Ada.\nWhat is my name?\n");
  EXPECT_NE(chat.out.find("Your name is Ada."), std::string::npos) << chat.err;
}

TEST(ServerTrust, OthersAreRefusedWithWhatWasExpectedAndFound) {
  const ScratchFolder folder;
  const Pair authority = make_pair_in(folder.path(), "authority", {.is_authority = true});
  const Pair stranger =
      make_pair_in(folder.path(), "stranger", {.serial = 2, .is_authority = true});
  struct Case {
    CertificateTerms terms;
    std::string expected;
  };
  const Case cases[] = {
      {{.begin_days = -9, .end_days = -2, .names = kHere, .authority = &authority},
       "localhost: expected a certificate that is valid, found one that has expired at "},
      {{.begin_days = 2, .end_days = 9, .names = kHere, .authority = &authority},
       "localhost: expected a certificate that is valid, found one that will be from "},
      {{.names = "DNS:other.example,IP:127.0.0.2", .authority = &authority},
       "localhost: expected a certificate for it, found one for other.example, 127.0.0.2"},
      {{.authority = &authority}, "expected a certificate for it, found one for no name"},
      {{.names = kHere, .authority = &stranger},
       "expected a certificate of a known authority, found one of \"CN = authority 2\""},
      {{.names = kHere}, "expected a certificate of a known authority, found one of"},
  };
  for (const Case& one : cases) {
    const Pair pair = make_pair_in(folder.path(), "server", one.terms);
    const test::CertificateShower server(pair);
    const Finished asked = ask("https://localhost:" + server.port(), authority.certificate);
    EXPECT_NE(asked.err.find(one.expected), std::string::npos) << asked.err;
    EXPECT_EQ(asked.exit_code, 1);
    EXPECT_EQ(asked.out, "");
    EXPECT_FALSE(server.has_heard()) << one.expected;
  }
  // The system's authorities know none of these; an address is another name.
  const Pair pair =
      make_pair_in(folder.path(), "server", {.names = "DNS:localhost", .authority = &authority});
  const test::CertificateShower server(pair);
  const Finished unknown = ask("https://localhost:" + server.port(), "");
  EXPECT_NE(unknown.err.find("--cacert FILE names one of your own"), std::string::npos)
      << unknown.err;
  const Finished address = ask("https://127.0.0.1:" + server.port(), authority.certificate);
  EXPECT_NE(address.err.find("127.0.0.1: expected a certificate for it, found one for localhost"),
            std::string::npos)
      << address.err;
  EXPECT_FALSE(server.has_heard());
}

TEST(ServerTrust, WrongUsesAreTold) {
  const ScratchFolder folder;
  const Pair authority = make_pair_in(folder.path(), "authority", {.is_authority = true});
  const ServerProgram plain;
  const std::string port = std::to_string(plain.port());
  const Finished none = ask("https://127.0.0.1:" + port, authority.certificate);
  EXPECT_NE(none.err.find("127.0.0.1:" + port + ": expected TLS 1.2 or 1.3, found none"),
            std::string::npos)
      << none.err;
  const Finished open = ask("http://127.0.0.1:" + port, authority.certificate);
  EXPECT_NE(open.err.find("--cacert: expected https://"), std::string::npos) << open.err;
  test::write_to(folder.file("empty.pem"), "nothing\n");
  const Finished empty = ask("https://127.0.0.1:" + port, folder.file("empty.pem"));
  EXPECT_NE(empty.err.find("empty.pem: expected a certificate in PEM, found none"),
            std::string::npos)
      << empty.err;
  EXPECT_FALSE(ServerTrust::read(folder.file("missing.pem")));
}

}  // namespace
}  // namespace cairn::tls::server_trust_test
