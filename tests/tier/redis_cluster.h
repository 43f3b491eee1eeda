// A real Redis cluster on the loopback: masters without copies, each of which has its part of the
// slots, with the settings of docs/tier.md. Commands go by redis-cli.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/held_port.h"
#include "tests/tier/redis_server.h"

namespace cairn::test {

class RedisCluster {
 public:
  struct Options {
    size_t masters = 3;
    std::vector<std::string> more = {};  // Further settings of each.
    std::vector<std::string> cli = {};   // And of redis-cli: how it gets in.
    bool is_secure = false;              // The ports are those of TLS.
  };

  // Whether it runs is said by is_running().
  explicit RedisCluster(const std::string& folder) : RedisCluster(folder, Options()) {}
  RedisCluster(const std::string& folder, Options options) : options_(std::move(options)) {
    for (size_t master = 0; master < options_.masters; ++master) start(folder, master);
    if (is_running()) is_joined_ = join();
  }

  bool is_running() const {
    for (const auto& server : servers_) {
      if (!server->is_running()) return false;
    }
    return !servers_.empty();
  }
  // Whether all of them agree on who has what. Where they run and do not, something is wrong.
  bool is_joined() const { return is_joined_; }
  std::string url(size_t master) const {
    return (options_.is_secure ? "rediss://" : "redis://") + name(master);
  }
  std::string name(size_t master) const { return "127.0.0.1:" + port(master); }
  RedisServer& server(size_t master) { return *servers_[master]; }
  size_t size() const { return servers_.size(); }
  // What a master says to these words, without the last line's end.
  std::string say(size_t master, const std::string& words) const {
    std::string command = "redis-cli -h 127.0.0.1 -p " + port(master);
    for (const std::string& word : options_.cli) command += " '" + word + "'";
    command += " " + words + " 2>&1";
    FILE* const pipe = ::popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> bytes;
    size_t count = 0;
    while ((count = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0) {
      text.append(bytes.data(), count);
    }
    ::pclose(pipe);
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }
  std::string id(size_t master) const { return say(master, "CLUSTER MYID"); }

  // A slot is on its way: keys that are still there stay, new ones go to the other one.
  void begin_migration(int slot, size_t from, size_t to) const {
    const std::string number = std::to_string(slot);
    EXPECT_EQ(say(to, "CLUSTER SETSLOT " + number + " IMPORTING " + id(from)), "OK");
    EXPECT_EQ(say(from, "CLUSTER SETSLOT " + number + " MIGRATING " + id(to)), "OK");
  }
  // All keys of a slot follow, and everybody is told.
  void end_migration(int slot, size_t from, size_t to) const {
    const std::string number = std::to_string(slot);
    for (;;) {
      const std::string key = say(from, "CLUSTER GETKEYSINSLOT " + number + " 1");
      if (key.empty()) break;
      const std::string words =
          "MIGRATE 127.0.0.1 " + port(to) + " " + key + " 0 5000";
      if (say(from, words) != "OK") {
        ADD_FAILURE() << words;
        return;
      }
    }
    for (const size_t master : {to, from}) {
      EXPECT_EQ(say(master, "CLUSTER SETSLOT " + number + " NODE " + id(to)), "OK");
    }
  }
  // At which of them a slot was when it began.
  size_t home_of(int slot) const {
    for (size_t master = 0; master + 1 < size(); ++master) {
      if (slot < first_slot(master + 1)) return master;
    }
    return size() - 1;
  }

 private:
  const std::string& port(size_t master) const { return ports_[master].name(); }
  int first_slot(size_t master) const { return int(16384 * master / options_.masters); }

  void start(const std::string& folder, size_t master) {
    const std::string own = folder + "/master" + std::to_string(master);
    std::filesystem::create_directories(own);
    ports_.emplace_back();
    const HeldPort& bus = bus_ports_.emplace_back();
    std::vector<std::string> words = {"--bind",
                                      "127.0.0.1",
                                      options_.is_secure ? "--tls-port" : "--port",
                                      port(master),
                                      "--cluster-enabled",
                                      "yes",
                                      "--cluster-port",
                                      bus.name(),
                                      "--cluster-require-full-coverage",
                                      "no",
                                      "--cluster-node-timeout",
                                      "2000"};
    words.insert(words.end(), options_.more.begin(), options_.more.end());
    servers_.push_back(std::make_unique<RedisServer>(own, words));
  }

  bool join() {
    for (size_t master = 0; master < size(); ++master) {
      const std::string slots =
          std::to_string(first_slot(master)) + " " + std::to_string(first_slot(master + 1) - 1);
      if (say(master, "CLUSTER ADDSLOTSRANGE " + slots) != "OK") return false;
      if (say(master, "CLUSTER SET-CONFIG-EPOCH " + std::to_string(master + 1)) != "OK") {
        return false;
      }
    }
    for (size_t master = 1; master < size(); ++master) {
      const std::string words =
          "CLUSTER MEET 127.0.0.1 " + port(master) + " " + bus_ports_[master].name();
      if (say(0, words) != "OK") return false;
    }
    for (int tries = 0; tries < 300; ++tries) {
      size_t agreed = 0;
      for (size_t master = 0; master < size(); ++master) {
        const std::string info = say(master, "CLUSTER INFO");
        agreed += size_t(info.find("cluster_state:ok") != std::string::npos &&
                         info.find("cluster_slots_assigned:16384") != std::string::npos);
      }
      if (agreed == size()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  Options options_;
  std::deque<HeldPort> ports_, bus_ports_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  bool is_joined_ = false;
};

}  // namespace cairn::test
