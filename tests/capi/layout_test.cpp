// The layout that bindings compare with their own is that of all structs in cairn.h, to the last
// member, and C programs see the same.
#include "capi/layout.h"

#include <cairn.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/capi/shell.h"

extern "C" size_t capi_header_bytes(void);

namespace cairn::layout_test {
namespace {

TEST(Layout, SizesAndOffsetsAreThoseOfTheHeader) {
  const auto layout = nlohmann::json::parse(cairn_layout_json());
  EXPECT_EQ(layout["cairn_error"]["size"], 512);
  EXPECT_EQ(layout["cairn_error"]["message"], 8);
  EXPECT_EQ(layout["cairn_plan"]["size"], sizeof(cairn_plan));
  EXPECT_EQ(layout["cairn_sampling"]["samplers"], offsetof(cairn_sampling, samplers));
  EXPECT_EQ(layout["cairn_event"]["text"], offsetof(cairn_event, text));
  EXPECT_EQ(capi_header_bytes(), sizeof(cairn_error) + sizeof(cairn_plan) + sizeof(cairn_event));
  EXPECT_STREQ(cairn_layout_json(), capi::layout_json());
}

TEST(Layout, NoMemberIsMissing) {
  const std::string header = test::header_text();
  const auto layout = nlohmann::json::parse(cairn_layout_json());
  const std::regex structs(R"(typedef struct (\w+) \{([^}]*)\})");
  // A name before a comma, a semicolon, or the bounds of an array; or of a function pointer.
  const std::regex members(R"((\w+)(?:\[\d+\])?\s*[,;]|\(\*(\w+)\)\([^;]*;)");
  size_t struct_count = 0;
  for (std::sregex_iterator at(header.begin(), header.end(), structs), end; at != end; ++at) {
    ++struct_count;
    const std::string name = (*at)[1], body = (*at)[2];
    ASSERT_TRUE(layout.contains(name)) << name;
    size_t member_count = 0;
    for (std::sregex_iterator member(body.begin(), body.end(), members); member != end; ++member) {
      const std::string found = (*member)[1].matched ? (*member)[1] : (*member)[2];
      EXPECT_TRUE(layout[name].contains(found)) << name << "." << found;
      ++member_count;
    }
    EXPECT_EQ(layout[name].size(), member_count + 1) << name;
  }
  EXPECT_EQ(struct_count, layout.size());
}

}  // namespace
}  // namespace cairn::layout_test
