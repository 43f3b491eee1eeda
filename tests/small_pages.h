// Ordinary pages instead of huge ones, for tests that touch little of many blocks: the system would
// clear 2 MiB for each of them, which takes longer than the tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>

namespace cairn::test {

// While one lives, the process gets no more huge pages. Thread rule: one thread makes them.
class SmallPages {
 public:
  SmallPages() {
    if (count_++ == 0) ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  }
  ~SmallPages() {
    if (--count_ == 0) ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  }
  SmallPages(const SmallPages&) = delete;
  SmallPages& operator=(const SmallPages&) = delete;

 private:
  static inline int count_ = 0;
};

template <class Param>
class SmallPagesTest : public ::testing::TestWithParam<Param> {
 private:
  const SmallPages small_pages_;
};

}  // namespace cairn::test
