// Adding, removing and finding, beside an ordinary map, also where links fall on the same places.
#include "store/link_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <vector>

namespace cairn::store::link_table_test {
namespace {

// What was added last first.
using Expected = std::map<uint64_t, std::vector<uint32_t>>;

void expect_same(const LinkTable& table, const Expected& expected,
                 std::span<const uint64_t> links) {
  for (const uint64_t link : links) {
    const auto found = expected.find(link);
    const std::vector<uint32_t> wanted =
        found == expected.end() ? std::vector<uint32_t>() : found->second;
    ASSERT_EQ(table.find(link), wanted) << link;
    const size_t most = wanted.size() / 2;
    ASSERT_EQ(table.find(link, most),
              std::vector<uint32_t>(wanted.begin(), wanted.begin() + ptrdiff_t(most)));
  }
}

// Few places, so that most links lie elsewhere than at their own and the table's end is passed.
TEST(LinkTable, IsAMapOfLists) {
  for (const uint64_t spread : {1, 7, 1 << 20}) {
    std::mt19937_64 random(spread);
    std::vector<uint64_t> links;
    for (int count = 0; count < 40; ++count) {
      links.push_back((random() << 32) | (UINT32_MAX - random() % spread));
    }
    LinkTable table;
    if (spread == 7) table.reserve(100);
    Expected expected;
    EXPECT_TRUE(table.find(links[0]).empty());
    for (uint32_t round = 0; round < 4000; ++round) {
      const uint64_t link = links[random() % links.size()];
      std::vector<uint32_t>& list = expected[link];
      // More and more at first, then fewer and fewer.
      const bool adds = random() % 4000 > round;
      if (adds && list.size() < 6) {
        table.add(link, round);
        list.insert(list.begin(), round);
      } else if (!list.empty()) {
        const auto gone = list.begin() + ptrdiff_t(random() % list.size());
        table.remove(link, *gone);
        list.erase(gone);
      }
      ASSERT_NO_FATAL_FAILURE(expect_same(table, expected, links));
    }
  }
}

}  // namespace
}  // namespace cairn::store::link_table_test
