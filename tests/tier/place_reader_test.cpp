// Machines whose replies go wrong in every way, one of them or all: whoever borrows from them has
// the right bits, waits for no longer than he may, and soon leaves them alone.
#include "tier/place_reader.h"

#include <gtest/gtest.h>

#include "tests/tier/middle.h"
#include "tests/tier/shared_peers.h"

namespace cairn::test::place_reader_test {
namespace {

using std::chrono::milliseconds;
using tier::Outcome;

class HostilePeerTest : public test::SharedPeers {
 protected:
  void SetUp() override {
    tier::TierOptions seen = peer_options();
    seen.peers.address = middle_.address();
    lender_ = machine(seen);
    middle_.pass_on_to(lender_.port->listens_at());
    whole_ = converse(*lender_);
    values_ = server_.values();
  }
  // Those who have borrowed something are not asked.
  void forget_borrowers() {
    server_.clear();
    for (const auto& [key, value] : values_) server_.set(key, value);
  }

  test::Middle middle_;
  Machine lender_;
  Tokens whole_;
  std::map<std::string, std::string> values_;
};

// The k-th reply, for every k until none goes wrong: the greeting, the manifest, what is there, the
// records.
TEST_P(HostilePeerTest, EveryReplyMayGoWrongOnce) {
  for (const test::Fault fault : test::kFaults) {
    const bool is_late = fault == test::Fault::slow || fault == test::Fault::silent;
    tier::TierOptions options = peer_options();
    if (is_late) {
      options.times.look_up = options.times.connect = milliseconds(100);
      options.times.first_fetch = milliseconds(300);
    }
    int computed_at_most = 0;
    for (int first = 1;; ++first) {
      forget_borrowers();
      middle_.fail(fault, first);
      Machine second = machine(options);
      const PromptReport report = read_rightly(*second, whole_);
      computed_at_most = std::max(computed_at_most, report.computed_tokens);
      ASSERT_LT(first, 100);
      EXPECT_FALSE(stats(*second).is_open) << "the tier has done nothing";
      if (middle_.failed() == 0) {
        if (!is_late) {
          EXPECT_EQ(report.computed_tokens, 0) << name_of(fault) << " of nothing: " << report.tier;
        }
        break;
      }
      if (::testing::Test::HasFailure()) {
        ADD_FAILURE() << name_of(fault) << " of reply " << first;
        return;
      }
    }
    EXPECT_GT(computed_at_most, 0) << name_of(fault);
  }
}

// All of them, all the time.
TEST_P(HostilePeerTest, EveryReplyMayGoWrong) {
  for (const test::Fault fault : test::kFaults) {
    forget_borrowers();
    middle_.fail(fault, 1, 1);
    tier::TierOptions options = peer_options();
    options.times.connect = options.times.look_up = milliseconds(100);
    Machine second = machine(options);
    for (int tries = 0; tries < 3; ++tries) {
      (*second).cache().clear();
      EXPECT_EQ(read_rightly(*second, whole_).computed_tokens, int32_t(whole_.size()))
          << name_of(fault);
    }
    EXPECT_EQ(outcomes(*second, Outcome::fetched), 0u) << name_of(fault);
    // One failure is enough.
    EXPECT_GE(asked(*second, Outcome::paused), 1u) << name_of(fault);
  }
}

// A record that is not what it was asked for is counted; three of them, and for ten minutes nothing
// is asked of that machine.
TEST_P(HostilePeerTest, AMachineThatLiesIsNotAsked) {
  Machine second = machine(peer_options());
  // The third reply is the manifest, behind the greeting and the proof; on one connection the
  // first one.
  for (int tries = 0; tries < 3; ++tries) {
    middle_.fail(test::Fault::flip, tries == 0 ? 3 : 1);
    (*second).cache().clear();
    EXPECT_EQ(read_rightly(*second, whole_).tier, "damaged") << tries;
    EXPECT_EQ(middle_.failed(), 1) << tries;
  }
  middle_.fail(test::Fault::none, 1);
  (*second).cache().clear();
  EXPECT_EQ(read_rightly(*second, whole_).tier, "paused");
  EXPECT_GE(stats(*second).refused_records, 3u);
  EXPECT_FALSE(stats(*second).is_open) << "the tier has done nothing";
}

// In the midst of its records it goes: what has come is no use, and the rest is computed.
TEST_P(HostilePeerTest, AMachineThatDiesMeanwhile) {
  Machine second = machine(peer_options());
  middle_.fail(test::Fault::cut, 14);
  const PromptReport report = read_rightly(*second, whole_);
  EXPECT_FALSE(report.tier.empty());
  lender_ = {};
  (*second).cache().clear();
  EXPECT_EQ(read_rightly(*second, whole_).computed_tokens, int32_t(whole_.size()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, HostilePeerTest, ::testing::Values("llama", "granitehybrid"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace cairn::test::place_reader_test
