// Keys: what is taken for one, and who has which.
#include "serve/keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/constant_time.h"
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

// Bytes that count how often one of them is looked at.
struct CountedBytes {
  std::array<uint8_t, 32> bytes = {};
  int32_t* looks;

  static constexpr size_t size() { return 32; }
  uint8_t operator[](size_t index) const {
    ++*looks;
    return bytes[index];
  }
};

TEST(Keys, ComparingLooksAtAllBytes) {
  for (size_t same = 0; same <= CountedBytes::size(); ++same) {
    int32_t looks = 0;
    CountedBytes expected{.looks = &looks}, shown{.looks = &looks};
    for (size_t index = same; index < shown.size(); ++index) shown.bytes[index] = 0x5a;
    EXPECT_EQ(is_equal_in_constant_time(expected, shown), same == shown.size());
    EXPECT_EQ(looks, 2 * int32_t(shown.size())) << "the first " << same << " are equal";
  }
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum_a = 0, sum_b = 0, product = 0, square_a = 0, square_b = 0;
  const double count = double(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    sum_a += a[i];
    sum_b += b[i];
    product += a[i] * b[i];
    square_a += a[i] * a[i];
    square_b += b[i] * b[i];
  }
  return (count * product - sum_a * sum_b) /
         std::sqrt((count * square_a - sum_a * sum_a) * (count * square_b - sum_b * sum_b));
}

// Attack 30: 100,000 guesses of which the first 0 to 31 characters are right, in random order, so
// that what else the machine does falls on all alike: by chance |r| is above 0.02 once in 10^9
// runs.
TEST(Keys, TimeDoesNotTellHowMuchOfAGuessIsRight) {
  using Clock = std::chrono::steady_clock;
  const std::string right(32, 'k');
  Keys keys;
  ASSERT_TRUE(keys.add(right, Role::user));
  ASSERT_TRUE(keys.add(std::string(32, 'o'), Role::user));
  std::mt19937 random(1);
  std::string guess;
  guess.reserve(64);  // All at the same place.
  std::vector<double> same_counts, times;
  for (int round = 0; round < 100'000; ++round) {
    const size_t same = random() % right.size();
    guess.assign(right).replace(same, right.size() - same, right.size() - same, 'x');
    const Clock::time_point begin = Clock::now();
    const bool is_key = keys.find(guess).has_value();
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
    same_counts.push_back(double(same));
    ASSERT_FALSE(is_key);
  }
  // What an interruption took would hide everything else.
  std::vector<double> sorted = times;
  std::nth_element(sorted.begin(), sorted.begin() + std::ptrdiff_t(sorted.size() / 2),
                   sorted.end());
  const double longest = 2 * sorted[sorted.size() / 2];
  for (double& time : times) time = std::min(time, longest);
  const double r = correlation(same_counts, times);
  EXPECT_LT(std::abs(r), 0.02);
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
