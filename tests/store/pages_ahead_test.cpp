// What the system backs before anybody touches it.
#include "store/pages_ahead.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/arena.h"

namespace cairn::store::pages_ahead_test {
namespace {

constexpr size_t kPage = 4096;

size_t resident_pages(const Arena& arena) {
  std::vector<unsigned char> pages(arena.size() / kPage);
  EXPECT_EQ(::mincore(arena.data(), arena.size(), pages.data()), 0);
  return size_t(std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; }));
}

TEST(PagesAhead, BacksThePartsAndKeepsWhatIsWritten) {
  Arena arena = Arena::reserve(size_t(64) << 20).value();
  if (::madvise(arena.data(), kPage, MADV_POPULATE_WRITE) != 0) {
    GTEST_SKIP() << "the system does not know how";
  }
  const size_t half = arena.size() / 2;
  arena.data()[half - 1] = std::byte(7);
  {
    const PagesAhead ahead({{arena.data() + 1, half - 1}});
    for (int32_t tries = 0; tries < 1000 && resident_pages(arena) < half / kPage; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  EXPECT_GE(resident_pages(arena), half / kPage);
  EXPECT_LE(resident_pages(arena), half / kPage + Arena::kHugePageBytes / kPage);
  EXPECT_EQ(arena.data()[half - 1], std::byte(7));
  EXPECT_EQ(arena.data()[0], std::byte(0));
}

TEST(PagesAhead, StopsWhenItGoes) {
  Arena arena = Arena::reserve(size_t(512) << 20).value();
  std::vector<std::span<std::byte>> parts;
  for (size_t at = 0; at < arena.size(); at += Arena::kHugePageBytes) {
    parts.emplace_back(arena.data() + at, Arena::kHugePageBytes);
  }
  for (int32_t round = 0; round < 50; ++round) {
    const PagesAhead ahead(parts);
    arena.data()[size_t(round) * kPage] = std::byte(round);  // Beside it.
  }
  for (int32_t round = 0; round < 50; ++round) {
    EXPECT_EQ(arena.data()[size_t(round) * kPage], std::byte(round));
  }
}

TEST(PagesAhead, PartsOfLessThanAPageAreNothingToDo) {
  std::byte little[100] = {};
  const PagesAhead ahead({{little, sizeof little}, {}});
  EXPECT_EQ(little[99], std::byte(0));
}

}  // namespace
}  // namespace cairn::store::pages_ahead_test
