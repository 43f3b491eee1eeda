// Machines that lend each other records under TLS: who is not believed, or speaks none, is a miss
// with a reason, and the bits are the same.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "base/machine/descriptor.h"
#include "tests/serve/certificates.h"
#include "tests/tier/shared_peers.h"
#include "tests/tls/certificate_shower.h"

namespace cairn::test::secure_peers_test {
namespace {

using serve::CertificateTerms;
using serve::make_pair_in;
using serve::Pair;
using tier::Outcome;

constexpr char kHere[] = "IP:127.0.0.1";

class SecurePeersTest : public test::SharedPeers {
 protected:
  // Of one that shows this certificate and believes the authority.
  tier::TierOptions secure_options(const Pair& pair) const {
    tier::TierOptions made = peer_options();
    made.peers.certificate_path = pair.certificate;
    made.peers.tls_key_path = pair.key;
    made.peers.authority_path = authority_.certificate;
    return made;
  }
  Pair pair(const std::string& name, CertificateTerms terms = {.names = kHere}) const {
    if (terms.authority == nullptr) terms.authority = &authority_;
    return make_pair_in(folder_.path(), name, terms);
  }
  // It is a miss: all is computed, with the right bits.
  void expect_unreached(const tier::TierOptions& options, const Tokens& whole) {
    Machine asker = machine(options);
    const PromptReport report = read_rightly(*asker, whole);
    EXPECT_EQ(report.computed_tokens, int32_t(whole.size()));
    EXPECT_EQ(report.tier, "unreachable");
    EXPECT_GE(asked(*asker, Outcome::unreachable), 1u);
    EXPECT_FALSE(stats(*asker).is_open) << "the tier has done nothing";
  }
  // The lender's thread counts when it hears how the handshakes ended.
  static void expect_a_stranger(Engine& lender) {
    for (int look = 0; look < 500 && stats(lender).peer_strangers == 0; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_GE(stats(lender).peer_strangers, 1u);
  }

  Pair authority_ = make_pair_in(folder_.path(), "authority", {.is_authority = true});
};

TEST_P(SecurePeersTest, AnotherMachineComputesNothing) {
  Machine first = machine(secure_options(pair("first")));
  const Tokens whole = converse(*first);
  Machine second = machine(secure_options(pair("second")));
  const PromptReport report = read_rightly(*second, whole);
  EXPECT_EQ(report.computed_tokens, 0) << report.tier;
  EXPECT_TRUE(report.from_peer);
  EXPECT_EQ(stats(*first).peer_strangers, 0u);
}

// Where addresses come and go, certificates have a name that all machines share.
TEST_P(SecurePeersTest, CertificatesMayBeForTheNameOfAll) {
  tier::TierOptions named = secure_options(pair("fleet", {.names = "DNS:fleet.example"}));
  named.peers.name = "fleet.example";
  Machine first = machine(named);
  const Tokens whole = converse(*first);
  {
    Machine second = machine(named);
    EXPECT_EQ(read_rightly(*second, whole).computed_tokens, 0);
  }
  named.peers.name = "other.example";
  expect_unreached(named, whole);
}

TEST_P(SecurePeersTest, OthersCertificatesAreNotBelieved) {
  const Pair stranger = make_pair_in(folder_.path(), "x", {.serial = 2, .is_authority = true});
  const CertificateTerms wrong[] = {{.names = "IP:127.0.0.2"},
                                    {.names = "DNS:localhost"},
                                    {.names = kHere, .authority = &stranger}};
  for (const CertificateTerms& terms : wrong) {
    SCOPED_TRACE(terms.names);
    server_.clear();
    Machine first = machine(secure_options(pair("first", terms)));
    const Tokens whole = converse(*first);
    expect_unreached(secure_options(pair("second")), whole);
    EXPECT_EQ(stats(*first).lent_records, 0u);
    expect_a_stranger(*first);
  }
}

// Who does not believe a certificate may leave with the connection reset: no byte tells of it.
TEST_P(SecurePeersTest, WhoLeavesWithinTheHandshakesIsAStranger) {
  Machine first = machine(secure_options(pair("first")));
  const std::string address = first.port->address();
  sockaddr_in there = {};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = htons(uint16_t(std::stoi(address.substr(address.rfind(':') + 1))));
  {
    const Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(client.number(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    const int socket = client.number();
    ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  }
  expect_a_stranger(*first);
}

// No machine begins with one; it may become so while the machine runs.
TEST_P(SecurePeersTest, ExpiredCertificatesAreNotBelieved) {
  const Pair expired = pair("expired", {.begin_days = -9, .end_days = -2, .names = kHere});
  EXPECT_FALSE(bool(tier::PeerServer::listen(secure_options(expired))));
  const test::CertificateShower shower(expired);
  tier::TierOptions elsewhere = secure_options(pair("first"));
  elsewhere.peers.address = "127.0.0.1:" + shower.port();
  Machine first = machine(elsewhere);
  const Tokens whole = converse(*first);
  expect_unreached(secure_options(pair("second")), whole);
  EXPECT_FALSE(shower.has_heard());
}

TEST_P(SecurePeersTest, PlainMachinesAndThoseUnderTlsDoNotMeet) {
  Machine first = machine(secure_options(pair("first")));
  const Tokens whole = converse(*first);
  expect_unreached(peer_options(), whole);
  EXPECT_EQ(stats(*first).lent_records, 0u);
  expect_a_stranger(*first);
  first = {};
  server_.clear();
  Machine plain = machine(peer_options());
  ASSERT_EQ(converse(*plain), whole);
  expect_unreached(secure_options(pair("second")), whole);
  EXPECT_EQ(stats(*plain).lent_records, 0u);
  expect_a_stranger(*plain);
}

// A file that was replaced is for connections that come.
TEST_P(SecurePeersTest, CertificatesAreReadAgain) {
  const Pair own = pair("first");
  Machine first = machine(secure_options(own));
  const Tokens whole = converse(*first);
  const Pair other = pair("other", {.names = "IP:127.0.0.2"});
  std::filesystem::copy_file(other.certificate, own.certificate,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(bool(first.port->read_again())) << "the key is another one's";
  {
    Machine second = machine(secure_options(pair("second")));
    EXPECT_EQ(read_rightly(*second, whole).computed_tokens, 0) << "what was there stays";
  }
  std::filesystem::copy_file(other.key, own.key, std::filesystem::copy_options::overwrite_existing);
  ASSERT_TRUE(bool(first.port->read_again()));
  const uint64_t lent = stats(*first).lent_records;
  Machine third = machine(secure_options(pair("third")));
  const PromptReport report = read_rightly(*third, whole);
  EXPECT_EQ(report.computed_tokens, int32_t(whole.size()));
  EXPECT_EQ(report.tier, "unreachable");
  EXPECT_EQ(stats(*first).lent_records, lent);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SecurePeersTest, ::testing::Values("llama", "granitehybrid"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace cairn::test::secure_peers_test
