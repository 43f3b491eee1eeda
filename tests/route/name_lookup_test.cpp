// Names that are answered, late or never: who waits is told once, who has gone is not, and nobody
// waits for another name.
#include "route/name_lookup.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cairn::route::name_lookup_test {
namespace {

// In place of the system: what is held is not answered until it is let go.
class Names {
 public:
  ~Names() { let_go(); }
  NameLookup::Ask ask() {
    return [state = state_](const std::string& host, const std::string& port) {
      std::unique_lock lock(state->mutex);
      ++state->asked[host];
      state->changed.notify_all();
      state->changed.wait(lock, [&] { return !state->held.contains(host); });
      NameLookup::Addresses addresses(1);
      addresses[0].size = socklen_t(std::stoi(port));
      return addresses;
    };
  }
  void hold(const std::string& host) {
    const std::lock_guard lock(state_->mutex);
    state_->held.insert(host);
  }
  void let_go() {
    const std::lock_guard lock(state_->mutex);
    state_->held.clear();
    state_->changed.notify_all();
  }
  bool wait_until_asked(const std::string& host) {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock, std::chrono::seconds(60),
                                    [&] { return state_->asked[host] > 0; });
  }
  // Neither a lookup nor one of its threads is there any more.
  bool wait_until_alone() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (state_.use_count() > 1 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return state_.use_count() == 1;
  }
  int asked_count(const std::string& host) {
    const std::lock_guard lock(state_->mutex);
    return state_->asked[host];
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<std::string> held;
    std::map<std::string, int> asked;
  };
  // Of threads that outlive the lookup too.
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// What was told to whom.
class Told {
 public:
  NameLookup::Take take(const std::string& who) {
    return [this, who](const NameLookup::Addresses& addresses) {
      const std::lock_guard lock(mutex_);
      told_.emplace_back(who, addresses.empty() ? -1 : int(addresses[0].size));
      changed_.notify_all();
    };
  }
  bool wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return told_.size() >= count; });
  }
  std::multiset<std::pair<std::string, int>> all() {
    const std::lock_guard lock(mutex_);
    return {told_.begin(), told_.end()};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::string, int>> told_;
};
using All = std::multiset<std::pair<std::string, int>>;

TEST(NameLookup, AsksTheSystem) {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<NameLookup::Addresses> found;
  NameLookup lookup;
  const auto question =
      lookup.find("localhost", "8123", [&](const NameLookup::Addresses& addresses) {
        const std::lock_guard lock(mutex);
        found = addresses;
        changed.notify_all();
      });
  std::unique_lock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return found.has_value(); }));
  bool has_loopback = false;
  for (const NameLookup::Address& address : *found) {
    if (address.bytes.ss_family != AF_INET) continue;
    sockaddr_in place = {};
    ASSERT_EQ(address.size, sizeof(place));
    std::memcpy(&place, &address.bytes, sizeof(place));
    EXPECT_EQ(ntohs(place.sin_port), 8123);
    has_loopback = has_loopback || ntohl(place.sin_addr.s_addr) == INADDR_LOOPBACK;
  }
  EXPECT_TRUE(has_loopback);
}

TEST(NameLookup, ANameThatNobodyAnswersHoldsUpNoOther) {
  Names names;
  Told told;
  names.hold("held");
  NameLookup lookup(names.ask());
  const auto held = lookup.find("held", "1", told.take("a"));
  ASSERT_TRUE(names.wait_until_asked("held"));
  const auto other = lookup.find("other", "2", told.take("b"));
  ASSERT_TRUE(told.wait_for(1));
  EXPECT_EQ(told.all(), (All{{"b", 2}}));
  names.let_go();
  ASSERT_TRUE(told.wait_for(2));
  EXPECT_EQ(told.all(), (All{{"a", 1}, {"b", 2}}));
}

// Its threads would become more and more.
TEST(NameLookup, ANameIsAskedForOnceAtATime) {
  Names names;
  Told told;
  names.hold("held");
  NameLookup lookup(names.ask());
  std::vector<std::shared_ptr<const void>> questions;
  questions.push_back(lookup.find("held", "1", told.take("first")));
  ASSERT_TRUE(names.wait_until_asked("held"));
  for (int count = 0; count < 1000; ++count) {
    questions.push_back(lookup.find("held", "1", told.take("more")));
    if (count % 2 == 0) questions.pop_back();  // Gave up.
  }
  names.let_go();
  ASSERT_TRUE(told.wait_for(501));
  EXPECT_EQ(told.all().size(), 501u);
  EXPECT_EQ(names.asked_count("held"), 1);
  questions.push_back(lookup.find("held", "1", told.take("anew")));
  ASSERT_TRUE(told.wait_for(502));
  EXPECT_EQ(names.asked_count("held"), 2);
}

TEST(NameLookup, ThreadsAreFew) {
  Names names;
  Told told;
  NameLookup lookup(names.ask());
  std::vector<std::shared_ptr<const void>> questions;
  const auto name = [](int number) { return "host" + std::to_string(number); };
  for (int number = 0; number < NameLookup::kThreadsMax; ++number) names.hold(name(number));
  for (int number = 0; number < NameLookup::kThreadsMax + 2; ++number) {
    questions.push_back(lookup.find(name(number), "1", told.take(name(number))));
  }
  for (int number = 0; number < NameLookup::kThreadsMax; ++number) {
    ASSERT_TRUE(names.wait_until_asked(name(number)));
  }
  EXPECT_EQ(names.asked_count(name(NameLookup::kThreadsMax)), 0);
  questions.pop_back();  // Nobody waits for it any more: it is not asked for.
  names.let_go();
  ASSERT_TRUE(told.wait_for(size_t(NameLookup::kThreadsMax) + 1));
  EXPECT_EQ(names.asked_count(name(NameLookup::kThreadsMax)), 1);
  EXPECT_EQ(names.asked_count(name(NameLookup::kThreadsMax + 1)), 0);
}

TEST(NameLookup, NobodyIsToldBehindItsEnd) {
  Names names;
  Told told;
  names.hold("held");
  std::shared_ptr<const void> question;
  {
    NameLookup lookup(names.ask());
    question = lookup.find("held", "1", told.take("a"));
    ASSERT_TRUE(names.wait_until_asked("held"));
  }
  names.let_go();
  ASSERT_TRUE(names.wait_until_alone());
  EXPECT_EQ(told.all(), All{});
}

TEST(NameLookup, AQuestionThatFailsHasNoAddresses) {
  Told told;
  NameLookup lookup([](const std::string& host, const std::string&) {
    return NameLookup::Addresses(host == "fails" ? SIZE_MAX / 2 : 1);
  });
  const auto failing = lookup.find("fails", "1", told.take("a"));
  ASSERT_TRUE(told.wait_for(1));
  EXPECT_EQ(told.all(), (All{{"a", -1}}));
}

}  // namespace
}  // namespace cairn::route::name_lookup_test
