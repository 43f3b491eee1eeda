// What is said to who asks for records: nothing before a proof, no more than is taken, and nothing
// that has another name.
#include "tier/peers/peer_session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace cairn::test::peer_session_test {
namespace {

using tier::PeerSession;
using tier::Secret;

class Records : public PeerSession::Records {
 public:
  bool has(const Sha256Digest& name) override { return values.contains(name); }
  Result<std::vector<std::byte>> read(const Sha256Digest& name) override {
    ++reads;
    if (!has(name)) return fail(ErrorCode::not_found, "no such record");
    return values[name];
  }
  bool admits(PeerSession&) override { return may; }

  std::map<Sha256Digest, std::vector<std::byte>> values;
  bool may = true;
  int reads = 0;
};

class PeerSessionTest : public ::testing::Test {
 protected:
  static std::string command(const std::vector<std::string>& words) {
    std::string text = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) {
      text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    return text;
  }
  bool take(const std::string& text) { return bool(session_.take(std::as_bytes(std::span(text)))); }
  // All that is said, as it is taken, so many bytes at a time.
  std::string said(size_t piece = 1 << 20) {
    std::string text;
    while (session_.output_bytes() > 0) {
      const auto bytes = session_.output().first(std::min(piece, session_.output_bytes()));
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      EXPECT_TRUE(bool(session_.note_sent(bytes.size())));
    }
    return text;
  }
  std::string greet(const Sha256Digest& own) {
    EXPECT_TRUE(take(command({"PEER", hex_of(own)})));
    return said();
  }
  void enter() {
    const Sha256Digest own = tier::new_number();
    const std::string reply = greet(own);
    ASSERT_EQ(reply.size(), 5 + 64 + 2u);
    ASSERT_EQ(reply.substr(0, 5), "$64\r\n");
    Sha256Digest other{};
    std::copy_n(reinterpret_cast<const uint8_t*>(reply.data()) + 5, 32, other.begin());
    const Sha256Digest proof = secret_.proof_of(Secret::Side::lender, own, other);
    EXPECT_EQ(std::memcmp(reply.data() + 37, proof.data(), 32), 0);
    ASSERT_TRUE(take(command({"AUTH", hex_of(secret_.proof_of(Secret::Side::asker, own, other))})));
    EXPECT_EQ(said(), "+OK\r\n");
    EXPECT_TRUE(session_.is_let_in());
  }
  Sha256Digest add(const std::string& text) {
    const Sha256Digest name = Sha256().add(text.substr(0, 100)).finish();
    const auto bytes = std::as_bytes(std::span(text));
    records_.values[name] = {bytes.begin(), bytes.end()};
    return name;
  }
  std::string key(const Sha256Digest& name) const { return secret_.key_of("r:", name); }
  std::string sealed(const std::string& text, const Sha256Digest& name) const {
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
    const Sha256Digest seal = secret_.seal_of(name, parts);
    return "$" + std::to_string(text.size() + 32) + "\r\n" + text +
           std::string(reinterpret_cast<const char*>(seal.data()), 32) + "\r\n";
  }

  Secret secret_{std::string(32, 'k')};
  Records records_;
  PeerSession session_{&secret_, &records_};
};

TEST_F(PeerSessionTest, LendsToWhoHasProvedIt) {
  enter();
  const Sha256Digest name = add("the bytes of a record");
  EXPECT_TRUE(take(command({"EXISTS", key(name)}) + command({"EXISTS", key({})}) +
                   command({"GETEX", key(name), "PX", "1"}) +
                   command({"GETEX", key({}), "PX", "1"})));
  EXPECT_EQ(said(3), ":1\r\n:0\r\n" + sealed("the bytes of a record", name) + "$-1\r\n");
  // Nothing but records, whatever it is called.
  const int reads = records_.reads;
  for (const std::string& other : {secret_.key_of("m:", name), "c1:r:" + hex_of(name),
                                   key(name) + "0", key(name).substr(1), std::string("x")}) {
    EXPECT_TRUE(take(command({"EXISTS", other}) + command({"GETEX", other, "PX", "1"})));
    EXPECT_EQ(said(), ":0\r\n$-1\r\n") << other;
  }
  EXPECT_EQ(records_.reads, reads);
  records_.may = false;
  EXPECT_TRUE(take(command({"GETEX", key(name), "PX", "1"})));
  EXPECT_TRUE(said().starts_with("-BUSY"));
}

TEST_F(PeerSessionTest, AStrangerLearnsNothing) {
  const Sha256Digest name = add("the bytes of a record");
  EXPECT_FALSE(take(command({"EXISTS", key(name)})));
  EXPECT_EQ(said(), "");
  EXPECT_EQ(records_.reads, 0);
}

TEST_F(PeerSessionTest, AWrongProofEndsIt) {
  const Sha256Digest name = add("the bytes of a record"), own = tier::new_number();
  const std::string reply = greet(own);
  // What it has been told is the other side's.
  Sha256Digest theirs{};
  std::copy_n(reinterpret_cast<const uint8_t*>(reply.data()) + 37, 32, theirs.begin());
  EXPECT_FALSE(take(command({"AUTH", hex_of(theirs)}) + command({"EXISTS", key(name)})));
  EXPECT_TRUE(said().starts_with("-NOAUTH"));
  EXPECT_FALSE(session_.is_let_in());
}

TEST_F(PeerSessionTest, AProofBeforeAGreetingIsNone) {
  EXPECT_FALSE(take(command({"AUTH", hex_of(Sha256Digest{})})));
  EXPECT_FALSE(session_.is_let_in());
}

// Who does not take what was said is not told more, and not read.
TEST_F(PeerSessionTest, WaitsForWhoIsSlow) {
  enter();
  const std::string large(200'000, 'x');
  const Sha256Digest name = add(large);
  std::string all;
  for (int times = 0; times < 20; ++times) all += command({"GETEX", key(name), "PX", "1"});
  EXPECT_TRUE(take(all));
  EXPECT_EQ(records_.reads, 1);
  EXPECT_FALSE(session_.wants_bytes());
  std::string expected;
  for (int times = 0; times < 20; ++times) expected += sealed(large, name);
  EXPECT_EQ(said(50'000), expected);
  EXPECT_EQ(records_.reads, 20);
  EXPECT_TRUE(session_.wants_bytes());
}

}  // namespace
}  // namespace cairn::test::peer_session_test
