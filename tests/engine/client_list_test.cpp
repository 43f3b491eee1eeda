#include "engine/schedule/client_list.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::client_list_test {
namespace {

TEST(ClientList, WhoComesHasHadNoFewerTokensThanThoseWhoAreThere) {
  ClientList clients;
  Client& first = clients.come("first");
  EXPECT_EQ(first.computed_tokens, 0);
  first.job_count = 1;
  first.computed_tokens = 500;
  Client& second = clients.come("second");
  EXPECT_EQ(second.computed_tokens, 500);
  second.job_count = 1;
  second.computed_tokens = 700;
  EXPECT_EQ(clients.come("third").computed_tokens, 500);
}

TEST(ClientList, HavingBeenAwayIsNoCredit) {
  ClientList clients;
  Client& busy = clients.come("busy");
  busy.job_count = 1;
  busy.computed_tokens = 100;
  clients.come("away");
  busy.computed_tokens = 900;
  EXPECT_EQ(clients.come("away").computed_tokens, 900);
}

TEST(ClientList, ThoseWhoHaveJobsKeepWhatTheyHaveHad) {
  ClientList clients;
  Client& little = clients.come("little");
  little.job_count = 1;
  little.computed_tokens = 10;
  Client& much = clients.come("much");
  much.job_count = 1;
  much.computed_tokens = 90;
  EXPECT_EQ(&clients.come("little"), &little);
  EXPECT_EQ(little.computed_tokens, 10);
}

// A flood of names must not grow without an end, and must not forget those who are served.
TEST(ClientList, ForgetsThoseWithoutJobsThatCameLongAgo) {
  ClientList clients;
  Client& busy = clients.come("busy");
  busy.job_count = 1;
  clients.come("early").computed_tokens = 1e6;
  for (int name = 0; name < 1000; ++name) {
    clients.come(std::to_string(name)).computed_tokens = 2e6;
  }
  EXPECT_EQ(clients.come("early").computed_tokens, 0);  // As if it came for the first time.
  EXPECT_EQ(clients.come("999").computed_tokens, 2e6);
  EXPECT_EQ(&clients.come("busy"), &busy);
}

}  // namespace
}  // namespace cairn::client_list_test
