// Keys: what is taken for one, and who has which.
#include "serve/keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "tests/scratch_folder.h"

namespace cairn::serve::keys_test {
namespace {

constexpr char kFirst[] = "0123456789abcdef", kSecond[] = "0123456789abcdeg";

TEST(Keys, AreFoundByAllOfTheirBytes) {
  Keys keys;
  EXPECT_TRUE(keys.is_empty());
  EXPECT_FALSE(keys.find(kFirst));
  ASSERT_TRUE(keys.add(kFirst, Role::user));
  ASSERT_TRUE(keys.add(kSecond, Role::admin));
  ASSERT_TRUE(keys.add("another-key-of-a-user", Role::user));
  EXPECT_TRUE(keys.find(kFirst)->name.starts_with("user-")) << keys.find(kFirst)->name;
  EXPECT_TRUE(keys.find(kSecond)->name.starts_with("admin-")) << keys.find(kSecond)->name;
  EXPECT_EQ(keys.find(kSecond)->role, Role::admin);
  EXPECT_NE(keys.find("another-key-of-a-user")->name, keys.find(kFirst)->name);
  for (const char* wrong : {"", "0123456789abcde", "0123456789abcdefg", "0123456789abcdeF"}) {
    EXPECT_FALSE(keys.find(wrong)) << wrong;
  }
  EXPECT_FALSE(keys.find(std::string(1 << 20, 'x')));
  EXPECT_TRUE(keys.has_role(Role::user) && keys.has_role(Role::admin));
}

TEST(Keys, AreLongAndPlain) {
  Keys keys;
  for (const std::string& wrong :
       {std::string(15, 'x'), std::string(), std::string(4097, 'x'),
        "0123456789 abcdef" + std::string(), std::string("0123456789abcde\xc3\xa9"),
        std::string("0123456789abcdef\n")}) {
    const Status added = keys.add(wrong, Role::user);
    ASSERT_FALSE(added) << wrong;
    EXPECT_EQ(added.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(added.error().message.find("0123"), std::string::npos) << "keys are not told";
  }
  EXPECT_TRUE(keys.is_empty());
}

TEST(Keys, ComeFromFilesOfTheirOwner) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("keys");
  test::write_to(path, std::string("# users\n\nanna ") + kFirst + "\r\n" + kSecond);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  Keys keys;
  const Status added = keys.add_file(path, Role::user);
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_TRUE(keys.find(kFirst) && keys.find(kSecond));
  EXPECT_EQ(keys.find(kFirst)->name, "anna");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const Status open = Keys().add_file(path, Role::user);
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().message.find("chmod 600"), std::string::npos);
  test::write_to(path, std::string(kFirst) + "\nshort\n");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const Status bad = Keys().add_file(path, Role::user);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("line 2"), std::string::npos) << bad.error().message;
  test::write_to(path, "# none\n");
  EXPECT_FALSE(Keys().add_file(path, Role::user));
  EXPECT_FALSE(Keys().add_file(folder.file("nothing"), Role::user));
}

// By what is theirs, not by where they stand in a file that is read again.
TEST(Keys, AreTenants) {
  Keys one;
  ASSERT_TRUE(one.add(kFirst, Role::user));
  EXPECT_EQ(one.tenant_count(), 1u);
  EXPECT_EQ(one.find(kFirst)->tenant, 0u) << "nobody is to be kept apart";
  Keys two;
  ASSERT_TRUE(two.add(kSecond, Role::user));
  ASSERT_TRUE(two.add(kFirst, Role::user));
  EXPECT_EQ(two.tenant_count(), 2u);
  EXPECT_EQ(two.find(kFirst)->name, one.find(kFirst)->name);
  EXPECT_NE(two.find(kFirst)->tenant, 0u);
  EXPECT_NE(two.find(kSecond)->tenant, 0u);
  EXPECT_NE(two.find(kFirst)->tenant, two.find(kSecond)->tenant);
  for (const char* const key : {kFirst, kSecond}) {
    EXPECT_EQ(std::ranges::count(two.tenants(), two.find(key)->tenant), 1);
  }
  EXPECT_EQ(two.tenants().size(), 2u);
  Keys named;
  ASSERT_TRUE(named.add(kFirst, Role::user, "anna"));
  EXPECT_NE(named.find(kFirst)->tenant, 0u) << "whoever comes later";
  ASSERT_TRUE(named.add(kSecond, Role::admin, "anna"));
  EXPECT_EQ(named.tenant_count(), 1u);
  EXPECT_EQ(named.find(kFirst)->name, "anna");
  EXPECT_EQ(named.find(kSecond)->tenant, named.find(kFirst)->tenant);
  EXPECT_EQ(named.find(kSecond)->role, Role::admin);
  for (const std::string& wrong : {std::string("a/b"), std::string("a b"), std::string(65, 'a')}) {
    EXPECT_FALSE(named.add("a-key-of-somebody-1", Role::user, wrong)) << wrong;
  }
}

TEST(Keys, FailuresAreCountedByAddress) {
  FailureCounts counts;
  const auto begin = FailureCounts::Clock::now();
  for (int count = 0; count < FailureCounts::kFailuresMax; ++count) {
    EXPECT_FALSE(counts.is_blocked("a", begin));
    counts.add("a", begin);
  }
  EXPECT_TRUE(counts.is_blocked("a", begin));
  EXPECT_FALSE(counts.is_blocked("b", begin));
  EXPECT_TRUE(counts.is_blocked("a", begin + FailureCounts::kSpan));
  EXPECT_FALSE(counts.is_blocked("a", begin + FailureCounts::kSpan + std::chrono::seconds(1)));
  // However many addresses there are, they take a bounded room, and nobody is locked out by it.
  for (int address = 0; address < 10000; ++address) counts.add(std::to_string(address), begin);
  EXPECT_FALSE(counts.is_blocked("5", begin));
}

}  // namespace
}  // namespace cairn::serve::keys_test
