// The table of families beside the registry of architectures and the page for people.
#include "convert/family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "models/model.h"

namespace cairn::convert::family_test {
namespace {

std::set<std::string_view> converted_architectures() {
  std::set<std::string_view> names;
  for (const FamilyGroup* group : all_family_groups()) {
    for (const Family& family : group->families) names.insert(family.architecture);
  }
  return names;
}

// nemotron_h_moe is a configuration of nemotron_h; the vocabularies of the others lie in files that
// no reader here knows, hunyuan-moe's in a program.
constexpr std::array<std::string_view, 5> kWithoutFamily = {"hunyuan-moe", "kimi-linear",
                                                            "nemotron_h_moe", "plamo2", "rwkv7"};

TEST(Families, EveryArchitectureConvertsOrIsListed) {
  const std::set<std::string_view> converted = converted_architectures();
  for (const models::Architecture* architecture : models::all_architectures()) {
    const bool is_listed =
        std::ranges::find(kWithoutFamily, architecture->name) != std::ranges::end(kWithoutFamily);
    EXPECT_NE(converted.contains(architecture->name), is_listed) << architecture->name;
  }
}

TEST(Families, EveryOneHasAnArchitectureAndClassesOfItsOwn) {
  std::set<std::string_view> classes;
  for (const FamilyGroup* group : all_family_groups()) {
    ASSERT_FALSE(group->families.empty());
    for (const Family& family : group->families) {
      EXPECT_TRUE(models::find_architecture(family.architecture)) << family.architecture;
      ASSERT_FALSE(family.classes.empty()) << family.architecture;
      for (const std::string_view name : family.classes) {
        EXPECT_TRUE(classes.insert(name).second) << name;
        EXPECT_EQ(find_family(name), &family);
      }
    }
  }
}

// A row of the page: "| classes | architecture |", in the order of the names.
TEST(Families, ThePageListsThem) {
  std::set<std::string> rows;
  for (const FamilyGroup* group : all_family_groups()) {
    for (const Family& family : group->families) {
      std::string row = "| " + std::string(family.architecture) + " | ";
      for (const std::string_view name : family.classes) {
        row += (name == family.classes[0] ? "" : ", ") + std::string(name);
      }
      rows.insert(row + " |");
    }
  }
  std::ifstream page(std::string(CAIRN_SOURCE) + "/docs/converting.md");
  std::string table, listed;
  for (const std::string& row : rows) table += row + "\n";
  bool is_in_table = false;
  for (std::string line; std::getline(page, line);) {
    if (is_in_table && !line.starts_with("|")) break;
    if (is_in_table) listed += line + "\n";
    is_in_table = is_in_table || line == "|---|---|";
  }
  EXPECT_EQ(listed, table);
}

}  // namespace
}  // namespace cairn::convert::family_test
