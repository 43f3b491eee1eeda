// Lists of nodes, and what becomes of nodes that come, go and fail.
#include "route/fleet.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace cairn::route::fleet_test {
namespace {

std::vector<ListedNode> listed(std::string_view text) {
  return parse_nodes("list", text).value();
}

std::set<int32_t> chosen(Fleet& fleet) {
  std::set<int32_t> nodes;
  for (uint64_t key = 0; key < 200; ++key) {
    const PromptKeys keys{.affinity = weight_of(key, 9)};
    nodes.insert(fleet.choose(keys, {}).node);
  }
  return nodes;
}

TEST(Nodes, AreReadFromLines) {
  const auto nodes = listed(
      "# ours\nhttp://10.0.0.1:8080\r\n\ndrain https://cache.example\nunix:/run/c.sock\n[::1]:81");
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(name_of(nodes[0].url), "10.0.0.1:8080");
  EXPECT_FALSE(nodes[0].is_draining);
  EXPECT_EQ(name_of(nodes[1].url), "cache.example:443");
  EXPECT_TRUE(nodes[1].is_draining);
  EXPECT_EQ(name_of(nodes[2].url), "unix:/run/c.sock");
  EXPECT_EQ(name_of(nodes[3].url), "[::1]:81");
}

TEST(Nodes, ErrorsNameTheLine) {
  for (const auto& [text, part] :
       {std::pair("http://a\nhttp://b:x\n", "list:2"),
        std::pair("http://a\n\nhttp://a:80", "list:3"), std::pair("# none\n", "expected a node"),
        std::pair("http://a/b", "\"http://a/b\"")}) {
    const auto nodes = parse_nodes("list", text);
    ASSERT_FALSE(nodes) << text;
    EXPECT_NE(nodes.error().message.find(part), std::string::npos) << nodes.error().message;
  }
}

TEST(Nodes, ThatCannotBeAreRefused) {
  for (const std::string text :
       {"http://a:0", "http://a:65536", "http://a:99999", "unix:/run/a\rb", "http://a\tb"}) {
    const auto nodes = parse_nodes("list", text);
    ASSERT_FALSE(nodes) << text;
    EXPECT_NE(nodes.error().message.find("list:1: expected http://HOST:PORT"), std::string::npos)
        << nodes.error().message;
  }
  EXPECT_EQ(listed("http://a:65535")[0].url.port, "65535");
}

TEST(Nodes, HaveALimit) {
  std::string text;
  for (size_t number = 0; number < kListedNodesMax; ++number) text += std::to_string(number) + "\n";
  EXPECT_EQ(listed(text).size(), kListedNodesMax);
  const auto nodes = parse_nodes("list", text + "another");
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().message, "list:4097: expected at most 4096 nodes, found more");
}

// Lists that are read again and again name more nodes than a router can tell apart.
TEST(Fleet, MoreNodesThanItHasNumbersForAreLeftOut) {
  Fleet fleet({.entry_count = 1024, .table_bytes_max = 1 << 16});
  size_t number = 0;
  while (number < size_t(Policy::kNodesMax) + 5) {
    std::string text = "kept\n";
    for (size_t count = 0; count < kListedNodesMax - 1; ++count) {
      text += "host" + std::to_string(number++) + "\n";
    }
    fleet.set_nodes(listed(text));
  }
  EXPECT_EQ(name_of(fleet.url_of(0)), "kept:80");
  EXPECT_LT(fleet.node_count(), int32_t(kListedNodesMax));
  fleet.set_nodes(listed("new\nkept"));
  EXPECT_EQ(chosen(fleet), (std::set<int32_t>{0}));
}

TEST(Fleet, NamesInMetricsAreQuoted) {
  Fleet fleet;
  fleet.set_nodes(listed("unix:/run/a\"b\\c.sock"));
  EXPECT_NE(fleet.metrics().find(R"(cairn_route_node_up{node="unix:/run/a\"b\\c.sock"} 1)"),
            std::string::npos)
      << fleet.metrics();
}

TEST(Fleet, NodesComeAndGo) {
  Fleet fleet;
  fleet.set_nodes(listed("a\nb\nc"));
  EXPECT_EQ(chosen(fleet), (std::set<int32_t>{0, 1, 2}));
  fleet.set_nodes(listed("a\ndrain b\nd"));
  EXPECT_EQ(chosen(fleet), (std::set<int32_t>{0, 3}));
  EXPECT_EQ(fleet.node_count(), 2);
  EXPECT_EQ(name_of(fleet.url_of(3)), "d:80");
  fleet.set_nodes(listed("c\nb"));
  EXPECT_EQ(chosen(fleet), (std::set<int32_t>{1, 2}));
}

TEST(Fleet, WhoDoesNotAnswerIsLeftAlone) {
  Fleet fleet;
  fleet.set_nodes(listed("a\nb"));
  fleet.failed(0);  // A request found nobody there.
  EXPECT_EQ(chosen(fleet), (std::set<int32_t>{1}));
  fleet.checked(0, true);
  EXPECT_EQ(chosen(fleet), (std::set<int32_t>{0, 1}));
  fleet.checked(1, false);  // Once may be chance.
  EXPECT_EQ(fleet.up_count(), 2);
  fleet.checked(1, true);
  fleet.checked(1, false);
  EXPECT_EQ(fleet.up_count(), 2);
  fleet.checked(1, false);
  EXPECT_EQ(chosen(fleet), (std::set<int32_t>{0}));
  fleet.failed(0);
  EXPECT_EQ(chosen(fleet), (std::set<int32_t>{-1}));
  EXPECT_NE(fleet.metrics().find("cairn_route_node_up{node=\"a:80\"} 0\n"), std::string::npos);
  EXPECT_NE(fleet.metrics().find("cairn_route_refused_total 200\n"), std::string::npos);
}

}  // namespace
}  // namespace cairn::route::fleet_test
