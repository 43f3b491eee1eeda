// How `cairn serve` and `cairn route` listen: the same options, and the same words where they do
// not go together.
#include "cli/options/listen_arguments.h"

#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace cairn::cli::listen_arguments_test {
namespace {

struct Listening {
  std::string name;
  std::vector<std::string> words;
};

std::vector<Listening> programs() {
  return {{"server", {"serve", "--port", "0"}},
          {"router", {"route", "--node", "http://a", "--port", "0"}}};
}

Finished run_with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words);
}

TEST(ListenArguments, WhatDoesNotGoTogetherIsNamed) {
  struct Case {
    std::vector<std::string> words;
    std::string expected;
  };
  const Case cases[] = {
      {{"--tls-cert", "x"}, "--tls-cert: expected --tls-key beside it, found none"},
      {{"--tls-key", "x"}, "--tls-key: expected --tls-cert beside it, found none"},
      {{"--tls-cert", "x", "--tls-key", "y", "--unix-socket", "z"},
       "--tls-cert: expected an address to listen on, found a Unix socket"},
      {{"--tls-cert", "/no/such.pem", "--tls-key", "y"}, "/no/such.pem"}};
  for (const Listening& program : programs()) {
    for (const Case& one : cases) {
      const Finished run = run_with(program.words, one.words);
      EXPECT_NE(run.exit_code, 0) << program.name;
      EXPECT_NE(run.err.find(one.expected), std::string::npos) << program.name << ": " << run.err;
    }
  }
}

TEST(ListenArguments, HelpSaysWhoListens) {
  for (const Listening& program : programs()) {
    std::string help = run_program({program.words[0], "--help"}).out;
    std::erase(help, '\n');
    std::erase(help, ' ');
    for (const std::string& part :
         {std::string("--hostADDRESS"), std::string("--unix-socketFILE"),
          "the" + program.name + "'scertificateinPEM", "clientsreachthe" + program.name}) {
      EXPECT_NE(help.find(part), std::string::npos) << part;
    }
  }
}

TEST(ListenArguments, WithoutOptionsThisMachineAloneIsListenedTo) {
  const ListenArguments listen("server");
  EXPECT_FALSE(listen.is_unix() || listen.has_certificate());
  auto identity = listen.read_certificate();
  ASSERT_TRUE(identity);
  EXPECT_EQ(*identity, nullptr);
  const serve::http::Address address = listen.address(*identity);
  EXPECT_EQ(address.host, "127.0.0.1");
  EXPECT_EQ(address.port, 8080);
  EXPECT_TRUE(address.unix_path.empty());
  EXPECT_TRUE(listen.origins().allows_local_origins);
  SandboxRules rules;
  listen.allow_in(rules);
  EXPECT_TRUE(rules.sockets.empty() && rules.readable.empty());
}

TEST(ListenArguments, ACertificateAndItsKeyStandTogether) {
  EXPECT_TRUE(check_certificate("tls", "", ""));
  EXPECT_TRUE(check_certificate("tls", "a", "b"));
  const Status lone = check_certificate("peer-tls", "a", "");
  ASSERT_FALSE(lone);
  EXPECT_EQ(lone.error().message, "--peer-tls-cert: expected --peer-tls-key beside it, found none");
}

}  // namespace
}  // namespace cairn::cli::listen_arguments_test
